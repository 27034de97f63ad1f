// Scalar: a number of any category, as operators take it along with tensors. Used by operator signatures.
// Independent of tensors.
#pragma once

#include <complex>
#include <concepts>
#include <cstdint>

#include "tenon/core/dtype.h"
#include "tenon/core/half.h"

namespace tenon {

/// A bool, integer, real or complex number that remembers which of them it is.
class Scalar {
 public:
  enum class Kind : uint8_t { Bool, Int, Float, Complex };

  Scalar() noexcept : kind_(Kind::Int), int_(0) {}
  /// Takes bool exactly, so that no pointer converts to a Scalar.
  template <std::same_as<bool> T>
  Scalar(T v) noexcept : kind_(Kind::Bool), int_(v) {}
  /// An integer beyond int64, as elements of uint64 may be, is taken by tensors of uint64 and of floats.
  template <std::integral T>
  requires(!std::same_as<T, bool>) Scalar(T v)
  noexcept : kind_(Kind::Int), int_(static_cast<int64_t>(v)) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) == sizeof(int64_t)) {
      if (v > static_cast<T>(INT64_MAX)) [[unlikely]]
        int_ = INT64_MAX, beyond_ = v;
    }
  }
  template <std::floating_point T>
  Scalar(T v) noexcept : kind_(Kind::Float), real_(static_cast<double>(v)) {}
  Scalar(Half v) noexcept : Scalar(static_cast<float>(v)) {}
  Scalar(BFloat16 v) noexcept : Scalar(static_cast<float>(v)) {}
  Scalar(std::complex<double> v) noexcept : kind_(Kind::Complex), real_(v.real()), imag_(v.imag()) {}

  Kind kind() const noexcept { return kind_; }
  bool is_bool() const noexcept { return kind_ == Kind::Bool; }
  bool is_integral() const noexcept { return kind_ <= Kind::Int; }
  bool is_floating_point() const noexcept { return kind_ == Kind::Float; }
  bool is_complex() const noexcept { return kind_ == Kind::Complex; }

  /// The dtype of this number when nothing else decides: bool, int64, the default dtype, or the complex dtype
  /// of the default dtype.
  DType dtype() const noexcept { return dtype_of(kind_); }
  static DType dtype_of(Kind kind) noexcept;

  /// Whether it is an integer above INT64_MAX.
  bool is_beyond_int64() const noexcept { return kind_ == Kind::Int && beyond_ != 0; }

  /// Here and below, a complex number gives its real part.
  double to_double() const noexcept {
    if (kind_ >= Kind::Float) return real_;
    return is_beyond_int64() ? static_cast<double>(beyond_) : static_cast<double>(int_);
  }
  /// Truncates toward zero; a float outside int64 or a NaN gives INT64_MIN, an integer above it INT64_MAX.
  int64_t to_int() const noexcept {
    if (kind_ <= Kind::Int) return int_;
    return real_ >= -0x1p63 && real_ < 0x1p63 ? static_cast<int64_t>(real_) : INT64_MIN;
  }
  /// As to_int, but what uint64 holds is itself; negative integers wrap.
  uint64_t to_uint() const noexcept {
    if (is_beyond_int64()) return beyond_;
    const bool large = kind_ >= Kind::Float && real_ >= 0x1p63 && real_ < 0x1p64;
    return large ? static_cast<uint64_t>(real_) : static_cast<uint64_t>(to_int());
  }
  bool to_bool() const noexcept {
    return kind_ <= Kind::Int ? int_ != 0 : real_ != 0 || (kind_ == Kind::Complex && imag_ != 0);
  }
  std::complex<double> to_complex() const noexcept {
    return {to_double(), kind_ == Kind::Complex ? imag_ : 0.0};
  }

 private:
  Kind kind_;
  union {
    int64_t int_;
    double real_;
  };
  union {
    double imag_ = 0;
    uint64_t beyond_;  // of an integer: itself where int_ cannot hold it, else 0
  };
};

/// For an integer dtype, throws Error{Value} unless it can hold the value, truncated if it is a float. An
/// unsigned dtype also takes the negative of a value that it can hold, which wraps (-1 is 255), as in
/// PyTorch.
void check_fits(const Scalar& value, DType dtype, const char* op);

}  // namespace tenon
