#include "tenon/io/pickler.h"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "tenon/core/thread_state.h"
#include "tenon/generated/functions.h"
#include "tenon/io/crc32.h"
#include "tenon/io/own_format.h"
#include "tenon/io/unpickled_shape.h"
#include "tenon/io/unpickler.h"
#include "tenon/io/utf8.h"

namespace tenon::io {
namespace {

using Kind = Value::Kind;

constexpr uint64_t kInline = uint64_t{1} << 16;  // bytes of a tensor that are copied into the text

/// The lowest `size` bytes of a number.
std::string little_endian(uint64_t number, size_t size) {
  std::string out;
  for (size_t i = 0; i < size; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
  return out;
}

}  // namespace

class Pickler {
 public:
  explicit Pickler(OwnCheckpoint& out) : out_(out) { text_ = "\x80\x04"; }

  void run(const Node& root) {
    write(root);
    text_ += '.';
    end_part();
  }

 private:
  void end_part() {
    if (text_.empty()) return;
    const std::string& kept = out_.texts_.emplace_back(std::move(text_));
    out_.parts_.push_back(std::as_bytes(std::span(kept)));
    text_.clear();
  }
  void sized(uint64_t size, char short_opcode, char opcode, char long_opcode) {
    if (size < 256)
      text_ += short_opcode + little_endian(size, 1);
    else if (size <= std::numeric_limits<uint32_t>::max())
      text_ += opcode + little_endian(size, 4);
    else
      text_ += long_opcode + little_endian(size, 8);
  }
  void text(std::string_view text) {
    TENON_CHECK(first_not_utf8(text) == text.size(), Value,
                fmt::format("save: '{}' is no UTF-8, as texts of checkpoints are", shown(text)));
    sized(text.size(), '\x8c', 'X', '\x8d');
    text_ += text;
  }
  void bytes(std::string_view bytes) {
    sized(bytes.size(), 'C', 'B', '\x8e');
    text_ += bytes;
  }
  void recall(uint64_t key) {
    text_ += key < 256 ? 'h' + little_endian(key, 1) : 'j' + little_endian(key, 4);
  }
  uint64_t memoize() {
    text_ += '\x94';
    return kept_++;
  }
  void memoize(const Node& node) { memo_.emplace(&node, memoize()); }
  /// A type or a function.
  void name(const char* module, std::string_view name) {
    const std::string whole = fmt::format("{}.{}", module, name);
    if (const auto known = names_.find(whole); known != names_.end()) return recall(known->second);
    text(module);
    text(name);
    text_ += '\x93';
    names_.emplace(whole, memoize());
  }
  void integer(int64_t value) {
    if (value >= 0 && value < 256)
      text_ += 'K' + little_endian(static_cast<uint64_t>(value), 1);
    else if (value >= 0 && value < 65536)
      text_ += 'M' + little_endian(static_cast<uint64_t>(value), 2);
    else if (value == static_cast<int32_t>(value))
      text_ += 'J' + little_endian(static_cast<uint64_t>(value), 4);
    else
      text_ += "\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8);
  }
  void number(double value) {
    const auto bits = std::bit_cast<uint64_t>(value);
    text_ += 'G';
    for (int i = 7; i >= 0; --i) text_ += static_cast<char>(bits >> (8 * i) & 0xff);
  }
  void large_integer(std::string_view value) {
    text_ += value.size() < 256 ? '\x8a' + little_endian(value.size(), 1)
                                : '\x8b' + little_endian(value.size(), 4);
    text_ += value;
  }

  void write(const Node& node);
  void write_value(const Node& node);
  void write_tensor(const Node& node);
  void write_sequence(const Node& node);
  void write_dict(const Node& node);
  void write_attributes(const Node& node) {
    if (!node.attributes) return;
    write(*node.attributes);
    text_ += 'b';
  }

