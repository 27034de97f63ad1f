#include "tenon/io/read_legacy.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tenon/io/pickled.h"
#include "tenon/io/utf8.h"

namespace tenon::io {
namespace {

using Kind = Value::Kind;
using Writer = CheckpointObjects::Writer;

constexpr int64_t kVersion = 1001;
constexpr size_t kCount = 8;  // bytes of the number of elements before a storage

/// A pickle with the bytes that it is read from.
struct Read {
  std::string bytes;
  std::optional<Pickled> pickled;
};

/// The pickles of an input, one after another. None says how long it is, so that more and more is read until
/// it ends.
class Pickles {
 public:
  Pickles(const Input& input, uint64_t at) : input_(input), at_(at) {}

  uint64_t at() const noexcept { return at_; }
  void next(Read& out, Writer writer) {
    constexpr uint64_t kFirst = uint64_t{64} << 10;
    for (uint64_t size = kFirst;; size *= 4) {
      const bool has_more = input_.has(at_ + size);
      out.bytes = input_.text(at_, has_more ? size : input_.size() - at_);
      try {
        out.pickled.emplace(input_, writer, out.bytes, at_,
                            has_more ? Pickled::Rest::Unread : Pickled::Rest::Follows);
        break;
      } catch (const PickleError&) {
        continue;
      }
    }
    at_ += out.pickled->size();
  }
  /// A value that holds no tensors.
  Value next() {
    Read read;
    const uint64_t start = at_;
    next(read, Writer::Legacy);
    if (!read.pickled->storages().empty()) input_.refuse(start, "a tensor is where none is expected");
    return read.pickled->value({}, {});
  }

 private:
  const Input& input_;
  uint64_t at_;
};

/// Checks the two pickles before the value.
void check_head(const Input& input, Pickles& pickles) {
  uint64_t at = pickles.at();
  if (const Value version = pickles.next(); version.kind() != Kind::Int || version.to_int() != kVersion)
    input.refuse(at, fmt::format("the version of PyTorch's format before 1.6 is not {}", kVersion));
  at = pickles.at();
  const Value system = pickles.next();
  const bool is_little = system.kind() == Kind::Dict && system.contains("little_endian") &&
                         system["little_endian"].kind() == Kind::Bool && system["little_endian"].to_bool();
  if (!is_little)
    input.refuse(at, "the file does not say that it is little endian, and little endian alone is read");
}

/// The storages that follow the list of their keys; `at` moves to their end.
std::vector<Storage> read_storages(const Input& input, uint64_t& at, const Pickled& pickled,
                                   const Value& keys) {
  const auto& stored = pickled.storages();
  std::unordered_map<std::string, size_t> missing;
  std::vector<Input::Part> parts;
  for (size_t i = 0; i < stored.size(); ++i) {
    missing.emplace(stored[i].key, i);
    parts.push_back({0, stored[i].nbytes, 1});
  }
  for (const auto& view : pickled.views())
    parts[view.storage].alignment = std::max(parts[view.storage].alignment, item_size(view.dtype));
  for (size_t i = 0; i < keys.size(); ++i) {
    const Value key = keys[i];
    const auto found = key.kind() == Kind::Text ? missing.find(key.to_text()) : missing.end();
    if (found == missing.end())
      input.refuse(at, fmt::format("key {} of the list of storages is one that no tensor uses, or is there "
                                   "twice",
                                   i));
    const size_t number = found->second;
    missing.erase(found);
    uint64_t count = 0;
    const std::string bytes = input.text(at, kCount);
    for (size_t b = 0; b < kCount; ++b) count |= uint64_t{static_cast<unsigned char>(bytes[b])} << (8 * b);
    if (const uint64_t expected = stored[number].nbytes / stored[number].item; count != expected)
      input.refuse(at, fmt::format("storage '{}' has {} elements here, and {} are expected",
                                   shown(stored[number].key), count, expected));
    at += kCount;
    parts[number].offset = at;
    at += parts[number].size;
  }
  if (!missing.empty())
    input.refuse(at, fmt::format("storage '{}', which a tensor needs, is not in the file",
                                 shown(missing.begin()->first)));
  return input.storages(parts);
}

}  // namespace

std::optional<uint64_t> after_legacy_magic(const Input& input, std::string_view start) {
  // PROTO, from protocol 4 on FRAME, LONG1 of 0x1950a86a20f9469cfc6c, STOP.
  constexpr std::string_view kMagic = "\x8a\x0al\xfc\x9c\x46\xf9 j\xa8P\x19.";
  constexpr size_t kProto = 2, kFrame = 9;
  if (start.size() < kProto + kMagic.size() || start[0] != '\x80' || start[1] < 2 || start[1] > 5)
    return std::nullopt;
  if (start.substr(kProto).starts_with(kMagic)) return kProto + kMagic.size();
  constexpr size_t kFramed = kProto + kFrame + kMagic.size();
  if (start[kProto] != '\x95' || !input.has(kFramed) || input.text(kProto + kFrame, kMagic.size()) != kMagic)
    return std::nullopt;
  return kFramed;
}

Checkpoint read_legacy(const Input& input, const ReadOptions& options, uint64_t at) {
  Pickles pickles(input, at);
  check_head(input, pickles);
  Read read;
  pickles.next(read, Writer::Legacy);
  at = pickles.at();
  const Value keys = pickles.next();
  if (keys.kind() != Kind::List)
    input.refuse(at, fmt::format("the list of storages is {}", keys.kind_name()));
  at = pickles.at();
  std::vector<Storage> storages = read_storages(input, at, *read.pickled, keys);
  if (!options.may_go_on && input.has(at + 1))
    input.refuse(at,
                 "bytes follow the last storage; the file is damaged, or more was appended to it: load from "
                 "the open file to read several values");
  Value value = read.pickled->value(std::move(storages), options.place);
  return {std::move(value), read.pickled->is_circular(), at};
}

}  // namespace tenon::io
