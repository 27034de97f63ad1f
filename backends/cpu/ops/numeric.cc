// signbit, gcd, lcm, nextafter and frexp, which are made of bits and not of arithmetic.
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/half.h"
#include "tenon/generated/numeric/kernels.h"
#include "tenon/iter/cpu_kernel.h"

namespace tenon::cpu {
namespace {

template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;

TensorIterator of_two(const char* op, Tensor& out, const Tensor& self, const Tensor& other) {
  return TensorIteratorConfig()
      .set_op_name(op)
      .add_output(out)
      .add_input(self)
      .add_input(other)
      .promote_inputs_to_common_dtype(true)
      .build();
}

template <class T>
bool has_sign(T x) {
  if constexpr (std::is_integral_v<T>)
    return x < T{0};
  else
    return std::bit_cast<BitsOf<T>>(x) < 0;
}

/// The magnitude, in an unsigned type, which holds that of the smallest integer, too.
template <class T>
std::make_unsigned_t<T> magnitude(T x) {
  using Unsigned = std::make_unsigned_t<T>;
  return x < 0 ? static_cast<Unsigned>(Unsigned{0} - static_cast<Unsigned>(x)) : static_cast<Unsigned>(x);
}

/// Floating-point numbers in order are integers in order once negative ones are mirrored.
template <class T>
T next_after(T from, T to) {
  using Bits = BitsOf<T>;
  const auto a = static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(from));
  const auto b = static_cast<double>(static_cast<std::conditional_t<sizeof(T) == 8, double, float>>(to));
  if (std::isnan(a)) return from;
  if (std::isnan(b) || a == b) return to;
  constexpr Bits kSign = std::numeric_limits<Bits>::min();
  if (a == 0) return std::bit_cast<T>(static_cast<Bits>(b < 0 ? kSign | 1 : 1));
  const auto bits = std::bit_cast<Bits>(from);
  return std::bit_cast<T>(static_cast<Bits>(bits + ((a < b) == (a > 0) ? 1 : -1)));
}

template <class F>
void switch_integers(DType dtype, const char* op, F&& f) {
  TENON_DISPATCH_SWITCH(dtype, op, "the integers", TENON_CASES_INTEGRAL([&] {
                          f.template operator()<scalar_t>();
                        }) TENON_CASES_UNSIGNED([&] { f.template operator()<scalar_t>(); }));
}

}  // namespace

void signbit(const Tensor& self, Tensor& out) {
  const TensorIterator iter = TensorIteratorConfig()
                                  .set_op_name("signbit")
                                  .check_all_same_dtype(false)
                                  .add_output(out)
                                  .add_input(self)
                                  .build();
  TENON_DISPATCH_REAL_TYPES(self.dtype(), "signbit",
                            [&] { cpu_kernel(iter, [](scalar_t x) -> bool { return has_sign(x); }); });
}

void gcd(const Tensor& self, const Tensor& other, Tensor& out) {
  const TensorIterator iter = of_two("gcd", out, self, other);
  switch_integers(out.dtype(), "gcd", [&]<class scalar_t>() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
      return static_cast<scalar_t>(std::gcd(magnitude(a), magnitude(b)));
    });
  });
}

void lcm(const Tensor& self, const Tensor& other, Tensor& out) {
  const TensorIterator iter = of_two("lcm", out, self, other);
  switch_integers(out.dtype(), "lcm", [&]<class scalar_t>() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
      const auto x = magnitude(a), y = magnitude(b);
      const auto common = std::gcd(x, y);
      // It wraps as a product of integers does.
      return common == 0 ? scalar_t{0} : static_cast<scalar_t>(uint64_t{x} / common * y);
    });
  });
}

void nextafter(const Tensor& self, const Tensor& other, Tensor& out) {
  const TensorIterator iter = of_two("nextafter", out, self, other);
  TENON_DISPATCH_FLOATING_TYPES_AND2(DType::Float16, DType::BFloat16, out.dtype(), "nextafter", [&] {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t { return next_after(a, b); });
  });
}

void frexp(const Tensor& self, Tensor& out0, Tensor& out1) {
  const TensorIterator mantissas =
      TensorIteratorConfig().set_op_name("frexp").add_output(out0).add_input(self).build();
  const TensorIterator exponents = TensorIteratorConfig()
                                       .set_op_name("frexp")
                                       .check_all_same_dtype(false)
                                       .add_output(out1)
                                       .add_input(self)
                                       .build();
  TENON_DISPATCH_FLOATING_TYPES_AND2(DType::Float16, DType::BFloat16, self.dtype(), "frexp", [&] {
    using Wide = std::conditional_t<sizeof(scalar_t) == 8, double, float>;
    cpu_kernel(exponents, [](scalar_t x) -> int32_t {
      int exponent = 0;
      const auto wide = static_cast<Wide>(x);
      if (std::isfinite(wide)) std::frexp(wide, &exponent);
      return exponent;
    });
    cpu_kernel(mantissas, [](scalar_t x) -> scalar_t {
      int exponent = 0;
      return static_cast<scalar_t>(std::frexp(static_cast<Wide>(x), &exponent));
    });
  });
}

}  // namespace tenon::cpu
