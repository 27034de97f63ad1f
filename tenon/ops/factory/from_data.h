// tensor(data) and from_blob: tensors made from C++ values, and over memory that the caller owns. Used by
// C++ callers, tests and the Python binding. Independent of operators.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon {

/// Nested numbers: `{{1., 2.}, {3., 4.}}`. Use it as an argument type only.
class TensorData {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> TensorData(T value) : scalar_(value), leaf_(true) {}
  TensorData(std::initializer_list<TensorData> values) : children_(values) {}

 private:
  friend Tensor tensor(const TensorData& data, TensorOptions options);

  Scalar scalar_;
  bool leaf_ = false;
  std::vector<TensorData> children_;
};

/// A tensor of the given numbers. Unless options say otherwise, bools make a bool tensor, integers int64, and
/// floats the default dtype. Throws Error{Value} for rows of different lengths.
Tensor tensor(const TensorData& data, TensorOptions options = {});

namespace detail {
Tensor tensor_from_memory(const void* data, int64_t count, DType stored, DType wanted,
                          const TensorOptions& options);

template <class T>
DType literal_dtype() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else if constexpr (std::is_integral_v<T>)
    return DType::Int64;
  else
    return default_dtype();
}
}  // namespace detail

/// A one-dimensional tensor of the given numbers, by the same rules.
template <class T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) Tensor
    tensor(std::span<const T> values, TensorOptions options = {}) {
  return detail::tensor_from_memory(values.data(), static_cast<int64_t>(values.size()), dtype_of<T>,
                                    detail::literal_dtype<T>(), options);
}
template <class T>
requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) Tensor
    tensor(const std::vector<T>& values, TensorOptions options = {}) {
  return tensor(std::span<const T>(values), options);
}

/// Called when the last tensor over the memory is destroyed.
using BlobDeleter = void (*)(void* context) noexcept;

/// A tensor over memory of the caller, which must outlive it; nothing is copied. `data` is the address of
/// element [0, ..., 0]; strides are in elements and may be negative. `deleter(context)` runs when the last
/// tensor over the memory is destroyed.
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, BlobDeleter deleter, void* context,
                 TensorOptions options = {});
Tensor from_blob(void* data, IntArrayRef sizes, TensorOptions options = {});
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, TensorOptions options = {});

/// As from_blob, with any callable that takes `data` as the deleter.
template <class D>
requires(std::invocable<D, void*> && !std::is_convertible_v<D, IntArrayRef>) Tensor
    from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, D deleter, TensorOptions options = {}) {
  struct Owner {
    D deleter;
    void* data;
  };
  return from_blob(
      data, sizes, strides,
      [](void* context) noexcept {
        auto* owner = static_cast<Owner*>(context);
        owner->deleter(owner->data);
        delete owner;
      },
      new Owner{std::move(deleter), data}, options);
}

}  // namespace tenon
