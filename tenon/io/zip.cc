#include "tenon/io/zip.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/io/crc32.h"
#include "tenon/io/utf8.h"

namespace tenon::io {
namespace {

constexpr std::string_view kEnd = "PK\5\6", kEnd64 = "PK\6\6", kLocator64 = "PK\6\7", kCentral = "PK\1\2",
                           kLocal = "PK\3\4";
constexpr size_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kCentralSize = 46, kLocalSize = 30;
constexpr size_t kMostComment = 65535;
constexpr uint64_t kMostDirectory = uint64_t{1} << 30;
constexpr uint32_t kIn64 = 0xffffffff;  // for a number that zip64's extra field has
constexpr uint16_t kZip64Field = 1;

/// Numbers of a record, low byte first.
class Record {
 public:
  explicit Record(std::string_view bytes) : bytes_(bytes) {}
  uint64_t number(size_t at, size_t size) const {
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i)
      value |= uint64_t{static_cast<unsigned char>(bytes_[at + i])} << (8 * i);
    return value;
  }
  uint16_t two(size_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t four(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t eight(size_t at) const { return number(at, 8); }

 private:
  std::string_view bytes_;
};

struct Directory {
  uint64_t offset, size, count;
};

/// Where the directory is, by the record at the end of the file.
Directory find_directory(const Input& input) {
  const uint64_t size = input.size();
  if (size < kEndSize)
    input.refuse(0, "the file is too short for a zip archive; it is damaged, or was not written whole");
  const size_t tail = static_cast<size_t>(std::min<uint64_t>(size, kEndSize + kMostComment));
  const std::string text = input.text(size - tail, tail);
  size_t at = tail - kEndSize;
  while (text.compare(at, 4, kEnd) != 0 || Record(text).two(at + 20) != tail - at - kEndSize) {
    if (at == 0)
      input.refuse(
          size,
          "a zip archive ends with its directory, and there is none; the file is damaged, or was not "
          "written whole");
    --at;
  }
  const Record end(std::string_view(text).substr(at));
  const uint64_t end_offset = size - tail + at;
  if (end.two(4) != 0 || end.two(6) != 0)
    input.refuse(end_offset, "the zip archive has parts in other files");
  Directory out{end.four(16), end.four(12), end.two(10)};
  if (end_offset >= kLocatorSize && (out.offset == kIn64 || out.size == kIn64 || out.count == 0xffff)) {
    const std::string locator = input.text(end_offset - kLocatorSize, kLocatorSize);
    if (locator.starts_with(kLocator64)) {
      const uint64_t offset64 = Record(locator).eight(8);
      const std::string end64 = input.text(offset64, kEnd64Size);
      if (!end64.starts_with(kEnd64)) input.refuse(offset64, "the zip64 directory's end is expected here");
      out = {Record(end64).eight(48), Record(end64).eight(40), Record(end64).eight(32)};
    }
  }
  if (out.size > kMostDirectory || out.offset > end_offset || out.size > end_offset - out.offset)
    input.refuse(end_offset,
                 fmt::format("the zip directory is given as {} bytes at byte {}, which it cannot be",
                             out.size, out.offset));
  return out;
}

/// Sizes and offset of an entry; some may be in its zip64 field.
struct EntryPlace {
  uint64_t size, compressed, local;
};
EntryPlace place_of(const Input& input, uint64_t offset, const Record& record, std::string_view extra) {
  EntryPlace out{record.four(24), record.four(20), record.four(42)};
  uint64_t* wanted[3] = {&out.size, &out.compressed, &out.local};
  while (extra.size() >= 4) {
    const Record head(extra);
    const size_t size = head.two(2);
    if (size > extra.size() - 4) input.refuse(offset, "an extra field is longer than its entry");
    if (head.two(0) == kZip64Field) {
      const Record field(extra.substr(4, size));
      size_t at = 0;
      for (uint64_t* number : wanted) {
        if (*number != kIn64) continue;
        if (at + 8 > size) input.refuse(offset, "a zip64 field is too short");
        *number = field.eight(at);
        at += 8;
      }
      break;
    }
    extra.remove_prefix(4 + size);
  }
  return out;
}

}  // namespace

Zip::Zip(const Input& input) : input_(input) {
  const Directory directory = find_directory(input);
  const Input::Text held = input.part(directory.offset, directory.size);
  const std::string_view text = held.view();
  std::string_view left = text;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const uint64_t offset = directory.offset + (text.size() - left.size());
    const Record record(left);
    if (left.size() < kCentralSize || !left.starts_with(kCentral))
      input.refuse(offset, fmt::format("entry {} of {} of the zip directory is expected here", i + 1,
                                       directory.count));
    const size_t name_size = record.two(28), extra_size = record.two(30), comment_size = record.two(32);
    if (left.size() - kCentralSize < name_size + extra_size + comment_size)
      input.refuse(offset, "an entry of the zip directory is longer than the directory");
    std::string name(left.substr(kCentralSize, name_size));
    const EntryPlace place =
        place_of(input, offset, record, left.substr(kCentralSize + name_size, extra_size));
    const uint16_t flags = record.two(8), method = record.two(10);
    std::string problem;
    if (flags & 0x2041)
      problem = fmt::format("entry '{}' is encrypted", shown(name));
    else if (method != 0)
      problem = fmt::format("entry '{}' is compressed ({}); what PyTorch reads of an archive is not",
                            shown(name), method == 8 ? "deflate" : fmt::format("method {}", method));
    else if (place.size != place.compressed)
      problem = fmt::format("entry '{}' has two sizes, {} and {}", shown(name), place.size, place.compressed);

    const std::string local = input.text(place.local, kLocalSize);
    const size_t local_name = Record(local).two(26);
    if (!local.starts_with(kLocal) || input.text(place.local + kLocalSize, local_name) != name)
      input.refuse(place.local, fmt::format("entry '{}' is expected here", shown(name)));
    const uint64_t data = place.local + kLocalSize + local_name + Record(local).two(28);
    if (data > directory.offset || place.compressed > directory.offset - data)
      input.refuse(data,
                   fmt::format("entry '{}' of {} bytes reaches beyond the entries, which end at byte {}",
                               shown(name), place.compressed, directory.offset));
    if (!entries_
             .emplace(name, Entry{place.local, data, place.compressed, record.four(16), std::move(problem)})
             .second)
      input.refuse(offset, fmt::format("entry '{}' occurs twice", shown(name)));
    has_sums_ |= record.four(16) != 0;
    left.remove_prefix(kCentralSize + name_size + extra_size + comment_size);
  }
  check_places();
}

/// Entries that share bytes would make more of a file than it has.
void Zip::check_places() const {
  std::vector<const std::pair<const std::string, Entry>*> sorted;
  for (const auto& entry : entries_) sorted.push_back(&entry);
  std::ranges::sort(sorted, {}, [](const auto* entry) { return entry->second.header; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const auto& [name, entry] = *sorted[i];
    const auto& [before, other] = *sorted[i - 1];
    if (other.offset + other.size > entry.header)
      input_.refuse(entry.header, fmt::format("entry '{}' overlaps entry '{}', which ends at byte {}",
                                              shown(name), shown(before), other.offset + other.size));
  }
}

void Zip::check(const std::string& name, const Entry& entry, uint32_t crc) const {
  if (has_sums_ && crc != entry.crc)
    input_.refuse(entry.offset,
                  fmt::format("entry '{}' is damaged: its CRC-32 is {:08x}, and {:08x} was written with it",
                              shown(name), crc, entry.crc));
}

void Zip::check_readable(const Entry& entry) const {
  if (!entry.problem.empty()) input_.refuse(entry.offset, entry.problem);
}

Input::Text Zip::text(const std::string& name, const Entry& entry) const {
  check_readable(entry);
  Input::Text out = input_.part(entry.offset, entry.size);
  check(name, entry, crc32(out.view().data(), out.view().size()));
  return out;
}

}  // namespace tenon::io
