// Pickler: writes a value as Tenon's own checkpoints have it, a pickle of protocol 4 with tensors inside.
// Used by save in C++ and Python. Independent of files.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/io/node.h"
#include "tenon/io/replace_file.h"

namespace tenon::io {

/// Throws Error{Value} for a value that could be written, and load would refuse (unpickled_shape.h).
void check_loadable(Node* root, Nodes& nodes);

/// A checkpoint as bytes: texts of its own, and the memory of large tensors, which it keeps.
class OwnCheckpoint {
 public:
  /// Tensors go to host memory; one with a history goes without it, as a leaf that requires grad. Throws
  /// Error{Device} for a tensor on meta, and Error{Value} for values that nest more than 1,000 deep.
  explicit OwnCheckpoint(const Node& root);

  /// The bytes of the file, one part after another.
  std::span<const Bytes> parts() const noexcept { return parts_; }

 private:
  friend class Pickler;
  std::deque<std::string> texts_;
  std::vector<Tensor> tensors_;
  std::vector<Bytes> parts_;
};

}  // namespace tenon::io
