#include "tenon/io/safetensors_header.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <unordered_set>

#include "tenon/io/utf8.h"

namespace tenon::io {
namespace {

constexpr uint64_t kMostHeaderBytes = 100'000'000;  // as in the format's reference implementation
constexpr uint64_t kMostBytes = std::numeric_limits<int64_t>::max();
constexpr size_t kDataAlignment = 64;
constexpr const char* kMetadata = "__metadata__";
constexpr std::string_view kBlanks = " \t\r\n";  // JSON's
constexpr size_t kMostDimensions = 255;          // a tensor's

// A header of Tenon's is known by blanks that no other writer puts there. A program that writes the tensors
// of a file again may copy its metadata; the checksum that came with them then says nothing, and is not
// looked at. A damaged header of Tenon's has the other end still.
constexpr const char* kChecksumKey = "tenon.xxh3";
constexpr std::string_view kOurStart = R"({ "__metadata__":{"tenon.xxh3":")";
constexpr std::string_view kOurEnd = "} }";

constexpr std::pair<const char*, DType> kNames[] = {
    {"BOOL", DType::Bool},          {"U8", DType::UInt8},      {"I8", DType::Int8},
    {"I16", DType::Int16},          {"I32", DType::Int32},     {"I64", DType::Int64},
    {"F16", DType::Float16},        {"BF16", DType::BFloat16}, {"F32", DType::Float32},
    {"F64", DType::Float64},        {"C64", DType::Complex64}, {"F8_E4M3", DType::Float8E4M3FN},
    {"F8_E5M2", DType::Float8E5M2}, {"U16", DType::UInt16},    {"U32", DType::UInt32},
    {"U64", DType::UInt64},
};

uint64_t little_endian(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

/// Names that have occurred, by their hashes: a header of names alone takes no more memory for them.
class NameSet {
 public:
  /// False for one that has occurred.
  bool add(std::string_view name) {
    const XXH128_hash_t hash = XXH3_128bits(name.data(), name.size());
    return hashes_.emplace(hash.low64, hash.high64).second;
  }

 private:
  std::set<std::pair<uint64_t, uint64_t>> hashes_;
};

/// Walks over JSON text and says how far the parser has come.
class Cursor {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor() = default;
  Cursor(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_ = nullptr;
  const char** furthest_ = nullptr;
};

/// Takes the parser's events. Nothing is built that the format does not have, however deep the text nests.
class Reader {
 public:
  Reader(const Input& input, SafetensorsHeader& out)
      : input_(input), out_(out), text_(out.text()), at_(text_.data()) {}

  const char** position() { return &at_; }

  bool key(std::string& name) {
    if (unknown_ > 0) return true;
    if (place_ == Place::Top) {
      if (!names_.add(name)) refuse(fmt::format("the name '{}' occurs twice", shown(name)));
      entry_ = {};
      entry_.name = name;
    } else if (place_ == Place::Metadata) {
      if (!keys_.add(name)) refuse(fmt::format("the metadata key '{}' occurs twice", shown(name)));
      key_ = name;
    } else {
      const uint8_t field = name == "dtype"          ? kDType
                            : name == "shape"        ? kShape
                            : name == "data_offsets" ? kOffsets
                                                     : kUnknown;
      if (fields_ & field & ~kUnknown)
        refuse(fmt::format("tensor '{}' has the field '{}' twice", shown(entry_.name), shown(name)));
      fields_ |= field;
      field_ = field;
    }
    return true;
  }
  bool start_object(size_t) {
    if (passes_over()) {
      ++unknown_;
    } else if (place_ == Place::Start) {
      place_ = Place::Top;
    } else if (place_ == Place::Top) {
      place_ = entry_.name == kMetadata ? Place::Metadata : Place::Entry;
      fields_ = 0;
    } else {
      unexpected("an object");
    }
    return true;
  }
  bool end_object() {
    if (unknown_ > 0) return --unknown_, true;
    if (place_ == Place::Entry) finish_entry();
    if (place_ == Place::Metadata) out_.has_metadata = !has_checksum_key_ || !out_.metadata.empty();
    place_ = place_ == Place::Top ? Place::End : Place::Top;
    return true;
  }
  bool start_array(size_t) {
    if (passes_over()) return ++unknown_, true;
    if (place_ != Place::Entry || field_ == kDType) unexpected("a list");
    place_ = Place::List;
    numbers_.clear();
    return true;
  }
  bool end_array() {
    if (unknown_ > 0) return --unknown_, true;
    place_ = Place::Entry;
    if (field_ == kShape) {
      shape_ = numbers_;
    } else {
      if (numbers_.size() != 2)
        refuse(fmt::format("tensor '{}': data_offsets must be two numbers", shown(entry_.name)));
      entry_.begin = numbers_[0];
      entry_.end = numbers_[1];
    }
    return true;
  }
  bool number_unsigned(uint64_t value) {
    if (passes_over()) return true;
    if (place_ != Place::List) unexpected("a number");
    if (value > kMostBytes) refuse(fmt::format("tensor '{}': {} is too large", shown(entry_.name), value));
    if (numbers_.size() == kMostDimensions)
      refuse(field_ == kShape
                 ? fmt::format("tensor '{}' has more than {} dimensions, the most that Tenon's have",
                               shown(entry_.name), kMostDimensions)
                 : fmt::format("tensor '{}': data_offsets must be two numbers", shown(entry_.name)));
    numbers_.push_back(value);
    return true;
  }
  bool string(std::string& value) {
    if (passes_over()) return true;
    if (place_ == Place::Metadata) {
      has_checksum_key_ |= key_ == kChecksumKey;
      if (key_ == kChecksumKey)
        read_checksum(value);
      else
        out_.metadata.emplace_back(key_, value);
    } else if (place_ == Place::Entry && field_ == kDType) {
      const auto* known = std::ranges::find_if(kNames, [&](const auto& row) { return value == row.first; });
      if (known != std::end(kNames)) entry_.dtype = known->second;
      entry_.dtype_name = value;
    } else {
      unexpected("a string");
    }
    return true;
  }
  bool null() { return (place_ == Place::Top && entry_.name == kMetadata) || unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool number_integer(int64_t) { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) { return unexpected("a number that is no integer"); }
  bool binary(nlohmann::json::binary_t&) { return unexpected("binary data"); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while ..."
    const std::string_view what = error.what();
    const size_t colon = what.find(": ");
    refuse(fmt::format("the header is no JSON: {}",
                       shown(colon == what.npos ? what : what.substr(colon + 2), 300)));
  }

 private:
  enum class Place { Start, Top, Metadata, Entry, List, End };
  enum : uint8_t { kDType = 1, kShape = 2, kOffsets = 4, kUnknown = 8 };

  [[noreturn]] void refuse(const std::string& what) const {
    input_.refuse(static_cast<uint64_t>(at_ - text_.data()), what);
  }
  /// Whether the value that begins here belongs to a field that is not of the format.
  bool passes_over() const { return unknown_ > 0 || (place_ == Place::Entry && field_ == kUnknown); }
  bool unexpected(const char* what) const {
    if (passes_over()) return true;
    refuse(fmt::format("{} where the format has none{}", what,
                       entry_.name.empty() ? "" : fmt::format(", at '{}'", shown(entry_.name))));
  }

  void read_checksum(const std::string& value) {
    const std::string_view text = text_;
    if (!text.substr(8).starts_with(kOurStart)) return;
    const size_t place = 8 + kOurStart.size();
    if (out_.checksum || value.size() != kChecksumDigits || text.substr(place, kChecksumDigits) != value)
      refuse("the checksum is damaged");
    out_.checksum = place;
  }

  void finish_entry() {
    if ((fields_ & ~kUnknown) != (kDType | kShape | kOffsets))
      refuse(fmt::format("tensor '{}' lacks dtype, shape or data_offsets", shown(entry_.name)));
    uint64_t bytes = entry_.dtype ? item_size(*entry_.dtype) : 1;
    Dims sizes;
    bool empty = false;
    for (const uint64_t size : shape_) {
      sizes.push_back(static_cast<int64_t>(size));
      empty |= size == 0;
      // Zeros left out: strides must be countable too.
      if (__builtin_mul_overflow(bytes, std::max<uint64_t>(size, 1), &bytes) || bytes > kMostBytes)
        refuse(fmt::format("tensor '{}' of shape [{}] has more bytes than can be counted", shown(entry_.name),
                           fmt::join(shape_, ", ")));
    }
    if (empty) bytes = 0;
    if (entry_.begin > entry_.end || (entry_.dtype && entry_.end - entry_.begin != bytes))
      refuse(
          fmt::format("tensor '{}' of shape [{}] and dtype {} takes {} bytes, its data_offsets are [{}, {}]",
                      shown(entry_.name), fmt::join(shape_, ", "), shown(entry_.dtype_name), bytes,
                      entry_.begin, entry_.end));
    entry_.sizes = std::move(sizes);
    out_.entries.push_back(std::move(entry_));
    entry_ = {};
  }

  const Input& input_;
  SafetensorsHeader& out_;
  const std::string_view text_;
  const char* at_;
  Place place_ = Place::Start;
  NameSet names_, keys_;
  bool has_checksum_key_ = false;
  std::string key_;
  SafetensorsHeader::Entry entry_{};
  uint8_t fields_ = 0, field_ = 0;
  size_t unknown_ = 0;  // lists and objects that are open in a field that is passed over
  std::vector<uint64_t> numbers_, shape_;
};

/// The parser keeps a text several times while it reads it, so that very long ones are refused before.
void check_lengths(const Input& input, std::string_view json) {
  constexpr size_t kMostText = size_t{16} << 20;
  size_t begin = json.npos;  // of the text that is open
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '\\' && begin != json.npos) {
      ++i;
    } else if (json[i] == '"') {
      if (begin != json.npos && i - begin > kMostText)
        input.refuse(8 + begin,
                     fmt::format("a text of the header has {} bytes, more than the {} that Tenon reads",
                                 i - begin - 1, kMostText));
      begin = begin == json.npos ? i : json.npos;
    }
  }
}

/// The data has the bytes of every tensor once, and no others.
void check_places(const Input& input, const SafetensorsHeader& header) {
  std::vector<const SafetensorsHeader::Entry*> sorted;
  for (const auto& entry : header.entries) sorted.push_back(&entry);
  std::ranges::sort(sorted, [](const auto* a, const auto* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  const uint64_t start = header.text().size();
  uint64_t end = 0;
  for (const auto* entry : sorted) {
    if (entry->begin != end)
      input.refuse(start + entry->begin,
                   fmt::format("tensor '{}' {}: its bytes begin at {} of the data, those before it end at {}",
                               shown(entry->name), entry->begin < end ? "overlaps another" : "follows a gap",
                               entry->begin, end));
    end = entry->end;
    if (!input.has(start + end))
      input.refuse(
          start + entry->begin,
          fmt::format(
              "tensor '{}' reaches beyond the end of the file, to byte {} of {}; it is damaged, or was not "
              "written whole",
              shown(entry->name), start + end, input.size()));
  }
  if (input.has(start + end + 1)) input.refuse(start + end, "bytes follow the last tensor, which ends here");
}

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::Value, "save: a name or a metadata text is no UTF-8");
  }
}

}  // namespace

