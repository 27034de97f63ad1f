// Reads checkpoints of every format from any input, for load in C++ and Python. Independent of devices: who
// reads says where storages go.
#pragma once

#include <functional>
#include <string>

#include "tenon/io/input.h"
#include "tenon/io/value.h"

namespace tenon::io {

/// Puts a storage, which is in host memory, on the device that the file names ("cpu", "cuda:0"), or another.
using Place = std::function<Storage(Storage storage, const std::string& device)>;

struct ReadOptions {
  Place place = {};  ///< None: storages stay in host memory.
  /// Bytes may follow what tenon.save wrote: the input is an open file, which has more of the caller's.
  bool may_go_on = false;
  bool map = false;  ///< The caller wants a mapped file.
};

struct Checkpoint {
  Value value;
  /// Lists or dicts contain themselves, which Python can show.
  bool is_circular = false;
  uint64_t end;  ///< Where the value ends in the input.
};

/// A file of any format. Throws Error{Value} for one that is none, is damaged, or would take more than its
/// size allows, and Error{OutOfMemory}.
Checkpoint read_checkpoint(const Input& input, const ReadOptions& options = {});

}  // namespace tenon::io
