// The general path of pointwise calls, for any shapes, strides, dtypes and devices. Internal to tenon/iter.
#pragma once

#include <algorithm>
#include <cstring>

#include "tenon/iter/host.h"
#include "tenon/iter/pointwise.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::detail {

/// The numbers of a call in 8 bytes each, as kernels take them.
class ScalarBlock {
 public:
  const uint64_t* data() const noexcept { return numbers_; }

  /// Stores a number exactly. False if its category is higher than that of `type`, or if it does not fit.
  bool put_exact(size_t i, const Scalar& s, expr::Type type) noexcept {
    if (s.is_complex()) return false;
    return put_real(i, s, type);
  }

  /// Stores the real or the imaginary part of a number.
  void put_part(size_t i, const Scalar& s, bool imaginary, expr::Type type) noexcept {
    put_real(i, imaginary ? Scalar(s.to_complex().imag()) : s, type);
  }

 private:
  bool put_real(size_t i, const Scalar& s, expr::Type type) noexcept {
    switch (type) {
      // Integers round once: to float, not to double and then to float.
      case expr::Type::F32:
        return store(i, s.is_integral() ? static_cast<float>(s.to_int()) : static_cast<float>(s.to_double()));
      case expr::Type::F64:
        return store(i, s.to_double());
      case expr::Type::I32:
        return s.is_integral() && s.to_int() == static_cast<int32_t>(s.to_int()) &&
               store(i, static_cast<int32_t>(s.to_int()));
      default:
        return s.is_integral() && store(i, s.to_int());
    }
  }

  template <class T>
  bool store(size_t i, T value) noexcept {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    numbers_[i] = bits;
    return true;
  }
  uint64_t numbers_[2 * PointwiseInfo::kMaxScalars];
};

/// Fills the block of a repeated operand with its element, of the size of T.
template <class T>
void fill_repeated(char* block, const void* element) {
  T v, all[HostKernel::kRepeatedBytes / sizeof(T)];
  std::memcpy(&v, element, sizeof v);
  std::fill(std::begin(all), std::end(all), v);
  std::memcpy(block, all, sizeof all);
}

struct OutputRules {
  bool in_place = false;  ///< The one output is operand 0.
  bool resizes = false;   ///< Outputs without elements get the result's shape.
};

/// Output i is written to `*outs[i]`; if that is null, it is allocated and becomes the next of `results`.
void general_pointwise(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                       std::span<const Scalar* const> scalars, std::span<const Tensor* const> outs,
                       OutputRules rules, std::span<Tensor> results);

}  // namespace tenon::detail
