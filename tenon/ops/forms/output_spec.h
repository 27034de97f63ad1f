// OutputSpec: what a shape function says of an operator's output: sizes, strides and dtype.
// Used by shape functions (shapes.cc of each family), by the structured call, which allocates from it, and by
// the meta device, which is nothing else. Knows nothing of elements.
#pragma once

#include <span>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/core/tensor_header.h"

namespace tenon {

/// What a kernel finds in its output. Zeros fresh from the system cost nothing.
enum class Elements : uint8_t { Any, Zero };

struct OutputSpec {
  Dims sizes;
  Dims strides;  ///< Where not contiguous.
  DType dtype = DType::Float32;
  Elements elements = Elements::Any;
  bool contiguous = true;
  bool set = false;
};

/// Takes what a shape function says, once for each result, by its position. Results that the schema makes
/// aliases of arguments are not among them. A shape function checks all arguments, and throws before it says
/// anything.
class OutputSpecs {
 public:
  /// Keeps what is said.
  explicit OutputSpecs(std::span<OutputSpec> specs) noexcept : specs_(specs.data()) {}
  /// Makes new tensors of what is said, at once: a call that returns new tensors keeps no specs.
  OutputSpecs(Tensor* outputs, Device device) noexcept : outputs_(outputs), device_(device) {}

  /// Output `i` has these sizes, contiguous.
  void set(size_t i, IntArrayRef sizes, DType dtype, Elements elements = Elements::Any);
  /// The same with strides, which may be zero or negative.
  void set_strided(size_t i, IntArrayRef sizes, IntArrayRef strides, DType dtype,
                   Elements elements = Elements::Any);
  /// The sizes of `source`, with its dimensions in the same order in memory.
  void set_like(size_t i, HeaderRef source, DType dtype, Elements elements = Elements::Any);

 private:
  OutputSpec* specs_ = nullptr;
  Tensor* outputs_ = nullptr;
  Device device_;
};

}  // namespace tenon
