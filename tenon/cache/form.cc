#include "tenon/cache/form.h"

#include <xxhash.h>

#include <array>
#include <cstring>

namespace tenon::cache {
namespace {

// Then come build, machine, about and value, one after the other. Numbers are as the machine has them: files
// are for one instruction set.
struct Header {
  char magic[8];
  uint64_t version;
  uint64_t length;    // of what follows the header
  uint64_t checksum;  // of what follows this field
  uint64_t key_high, key_low;
  uint32_t build, machine, about;  // bytes
  uint32_t reserved;
};
static_assert(sizeof(Header) == kHeaderBytes);
constexpr char kMagic[] = {'T', 'E', 'N', 'O', 'N', 'P', 'L', 'C'};
constexpr uint64_t kVersion = 1;
constexpr size_t kSummed = offsetof(Header, key_high);

constexpr std::array<std::string_view, kNumMisses> kNames = {
    "it was found",
    "nothing was stored",
    "the file cannot be read",
    "the file is another user's, or others may write it",
    "the file is no plan",
    "the file is cut off, or has bytes after its end",
    "the file's bytes are not those that were written",
    "the file is of another build of Tenon",
    "the file is for another instruction set",
    "the file is of another program",
};

std::string_view text_of(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string_view name(Miss miss) noexcept { return kNames[static_cast<size_t>(miss)]; }

std::vector<std::byte> to_form(const expr::Key& key, const Holder& writer, std::string_view about,
                               Bytes value) {
  Header h{};
  std::memcpy(h.magic, kMagic, sizeof(kMagic));
  h.version = kVersion;
  h.key_high = key.high;
  h.key_low = key.low;
  h.build = static_cast<uint32_t>(writer.build.size());
  h.machine = static_cast<uint32_t>(writer.machine.size());
  h.about = static_cast<uint32_t>(about.size());
  h.length = writer.build.size() + writer.machine.size() + about.size() + value.size();
  std::vector<std::byte> file(sizeof(h));
  for (const std::string_view text :
       {std::string_view(writer.build), std::string_view(writer.machine), about}) {
    const Bytes bytes = std::as_bytes(std::span(text));
    file.insert(file.end(), bytes.begin(), bytes.end());
  }
  file.insert(file.end(), value.begin(), value.end());
  std::memcpy(file.data(), &h, sizeof(h));
  h.checksum = XXH3_64bits(file.data() + kSummed, file.size() - kSummed);
  std::memcpy(file.data(), &h, sizeof(h));
  return file;
}

Contents from_form(Bytes file, const Holder& reader) noexcept {
  Contents c;
  const auto is = [&](Miss miss) {
    c.miss = miss;
    return c;
  };
  Header h;
  if (file.size() < sizeof(h)) return is(Miss::CutOff);
  std::memcpy(&h, file.data(), sizeof(h));
  if (std::memcmp(h.magic, kMagic, sizeof(kMagic)) != 0) return is(Miss::Foreign);
  if (h.version != kVersion) return is(Miss::Build);
  Bytes rest = file.subspan(sizeof(h));
  if (h.length != rest.size() || uint64_t{h.build} + h.machine + h.about > rest.size())
    return is(Miss::CutOff);
  if (h.checksum != XXH3_64bits(file.data() + kSummed, file.size() - kSummed)) return is(Miss::Altered);
  const auto take = [&](size_t n) {
    const std::string_view text = text_of(rest.first(n));
    rest = rest.subspan(n);
    return text;
  };
  c.key = {h.key_high, h.key_low};
  c.build = take(h.build);
  c.machine = take(h.machine);
  c.about = take(h.about);
  c.value = rest;
  if (c.build != reader.build) return is(Miss::Build);
  if (c.machine != reader.machine) return is(Miss::Machine);
  return c;
}

}  // namespace tenon::cache
