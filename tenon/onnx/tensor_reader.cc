#include "tenon/onnx/tensor_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tenon/core/error.h"
#include "tenon/core/half.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/io/utf8.h"
#include "tenon/onnx/types.h"

namespace tenon::onnx {
namespace {

// Bytes that are copied: a mapping costs more than they do.
constexpr uint64_t kSmall = 4096;

/// The numbers of one of the fields that hold values, in the order of the file.
struct Numbers {
  std::vector<char> bytes;
  template <class T>
  void add(T value) {
    const char* const from = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(T));
  }
};

/// What int32_data has for `dtype`.
void add_int32(Numbers& to, DType dtype, int32_t value) {
  switch (item_size(dtype)) {
    case 1:
      to.add(static_cast<uint8_t>(dtype == kBool ? value != 0 : value));
      break;
    case 2:
      to.add(static_cast<uint16_t>(value));
      break;
    default:
      to.add(value);
  }
}

/// Elements of a shape; absent if there are more than memory has addresses.
std::optional<uint64_t> num_elements(const std::vector<int64_t>& dims) {
  uint64_t out = 1;
  bool fits = true;
  for (const int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) return 0;
    fits =
        fits && !__builtin_mul_overflow(out, static_cast<uint64_t>(dim), &out) && out < (uint64_t{1} << 56);
  }
  return fits ? std::optional(out) : std::nullopt;
}

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

}  // namespace

TensorReader::TensorReader(const io::Input& input, std::optional<std::string> folder)
    : input_(input), folder_(std::move(folder)) {
  const io::Input::Part whole{0, input.size(), 1};
  file_ = input.storages({&whole, 1})[0];
  begin_ = reinterpret_cast<const char*>(file_.address());
  size_ = whole.size;
}

void TensorReader::refuse(std::string_view tensor, const std::string& what) const {
  throw_error(ErrorKind::Value,
              fmt::format("onnx.load: {}: tensor '{}': {}", input_.name(), io::shown(tensor), what));
}

void TensorReader::count_copy(uint64_t size, std::string_view tensor) {
  constexpr uint64_t kMost = uint64_t{16} << 20;
  copied_ = size <= kMost + 8 * size_ ? copied_ + size : UINT64_MAX / 2;
  if (copied_ > kMost + 8 * size_)
    refuse(tensor, "sparse tensors, or functions that are called often, make it much larger than its file");
}

TensorReader::External TensorReader::external(pbf_reader entry, External so_far) const {
  const auto [key, value] = key_and_value(entry);
  if (key == "location") so_far.location = value;
  if (key == "offset" || key == "length") {
    auto& number = key == "offset" ? so_far.offset : so_far.length;
    number = number_of(value);
    if (!number)
      throw_error(ErrorKind::Value,
                  fmt::format("onnx.load: {}: external data has the {} '{}', expected a whole number",
                              input_.name(), key, io::shown(value)));
  }
  return so_far;
}

Storage TensorReader::external_bytes(const External& from, uint64_t size, size_t alignment,
                                     std::string_view tensor) {
  namespace fs = std::filesystem;
  if (!folder_)
    refuse(tensor, "its data is in another file, which a model in memory cannot have; load it by its path");
  if (from.location.empty() || from.location.find('\0') != std::string::npos)
    refuse(tensor, "its data is in another file, whose name is missing");
  // Links are followed first: what counts is where the file is.
  std::error_code error;
  const fs::path folder = fs::canonical(*folder_, error);
  const fs::path path = fs::weakly_canonical(folder / from.location, error);
  const auto [rest, end] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (fs::path(from.location).is_absolute() || rest != folder.end())
    refuse(tensor, fmt::format("its data is in '{}', which is outside of the model's folder",
                               io::shown(from.location)));
  auto found = others_.find(path.string());
  if (found == others_.end())
    found = others_.emplace(path.string(), io::Input::file(path.string(), true)).first;
  const io::Input& other = found->second;
  if (from.length && *from.length != size)
    refuse(tensor, fmt::format("it has {} bytes, and its external data {}", size, *from.length));
  const io::Input::Part part{from.offset.value_or(0), size, alignment};
  return other.storages({&part, 1})[0];
}