  OwnCheckpoint& out_;
  std::string text_;
  std::unordered_map<const Node*, uint64_t> memo_;
  std::unordered_map<std::string, uint64_t> names_;
  uint64_t kept_ = 0;
  size_t depth_ = 0;
};

void Pickler::write(const Node& node) {
  constexpr size_t kMostDepth = 1000;  // what load reads
  TENON_CHECK(depth_ < kMostDepth, Value, fmt::format("save: values nest more than {} deep", kMostDepth));
  ++depth_;
  write_value(node);
  --depth_;
}

void Pickler::write_value(const Node& node) {
  if (const auto known = memo_.find(&node); known != memo_.end()) return recall(known->second);
  switch (node.kind) {
    case Kind::None:
      text_ += 'N';
      return;
    case Kind::Bool:
      text_ += std::get<bool>(node.value) ? '\x88' : '\x89';
      return;
    case Kind::Int:
      return integer(std::get<int64_t>(node.value));
    case Kind::Float:
      return number(std::get<double>(node.value));
    case Kind::LargeInt:
      large_integer(node.text());
      break;
    case Kind::Complex: {
      const auto value = std::get<std::complex<double>>(node.value);
      name("builtins", "complex");
      number(value.real());
      number(value.imag());
      text_ += "\x86R";
      break;
    }
    case Kind::Text:
      text(node.text());
      break;
    case Kind::Bytes:
      if (node.special) name("builtins", "bytearray");
      bytes(node.text());
      if (node.special) text_ += "\x85R";
      break;
    case Kind::DType:
      return name("tenon._C", tenon::name(std::get<DType>(node.value)));
    case Kind::Device:
      name("tenon", "device");
      text(node.text());
      text_ += "\x85R";
      break;
    case Kind::Tensor:
      return write_tensor(node);
    case Kind::List:
    case Kind::Tuple:
    case Kind::Set:
      return write_sequence(node);
    case Kind::Dict:
      return write_dict(node);
  }
  memoize(node);
}

void Pickler::write_tensor(const Node& node) {
  const auto& value = std::get<Tensor>(node.value);
  TENON_CHECK(value.defined() && !value.is_meta(), Device,
              fmt::format("save: a tensor {} to save",
                          value.defined() ? "on meta has no elements" : "that is undefined has nothing"));
  const NoGradGuard no_grad;
  Tensor dense = value.detach().to(kCPU).contiguous();
  name("tenon._C", "_rebuild_tensor");
  text_ += '(';
  node.special ? name("tenon.nn.parameter", "Parameter") : name("tenon", "Tensor");
  const auto* const data = static_cast<const char*>(dense.numel() > 0 ? dense.data_ptr() : nullptr);
  if (dense.nbytes() <= kInline) {
    bytes({data, dense.nbytes()});
  } else {
    sized(dense.nbytes(), 'C', 'B', '\x8e');
    end_part();
    out_.parts_.push_back(std::as_bytes(std::span(data, dense.nbytes())));
    out_.tensors_.push_back(dense);
  }
  text_ += '(';
  for (const int64_t size : dense.sizes()) integer(size);
  text_ += 't';
  name("tenon._C", tenon::name(dense.dtype()));
  text_ += value.requires_grad() ? '\x88' : '\x89';
  if (!value.device().is_cpu()) text(to_string(value.device()));
  text_ += "tR";
  memoize(node);
  write_attributes(node);
}

void Pickler::write_sequence(const Node& node) {
  if (node.kind == Kind::Tuple && node.special) name("tenon", "Size");
  const bool is_filled_later = node.kind == Kind::List || (node.kind == Kind::Set && !node.special);
  if (is_filled_later) {
    text_ += node.kind == Kind::List ? ']' : '\x8f';
    memoize(node);
    if (node.list().empty()) return;
  }
  text_ += '(';
  for (const Node* element : node.list()) write(*element);
  if (is_filled_later) {
    text_ += node.kind == Kind::List ? 'e' : '\x90';
  } else if (const auto known = memo_.find(&node); known != memo_.end()) {
    // A list inside holds this tuple, and was written with it.
    text_ += '1';
    recall(known->second);
  } else {
    text_ += node.kind == Kind::Tuple ? 't' : '\x91';
    if (node.kind == Kind::Tuple && node.special) text_ += "\x85R";
    memoize(node);
  }
}

void Pickler::write_dict(const Node& node) {
  if (node.counts) {
    name("collections", "Counter");
    text_ += ")R";
  } else if (node.special) {
    name("collections", "OrderedDict");
    text_ += ")R";
  } else {
    text_ += '}';
  }
  memoize(node);
  if (!node.list().empty()) {
    text_ += '(';
    for (const Node* element : node.list()) write(*element);
    text_ += 'u';
  }
  write_attributes(node);
}

void check_loadable(Node* root, Nodes& nodes) {
  try {
    check_shape(root, nodes);
  } catch (const PickleError& error) {
    throw_error(ErrorKind::Value, fmt::format("save: load would refuse the checkpoint: {}", error.what));
  }
}

OwnCheckpoint::OwnCheckpoint(const Node& root) {
  parts_.emplace_back();  // what comes before the pickle
  Pickler(*this).run(root);
  uint64_t size = 0;
  for (const Bytes part : parts_) size += part.size();
  const std::string length = little_endian(size, 8);
  uint32_t sum = crc32(length.data(), length.size());
  for (const Bytes part : parts_) sum = crc32(part.data(), part.size(), sum);
  const std::string& head = texts_.emplace_back(std::string(kOwnMagic) + length + little_endian(sum, 4));
  parts_.front() = std::as_bytes(std::span(head));
}

}  // namespace tenon::io
