// Reads checkpoints that PyTorch wrote before 1.6: pickles one after another, and the bytes of each storage.
// Of this room alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tenon/io/read_checkpoint.h"

namespace tenon::io {

/// Where the pickle of the format's magic number ends, for an input that begins with `start`; none for
/// another format.
std::optional<uint64_t> after_legacy_magic(const Input& input, std::string_view start);

/// Reads what follows the magic number. Throws as read_checkpoint does.
Checkpoint read_legacy(const Input& input, const ReadOptions& options, uint64_t at);

}  // namespace tenon::io
