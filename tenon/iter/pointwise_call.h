// The general path of pointwise operators: any shapes, strides, dtypes and devices. Internal to tenon/iter.
#pragma once

#include "tenon/iter/pointwise.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::detail {

/// A call's numbers as an array of the compute type, as kernels take them.
class ScalarBlock {
 public:
  const void* data() const noexcept { return bytes_; }

  /// False where the number is of a higher category than `type`, or does not fit.
  bool put_exact(size_t i, const Scalar& s, expr::ComputeType type) noexcept {
    if (s.is_complex()) return false;
    return put_real(i, s, type);
  }

  /// The real part, and behind it the imaginary one where `complex`; how many places they took.
  size_t put_parts(size_t i, const Scalar& s, bool complex, expr::ComputeType type) noexcept {
    put_real(i, s, type);
    if (complex) put_real(i + 1, Scalar(s.to_complex().imag()), type);
    return complex ? 2 : 1;
  }

 private:
  bool put_real(size_t i, const Scalar& s, expr::ComputeType type) noexcept {
    switch (type) {
      // Integers round once: to float, not to double and then to float.
      case expr::ComputeType::Float32:
        return store(i, s.is_integral() ? static_cast<float>(s.to_int()) : static_cast<float>(s.to_double()));
      case expr::ComputeType::Float64:
        return store(i, s.to_double());
      case expr::ComputeType::Int32:
        return s.is_integral() && s.to_int() == static_cast<int32_t>(s.to_int()) &&
               store(i, static_cast<int32_t>(s.to_int()));
      default:
        return s.is_integral() && store(i, s.to_int());
    }
  }

  template <class T>
  bool store(size_t i, T value) noexcept {
    reinterpret_cast<T*>(bytes_)[i] = value;
    return true;
  }
  alignas(8) unsigned char bytes_[2 * 8 * PointwiseInfo::kMaxScalars];
};

/// `out` null: the result is allocated. Otherwise it is written to `*out`, which is operand 0 where
/// `in_place`.
Tensor general_pointwise(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                         std::span<const Scalar* const> scalars, const Tensor* out, bool in_place);

}  // namespace tenon::detail
