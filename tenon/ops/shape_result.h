// ShapeResult: what a shape function says of an operator's outputs before anything is allocated.
// Used by shape functions (tenon/ops/shape) and by the structured call. Knows nothing of devices and
// elements.
#pragma once

#include <array>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/core/error.h"

namespace tenon {

/// Collects sizes and dtype of each output. A shape function checks all arguments and throws before it sets
/// anything.
class ShapeResult {
 public:
  static constexpr int kMaxOutputs = 6;

  struct Output {
    Dims sizes;
    DType dtype = DType::Float32;
    bool set = false;
  };

  /// Output `i` has these sizes, contiguous.
  void set(int i, IntArrayRef sizes, DType dtype) {
    outputs_[static_cast<size_t>(i)] = {sizes.to_dims(), dtype, true};
  }
  const Output& operator[](int i) const { return outputs_[static_cast<size_t>(i)]; }

 private:
  std::array<Output, kMaxOutputs> outputs_;
};

}  // namespace tenon
