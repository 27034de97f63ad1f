// Tensors as text: to_string prints what PyTorch's repr prints; describe prints a tensor's memory layout.
// The values that describe tensors (dtypes, devices, sizes, numbers) print what Python's print() prints. Used
// by Python's repr, by C++ callers and by tests. Reads elements, changes nothing.
#pragma once

#include <concepts>
#include <iosfwd>
#include <optional>
#include <string>

#include "tenon/core/stream.h"
#include "tenon/core/tensor.h"

namespace tenon {

/// How numbers are shown.
struct PrintOptions {
  int precision = 4;         ///< Digits after the point.
  int64_t threshold = 1000;  ///< More elements than this are summarised ...
  int64_t edge_items = 3;    ///< ... by so many at each end of a dimension.
  int line_width = 80;
  std::optional<bool> scientific;  ///< 1.0000e+00; unless given, where the numbers need it.
};

/// "tensor([[1., 2.],\n        [3., 4.]])", followed by those of dtype, device, requires_grad and grad_fn
/// that are not the default.
std::string to_string(const Tensor& t, const PrintOptions& options = {});

/// Prints to_string(t).
std::ostream& operator<<(std::ostream& out, const Tensor& t);

/// "tenon.float32", "tenon.strided", "tenon.channels_last".
std::ostream& operator<<(std::ostream& out, DType dtype);
std::ostream& operator<<(std::ostream& out, Layout layout);
std::ostream& operator<<(std::ostream& out, MemoryFormat format);
/// "True", "3", "2.5", "(1+2j)": what Python prints for the number.
std::string number_text(const Scalar& number);

/// Types that print. Their operator is a template, so that what converts to them is not printed as one.
template <class T>
concept PrintedExactly = std::same_as<T, Device> || std::same_as<T, Stream> || std::same_as<T, Scalar> ||
    std::same_as<T, Dims> || std::same_as<T, IntArrayRef> || std::same_as<T, TensorOptions>;
/// "cuda:1", "2.5", "[2, 3]", "TensorOptions(dtype=tenon.float64, device=cpu)".
template <PrintedExactly T>
std::ostream& operator<<(std::ostream& out, const T& value);

/// "grad_fn=<MulBackward0>", "requires_grad=True", or empty; defined in tenon/autograd.
std::string history_note(const Tensor& t);

/// Sizes, strides, offset, dtype, device, key set, storage address, allocator, bytes and use count, a line
/// each.
std::string describe(const Tensor& t);

}  // namespace tenon
