// Reads checkpoints of every format from any input, for load in C++ and Python. Knows nothing of devices: who
// reads says where storages go.
#pragma once

#include <functional>
#include <string>

#include "tenon/io/input.h"
#include "tenon/io/value.h"

namespace tenon::io {

/// Puts a storage, which is in host memory, on the device that the file names ("cpu", "cuda:0"), or another.
using Place = std::function<Storage(Storage storage, const std::string& device)>;

/// Whether the bytes begin as a zip archive does.
bool is_zip(const Input& input);

/// A zip archive that PyTorch wrote. Throws Error{Value} for anything else.
Value read_pytorch(const Input& input, const Place& place = {});

/// A file of any format. Throws Error{Value} for one that is none.
Value read_checkpoint(const Input& input);

}  // namespace tenon::io
