// OutputSpec: sizes, strides and dtype of an operator's output, as its shape function computes them. Used by
// shape functions (shapes.cc of each family) and by the structured call, which allocates outputs from it; on
// the meta device that is the whole call. Independent of elements.
#pragma once

#include <span>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/core/tensor.h"
#include "tenon/core/tensor_header.h"

namespace tenon {

/// What a kernel's output contains before the kernel runs. Memory fresh from the system is zero already.
enum class Elements : uint8_t { Any, Zero };

struct OutputSpec {
  Dims sizes;
  Dims strides;  ///< Where not contiguous.
  DType dtype = DType::Float32;
  Elements elements = Elements::Any;
  bool contiguous = true;
  bool set = false;
};

/// Receives the outputs of a shape function: one call of a `set` function for each result that the schema
/// does not declare an alias of an argument. A shape function checks all arguments first, and throws before
/// it sets anything.
class OutputSpecs {
 public:
  /// Stores the specs.
  explicit OutputSpecs(std::span<OutputSpec> specs) noexcept : specs_(specs.data()) {}
  /// Allocates each output at once: a call that returns new tensors stores no specs.
  OutputSpecs(Tensor* outputs, Device device) noexcept : outputs_(outputs), device_(device) {}

  /// Outputs that are allocated from now on are in pinned host memory.
  void pin() noexcept {
    pinned_ = outputs_ ? outputs_ : pinned_;
    outputs_ = nullptr;
  }
  /// Output `i` has these sizes, contiguous.
  void set(size_t i, IntArrayRef sizes, DType dtype, Elements elements = Elements::Any) {
    if (outputs_ && elements == Elements::Any) [[likely]]
      outputs_[i] = make_empty(sizes, dtype, device_);
    else
      set_otherwise(i, sizes, dtype, elements);
  }
  /// Output `i` has these sizes and strides; strides may be zero or negative.
  void set_strided(size_t i, IntArrayRef sizes, IntArrayRef strides, DType dtype,
                   Elements elements = Elements::Any);
  /// Output `i` has the sizes of `source`, with the dimensions in the same order in memory.
  void set_like(size_t i, HeaderRef source, DType dtype, Elements elements = Elements::Any);

 private:
  void set_otherwise(size_t i, IntArrayRef sizes, DType dtype, Elements elements);

  OutputSpec* specs_ = nullptr;
  Tensor* outputs_ = nullptr;
  Tensor* pinned_ = nullptr;  // in place of outputs_
  Device device_;
};

}  // namespace tenon
