#include "tenon/io/safetensors.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <tuple>

#include "tenon/core/thread_state.h"
#include "tenon/io/input.h"
#include "tenon/io/read_safetensors.h"
#include "tenon/io/safetensors_header.h"
#include "tenon/io/utf8.h"

namespace tenon {
namespace io {
namespace {

/// XXH3 (64 bits) of what is written from the start of a file to its end, the checksum's own digits as zeros.
class Checksum {
 public:
  Checksum() { XXH3_64bits_reset(&state_); }
  void add(const void* bytes, size_t size) {
    if (size > 0) XXH3_64bits_update(&state_, bytes, size);
  }
  std::string digits() const { return fmt::format("{:016x}", XXH3_64bits_digest(&state_)); }

 private:
  XXH3_state_t state_;
};

Tensor tensor_of(const SafetensorsHeader::Entry& entry, Storage storage) {
  return Tensor(TensorImpl::make(std::move(storage), *entry.dtype, entry.sizes));
}

Input::Part part_of(const Input& input, const SafetensorsHeader& header,
                    const SafetensorsHeader::Entry& entry) {
  if (!entry.dtype)
    input.refuse(header.text().size() + entry.begin,
                 fmt::format("tensor '{}' has dtype '{}', which Tenon does not have; safe_open (C++: "
                             "safetensors::File) reads the other tensors one by one",
                             shown(entry.name), shown(entry.dtype_name)));
  return {header.text().size() + entry.begin, entry.end - entry.begin, item_size(*entry.dtype)};
}

void verify(const Input& input, const SafetensorsHeader& header, std::span<const Storage> storages) {
  const std::string digits(header.text().substr(*header.checksum, kChecksumDigits));
  const std::string zeros(kChecksumDigits, '0');
  const std::string_view rest = header.text().substr(*header.checksum + kChecksumDigits);
  Checksum sum;
  sum.add(header.text().data(), *header.checksum);
  sum.add(zeros.data(), zeros.size());
  sum.add(rest.data(), rest.size());
  std::vector<size_t> order(storages.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return header.entries[i].begin; });
  for (const size_t i : order)
    sum.add(reinterpret_cast<const void*>(storages[i].address()), storages[i].nbytes());
  if (sum.digits() != digits)
    input.refuse(*header.checksum,
                 fmt::format("the checksum of the file is {}, and {} was written with it; the file is "
                             "damaged",
                             sum.digits(), digits));
}

/// The parts of a file that is written: the header and the elements of each tensor.
struct Parts {
  explicit Parts(const StateDict& tensors, const safetensors::Metadata& metadata) {
    std::vector<SafetensorsHeader::Entry> entries;
    const NoGradGuard no_grad;
    for (const auto& [name, tensor] : tensors) {
      TENON_CHECK(
          tensor.defined() && !tensor.is_meta(), Value,
          fmt::format("save: tensor '{}' {}", name,
                      tensor.defined() ? "is on the meta device and has no elements" : "is undefined"));
      const char* const dtype = safetensors_name(tensor.dtype());
      TENON_CHECK(dtype, Type,
                  fmt::format("save: tensor '{}' is {}, which safetensors does not have", name,
                              tenon::name(tensor.dtype())));
      held.push_back(tensor.detach().to(kCPU).contiguous());
      entries.push_back({name, tensor.dtype(), dtype, tensor.sizes().to_dims(), 0, 0});
    }
    header = make_safetensors_header(std::move(entries), metadata);
    std::vector<size_t> order(held.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](size_t i) { return header.entries[i].begin; });
    parts.push_back({});
    for (const size_t i : order)
      if (const size_t size = held[i].nbytes())
        parts.push_back({static_cast<const std::byte*>(held[i].data_ptr()), size});
    Checksum sum;
    sum.add(header.written.data(), header.written.size());
    for (const Bytes part : parts) sum.add(part.data(), part.size());
    header.written.replace(*header.checksum, kChecksumDigits, sum.digits());
    parts[0] = std::as_bytes(std::span(header.written));
  }

  std::vector<Tensor> held;
  SafetensorsHeader header;
  std::vector<Bytes> parts;
};

}  // namespace

StateDict read_safetensors(const Input& input) {
  const SafetensorsHeader header = read_safetensors_header(input);
  std::vector<Input::Part> parts;
  for (const auto& entry : header.entries) parts.push_back(part_of(input, header, entry));
  std::vector<Storage> storages = input.storages(parts);
  if (header.checksum && !input.is_mapped()) verify(input, header, storages);
  StateDict out;
  for (size_t i = 0; i < storages.size(); ++i)
    out.set(header.entries[i].name, tensor_of(header.entries[i], std::move(storages[i])));
  return out;
}

}  // namespace io

namespace safetensors {

void save_file(const StateDict& tensors, const std::string& path, const Metadata& metadata) {
  const io::Parts made(tensors, metadata);
  io::replace_file(path, made.parts);
}

std::string save(const StateDict& tensors, const Metadata& metadata) {
  const io::Parts made(tensors, metadata);
  std::string out;
  for (const io::Bytes part : made.parts) out.append(reinterpret_cast<const char*>(part.data()), part.size());
  return out;
}

StateDict load_file(const std::string& path, LoadOptions options) {
  return io::read_safetensors(io::Input::file(path, options.mmap));
}

StateDict load(std::span<const std::byte> bytes) {
  return io::read_safetensors(io::Input::memory(bytes, "the bytes"));
}

struct File::Impl {
  explicit Impl(io::Input opened) : input(std::move(opened)), header(io::read_safetensors_header(input)) {
    for (size_t i = 0; i < header.entries.size(); ++i) places.emplace(header.entries[i].name, i);
  }
  io::Input input;
  io::SafetensorsHeader header;
  std::unordered_map<std::string, size_t> places;
};

File::File(const std::string& path, LoadOptions options)
    : impl_(std::make_unique<Impl>(io::Input::file(path, options.mmap))) {}
File::File(File&&) noexcept = default;
File& File::operator=(File&&) noexcept = default;
File::~File() = default;

std::vector<std::string> File::keys() const {
  std::vector<std::string> out;
  for (const auto& entry : impl_->header.entries) out.push_back(entry.name);
  return out;
}

std::vector<File::Row> File::rows() const {
  std::vector<const io::SafetensorsHeader::Entry*> order;
  for (const auto& entry : impl_->header.entries) order.push_back(&entry);
  std::ranges::sort(order, {},
                    [](const auto* entry) { return std::tie(entry->begin, entry->end, entry->name); });
  std::vector<Row> out;
  for (const auto* entry : order) out.push_back({entry->name, entry->dtype_name, entry->sizes});
  return out;
}

const Metadata& File::metadata() const noexcept { return impl_->header.metadata; }
bool File::has_metadata() const noexcept { return impl_->header.has_metadata; }

Tensor File::tensor(std::string_view name) const {
  const auto found = impl_->places.find(std::string(name));
  TENON_CHECK(found != impl_->places.end(), Value,
              fmt::format("load: {}: there is no tensor '{}'", impl_->input.name(), name));
  const auto& entry = impl_->header.entries[found->second];
  const io::Input::Part part = io::part_of(impl_->input, impl_->header, entry);
  return io::tensor_of(entry, std::move(impl_->input.storages({&part, 1})[0]));
}

}  // namespace safetensors
}  // namespace tenon
