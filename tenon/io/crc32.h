// CRC-32 as zip archives have it (ISO 3309, polynomial 0xedb88320), eight bytes at a time. Of this room
// alone: zlib would be a library to link for these lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tenon::io {

namespace detail {
constexpr auto kCrcTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? 0xedb88320u ^ (c >> 1) : c >> 1;
    tables[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t t = 1; t < 8; ++t)
      tables[t][i] = tables[0][tables[t - 1][i] & 0xff] ^ (tables[t - 1][i] >> 8);
  return tables;
}();
}  // namespace detail

/// Of bytes that follow those whose sum is `crc`.
inline uint32_t crc32(const void* data, size_t size, uint32_t crc = 0) noexcept {
  const auto& t = detail::kCrcTables;
  const auto* p = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; size >= 8; size -= 8, p += 8) {
    uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + 4, 4);
    low ^= crc;
    crc = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24] ^
          t[3][high & 0xff] ^ t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff] ^ t[0][high >> 24];
  }
  for (; size > 0; --size, ++p) crc = t[0][(crc ^ *p) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace tenon::io
