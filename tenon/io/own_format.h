// How Tenon's own checkpoints begin: a line that names the format, the pickle's length in eight bytes, the
// CRC-32 of length and pickle in four, low byte first, and the pickle. Of this room alone.
#pragma once

#include <string_view>

namespace tenon::io {

inline constexpr std::string_view kAnyMagic = "tenon checkpoint, ", kOwnMagic = "tenon checkpoint, 2\n",
                                  kFirstMagic = "tenon-checkpoint-1\n";

}  // namespace tenon::io