TensorReader::Named TensorReader::read(pbf_reader message) {
  Named out;
  std::vector<int64_t> dims;
  int64_t type = 0;
  Numbers numbers;
  std::optional<data_view> raw;
  External from;
  bool is_external = false;
  // The type may come after the values.
  for (pbf_reader look = message; look.next();)
    if (look.tag() == 2)
      type = look.get_int32();
    else
      look.skip();
  const std::optional<DType> dtype = type_of(type);
  while (message.next()) {
    const uint32_t tag = message.tag();
    switch (tag) {
      case 1:
        each_int64(message, [&](int64_t n) { dims.push_back(n); });
        break;
      case 4:
        each_float(message, [&](float n) { numbers.add(n); });
        break;
      case 5:
        each_int32(message, [&](int32_t n) {
          if (dtype) add_int32(numbers, *dtype, n);
        });
        break;
      case 7:
        each_int64(message, [&](int64_t n) { numbers.add(n); });
        break;
      case 10:
        each_double(message, [&](double n) { numbers.add(n); });
        break;
      case 8:
        out.name = message.get_string();
        break;
      case 9:
        raw = message.get_view();
        break;
      case 13:
        from = external(message.get_message(), from);
        break;
      case 14:
        is_external = message.get_int32() == 1;
        break;
      default:
        message.skip();
    }
  }
  out.type = type_name(type);
  const std::optional<uint64_t> count = num_elements(dims);
  if (!count || dims.size() > 64)
    refuse(out.name, fmt::format("it has the shape [{}]", fmt::join(dims, ", ")));
  if (!dtype) return out;
  const uint64_t size = *count * item_size(*dtype);
  const Dims sizes{std::span<const int64_t>(dims)};
  if (is_external) {
    out.tensor =
        Tensor(TensorImpl::make(external_bytes(from, size, item_size(*dtype), out.name), *dtype, sizes));
    return out;
  }
  const uint64_t there = raw ? raw->size() : numbers.bytes.size();
  if (there != size)
    refuse(out.name, fmt::format("{} bytes of data, expected {} for {} of shape [{}]", there, size, out.type,
                                 fmt::join(dims, ", ")));
  if (raw && size > kSmall) {
    const io::Input::Part part{static_cast<uint64_t>(raw->data() - begin_), size, item_size(*dtype)};
    out.tensor = Tensor(TensorImpl::make(input_.storages({&part, 1})[0], *dtype, sizes));
    return out;
  }
  count_copy(size, out.name);
  out.tensor = empty(sizes, TensorOptions(*dtype));
  if (size > 0) std::memcpy(out.tensor.data_ptr(), raw ? raw->data() : numbers.bytes.data(), size);
  return out;
}

TensorReader::Named TensorReader::read_sparse(pbf_reader message) {
  Named values, indices;
  std::vector<int64_t> dims;
  while (message.next()) switch (message.tag()) {
      case 1:
        values = read(message.get_message());
        break;
      case 2:
        indices = read(message.get_message());
        break;
      case 3:
        each_int64(message, [&](int64_t n) { dims.push_back(n); });
        break;
      default:
        message.skip();
    }
  if (!values.tensor.defined()) return values;
  const std::optional<uint64_t> count = num_elements(dims);
  if (!count) refuse(values.name, fmt::format("a sparse tensor of shape [{}]", fmt::join(dims, ", ")));
  count_copy(*count * item_size(values.tensor.dtype()), values.name);
  const auto given = indices.tensor.defined() ? indices.tensor.sizes() : IntArrayRef();
  if (given.empty() || given.size() > 2 || indices.tensor.dtype() != kInt64 ||
      values.tensor.sizes().size() != 1 || given[0] != values.tensor.sizes()[0] ||
      (given.size() == 2 && given[1] != std::ssize(dims)))
    refuse(values.name, "a sparse tensor has a list of values, and for each its place as int64");
  // Places count elements, or have a number for each dimension.
  const std::vector<int64_t> sizes = given.size() == 2 ? dims : std::vector{static_cast<int64_t>(*count)};
  const int64_t* at = indices.tensor.data_ptr<int64_t>();
  Tensor out = zeros({static_cast<int64_t>(*count)}, TensorOptions(values.tensor.dtype()));
  const size_t size = item_size(out.dtype());
  for (int64_t i = 0; i < given[0]; ++i) {
    int64_t place = 0;
    for (const int64_t dim : sizes) {
      if (*at < 0 || *at >= dim)
        refuse(values.name,
               fmt::format("a sparse tensor of shape [{}] has a value at {} of a dimension of {}",
                           fmt::join(dims, ", "), *at, dim));
      place = place * dim + *at++;
    }
    std::memcpy(static_cast<char*>(out.data_ptr()) + static_cast<size_t>(place) * size,
                static_cast<const char*>(values.tensor.data_ptr()) + static_cast<size_t>(i) * size, size);
  }
  values.tensor = out.reshape(Dims(std::span<const int64_t>(dims)));
  return values;
}

}  // namespace tenon::onnx