const char* safetensors_name(DType t) noexcept {
  const auto* row = std::ranges::find_if(kNames, [&](const auto& r) { return r.second == t; });
  return row == std::end(kNames) ? nullptr : row->first;
}

SafetensorsHeader read_safetensors_header(const Input& input) {
  SafetensorsHeader out;
  const uint64_t size = little_endian(input.text(0, 8));
  if (size > kMostHeaderBytes)
    input.refuse(
        0, fmt::format("the header's length is given as {} bytes; at most {} are allowed, so this is no "
                       "safetensors file",
                       size, kMostHeaderBytes));
  out.held = input.part(0, 8 + size);
  const std::string_view json = out.text().substr(8);
  const size_t first = json.find_first_not_of(kBlanks);
  if (first == json.npos || json[first] != '{') input.refuse(8, "the header must begin with '{'");
  // The parser takes it for the end of its input.
  if (const size_t nul = json.find('\0'); nul != json.npos)
    input.refuse(8 + nul, "the header is no JSON: it has a NUL");

  check_lengths(input, json);
  Reader reader(input, out);
  const char* const begin = json.data();
  const char* const end = json.data() + json.size();
  *reader.position() = begin;
  nlohmann::json::sax_parse(Cursor(begin, reader.position()), Cursor(end, reader.position()), &reader);

  const std::string_view trimmed = json.substr(0, json.find_last_not_of(' ') + 1);
  if (!out.checksum && (json.starts_with(kOurStart) || trimmed.ends_with(kOurEnd)))
    input.refuse(8, "the header misses its checksum; it is damaged");
  check_places(input, out);
  return out;
}

