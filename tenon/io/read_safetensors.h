// Reads a safetensors file from any input, for the functions that find out what kind of file they have. Of
// this room alone.
#pragma once

#include "tenon/io/input.h"
#include "tenon/io/state_dict.h"

namespace tenon::io {

/// Throws Error{Value} for a file that is damaged or of another kind. The checksum of a mapped input is not
/// looked at.
StateDict read_safetensors(const Input& input);

}  // namespace tenon::io
