// CRC-32 as zip archives have it (ISO 3309, polynomial 0xedb88320). Of this room alone: zlib would be a
// library to link for these lines.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::io {

/// Of bytes that follow those whose sum is `crc`.
uint32_t crc32(const void* data, size_t size, uint32_t crc = 0) noexcept;

}  // namespace tenon::io