SafetensorsHeader make_safetensors_header(std::vector<SafetensorsHeader::Entry> entries,
                                          std::vector<std::pair<std::string, std::string>> metadata) {
  SafetensorsHeader out;
  // After larger elements, smaller ones are aligned.
  std::vector<SafetensorsHeader::Entry*> sorted;
  for (auto& entry : entries) sorted.push_back(&entry);
  std::ranges::stable_sort(
      sorted, [](const auto* a, const auto* b) { return item_size(*a->dtype) > item_size(*b->dtype); });
  uint64_t at = 0;
  for (auto* entry : sorted) {
    uint64_t bytes = item_size(*entry->dtype);
    for (const int64_t size : entry->sizes) bytes *= static_cast<uint64_t>(size);
    entry->begin = at;
    entry->end = at += bytes;
  }

  std::string json(kOurStart);
  out.checksum = 8 + json.size();
  json.append(kChecksumDigits, '0');
  json += '"';
  std::unordered_set<std::string> names{kChecksumKey};
  for (const auto& [key, value] : metadata) {
    TENON_CHECK(names.insert(key).second, Value, fmt::format("save: the metadata key '{}' is taken", key));
    json += fmt::format(",{}:{}", quoted(key), quoted(value));
  }
  json += '}';
  names = {kMetadata};
  for (const auto& entry : entries) {
    TENON_CHECK(names.insert(entry.name).second, Value,
                fmt::format("save: the name '{}' is taken", entry.name));
    json += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quoted(entry.name),
                        entry.dtype_name, fmt::join(entry.sizes, ","), entry.begin, entry.end);
  }
  json += " }";
  json.append((kDataAlignment - (8 + json.size()) % kDataAlignment) % kDataAlignment, ' ');
  TENON_CHECK(json.size() <= kMostHeaderBytes, Value,
              fmt::format("save: the header would have {} bytes, more than safetensors allows", json.size()));
  for (size_t i = 0; i < 8; ++i) out.written += static_cast<char>(json.size() >> (8 * i) & 0xff);
  out.written += json;
  out.entries = std::move(entries);
  out.metadata = std::move(metadata);
  return out;
}

}  // namespace tenon::io
