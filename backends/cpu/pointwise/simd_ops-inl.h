// What printed kernels call besides Highway: operations that Highway lacks, or that its targets do
// differently. Included by printed files on every pass of foreach_target. Every function gives the same bits
// on every target.
#if defined(TENON_SIMD_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_SIMD_OPS_INL_H_
#undef TENON_SIMD_OPS_INL_H_
#else
#define TENON_SIMD_OPS_INL_H_
#endif

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/copy/half-inl.h"
#include "backends/cpu/pointwise/exact_mod.h"
#include "backends/cpu/pointwise/kernel.h"
#include "hwy/highway.h"
#include "tenon/expr/pi_reduce.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

namespace hn = ::hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using F64 = hn::ScalableTag<double>;
using I32 = hn::ScalableTag<int32_t>;
using I64 = hn::ScalableTag<int64_t>;

/// Number `i` of a call.
template <class T>
HWY_INLINE T number(const void* numbers, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(numbers) + 8 * i, sizeof value);
  return value;
}

/// Applies a scalar function lane by lane, for what no instruction set has.
template <class D, class F>
HWY_INLINE hn::Vec<D> per_lane(D d, hn::Vec<D> a, hn::Vec<D> b, F f) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T x[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T y[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  for (size_t i = 0; i < hn::Lanes(d); ++i) x[i] = f(x[i], y[i]);
  return hn::Load(d, x);
}

#if !HWY_NATIVE_FMA
// The sum rounded to odd (the neighbour with an odd last bit, when inexact), so that the second rounding, to
// float, comes out as if it were the only one: Boldo and Melquiond, 2008.
template <class DD>
HWY_NOINLINE hn::Vec<DD> add_round_to_odd(DD dd, hn::Vec<DD> p, hn::Vec<DD> c) {
  const hn::RebindToSigned<DD> di;
  const auto sum = hn::Add(p, c);
  const auto back = hn::Sub(sum, p);
  const auto error = hn::Add(hn::Sub(p, hn::Sub(sum, back)), hn::Sub(c, back));
  const auto zero = hn::Zero(dd);
  const auto bits = hn::BitCast(di, sum);
  const auto one = hn::Set(di, 1);
  // NaN (from infinities) compares false, and an exact sum stays.
  const auto inexact = hn::Or(hn::Gt(error, zero), hn::Lt(error, zero));
  const auto even = hn::RebindMask(dd, hn::Eq(hn::And(bits, one), hn::Zero(di)));
  // Away from zero where the error has the sum's sign.
  const auto away = hn::Not(hn::Lt(hn::BitCast(di, hn::Xor(error, sum)), hn::Zero(di)));
  const auto moved = hn::BitCast(dd, hn::Add(bits, hn::IfThenElse(away, one, hn::Set(di, -1))));
  return hn::IfThenElse(hn::And(inexact, even), moved, sum);
}

// a * b is exact in double, and so is nearly always the double rounding of a * b + c; not where the sum is
// halfway between two floats or is denormal as a float.
template <class DH>
HWY_INLINE hn::Vec<DH> fused_mul_add_half(DH dh, hn::Vec<DH> a, hn::Vec<DH> b, hn::Vec<DH> c) {
  const hn::Rebind<double, DH> dd;
  const hn::RebindToSigned<decltype(dd)> di;
  const auto p = hn::Mul(hn::PromoteTo(dd, a), hn::PromoteTo(dd, b));
  const auto wide_c = hn::PromoteTo(dd, c);
  auto sum = hn::Add(p, wide_c);
  const auto below = hn::And(hn::BitCast(di, sum), hn::Set(di, 0x1FFFFFFF));
  const auto halfway = hn::RebindMask(dd, hn::Eq(below, hn::Set(di, 0x10000000)));
  const auto denormal = hn::Lt(hn::Abs(sum), hn::Set(dd, 0x1p-126));
  if (!hn::AllFalse(dd, hn::Or(halfway, denormal))) sum = add_round_to_odd(dd, p, wide_c);
  return hn::DemoteTo(dh, sum);
}
#endif

#if !HWY_NATIVE_FMA
// Out of line: this is the compatible tier, and its kernels would otherwise be most of the library.
template <class D>
HWY_NOINLINE hn::Vec<D> emulated_mul_add(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 4) {
    const hn::Half<D> dh;
    return hn::Combine(
        d, fused_mul_add_half(dh, hn::UpperHalf(dh, a), hn::UpperHalf(dh, b), hn::UpperHalf(dh, c)),
        fused_mul_add_half(dh, hn::LowerHalf(dh, a), hn::LowerHalf(dh, b), hn::LowerHalf(dh, c)));
  } else {
    HWY_ALIGN T z[HWY_MAX_BYTES / sizeof(T)];
    hn::Store(c, d, z);
    const T* next = z;
    return per_lane(d, a, b, [&next](T x, T y) { return std::fma(x, y, *next++); });
  }
}
#endif

/// a * b + c; of floats with one rounding, of integers wrapping.
template <class D>
HWY_INLINE hn::Vec<D> fused_mul_add([[maybe_unused]] D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c) {
  if constexpr (!std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::Add(hn::Mul(a, b), c);
  } else {
#if HWY_NATIVE_FMA
    return hn::MulAdd(a, b, c);
#else
    return emulated_mul_add(d, a, b, c);
#endif
  }
}

/// a * b - c, of floats with one rounding.
template <class D>
HWY_INLINE hn::Vec<D> fused_mul_sub([[maybe_unused]] D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c) {
#if HWY_NATIVE_FMA
  return hn::MulSub(a, b, c);
#else
  return fused_mul_add(d, a, b, hn::Neg(c));
#endif
}

/// c - a * b, of floats with one rounding.
template <class D>
HWY_INLINE hn::Vec<D> fused_neg_mul_add([[maybe_unused]] D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c) {
#if HWY_NATIVE_FMA
  return hn::NegMulAdd(a, b, c);
#else
  return fused_mul_add(d, hn::Neg(a), b, c);
#endif
}

template <class D>
HWY_INLINE hn::Mask<D> is_nan(D, hn::Vec<D> a) {
  // Not(==), because Highway's != is an ordered comparison on some targets.
  return hn::Not(hn::Eq(a, a));
}

/// The smaller; NaN if either is. The second of equal operands, so that zeros come out alike everywhere.
template <class D>
HWY_INLINE hn::Vec<D> minimum(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
#if HWY_ARCH_X86
    // The instruction gives the second operand where the first is not smaller.
    return hn::IfThenElse(is_nan(d, a), a, hn::Min(a, b));
#else
    return hn::IfThenElse(hn::Or(is_nan(d, a), hn::Lt(a, b)), a, b);
#endif
  } else {
    return hn::Min(a, b);
  }
}

/// The larger; as `minimum`.
template <class D>
HWY_INLINE hn::Vec<D> maximum(D d, hn::Vec<D> a, hn::Vec<D> b) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
#if HWY_ARCH_X86
    return hn::IfThenElse(is_nan(d, a), a, hn::Max(a, b));
#else
    return hn::IfThenElse(hn::Or(is_nan(d, a), hn::Gt(a, b)), a, b);
#endif
  } else {
    return hn::Max(a, b);
  }
}

/// `minimum` of a and a limit that is neither NaN nor zero.
template <class D>
HWY_INLINE hn::Vec<D> no_more_than(D, hn::Vec<D> a, hn::Vec<D> limit) {
#if HWY_ARCH_X86
  return hn::Min(limit, a);
#else
  return hn::IfThenElse(hn::Lt(limit, a), limit, a);
#endif
}

/// `maximum` of a and a limit that is neither NaN nor zero.
template <class D>
HWY_INLINE hn::Vec<D> no_less_than(D, hn::Vec<D> a, hn::Vec<D> limit) {
#if HWY_ARCH_X86
  return hn::Max(limit, a);
#else
  return hn::IfThenElse(hn::Lt(a, limit), limit, a);
#endif
}

/// Whether one instruction multiplies by 2^n.
constexpr bool kScalesByPower = HWY_TARGET <= HWY_AVX3;

/// x * 2^n with one rounding, of a whole n.
template <class D>
HWY_INLINE hn::Vec<D> scale_by_power(D, hn::Vec<D> x, [[maybe_unused]] hn::Vec<D> n) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return hn::Vec<D>{_mm512_scalef_ps(x.raw, n.raw)};
  else
    return hn::Vec<D>{_mm512_scalef_pd(x.raw, n.raw)};
#else
  return x;
#endif
}

/// Integer quotient toward zero; x / 0 is 0, and the lowest integer / -1 wraps to itself.
template <class D>
HWY_INLINE hn::Vec<D> trunc_div(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  return per_lane(d, a, b, [](T x, T y) -> T {
    if (y == 0) return 0;
    if (y == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));
    return x / y;
  });
}

/// Remainder with the sign of the dividend, exact; of integers, x % 0 is 0.
template <class D>
HWY_INLINE hn::Vec<D> truncated_mod(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_floating_point_v<T>) {
    // A quotient below 2^mantissa rounds to a whole number at most one too large; the rest is a multiple of
    // the divisor's last place and not larger than the divisor, so that the fma is exact, and so is one step
    // back.
    const auto x = hn::Abs(a), y = hn::Abs(b);
    const auto q = hn::Trunc(hn::Div(x, y));
    const auto rest = fused_mul_add(d, hn::Neg(q), y, x);
    const auto near = hn::IfThenElse(hn::Lt(rest, hn::Zero(d)), hn::Add(rest, y), rest);
    const auto signed_rest = hn::CopySign(near, a);
    constexpr T kLimit = T(int64_t{1} << (std::numeric_limits<T>::digits - 1));
    // The divisor is finite, too: 0 * inf is none.
    const auto small =
        hn::And(hn::Lt(q, hn::Set(d, kLimit)), hn::Lt(y, hn::Set(d, std::numeric_limits<T>::infinity())));
    if (HWY_LIKELY(hn::AllTrue(d, small))) return signed_rest;
    return hn::IfThenElse(small, signed_rest, per_lane(d, a, b, [](T u, T v) { return exact_mod(u, v); }));
  } else {
    return per_lane(d, a, b, [](T u, T v) -> T { return v == 0 || v == -1 ? 0 : u % v; });
  }
}

/// Which lanes are NaN. A comparison on AVX-512, where it beats the instruction that classifies numbers.
template <class V>
HWY_INLINE auto is_nan(V v) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Not(hn::Eq(v, v));
#else
  return hn::IsNaN(v);
#endif
}

/// Integer power, wrapping; a negative exponent gives the truncated reciprocal: 0, or 1 and -1 for those
/// bases.
template <class D>
HWY_INLINE hn::Vec<D> integer_power(D d, hn::Vec<D> a, hn::Vec<D> b) {
  using T = hn::TFromD<D>;
  using U = std::make_unsigned_t<T>;
  return per_lane(d, a, b, [](T x, T y) -> T {
    if (y < 0) return x == 1 ? 1 : x == -1 ? ((y & 1) != 0 ? -1 : 1) : 0;
    U power = 1, base = static_cast<U>(x);
    for (U left = static_cast<U>(y); left != 0; left >>= 1) {
      if ((left & 1) != 0) power *= base;
      base *= base;
    }
    return static_cast<T>(power);
  });
}

// Out of line, as it is rare and each sine has three.
template <class D>
HWY_NOINLINE hn::Vec<D> pi_reduce_large(D d, hn::Vec<D> x, int part) {
  return per_lane(d, x, x, [part](auto a, auto) { return expr::pi_reduce(a, part); });
}

/// Part `kPart` of the reduction by multiples of pi/2, where |x| is large; 0 elsewhere, and NaN of what is
/// not finite, for which no lane leaves the vector.
template <int kPart, class D>
HWY_INLINE hn::Vec<D> pi_reduce(D d, hn::Vec<D> x) {
  using T = hn::TFromD<D>;
  const auto size = hn::Abs(x);
  const auto large = hn::And(hn::Gt(size, hn::Set(d, static_cast<T>(expr::kPiReduceFrom))),
                             hn::Lt(size, hn::Set(d, std::numeric_limits<T>::infinity())));
  if (hn::AllFalse(d, large)) return hn::Sub(x, x);
  return pi_reduce_large(d, x, kPart);
}

// Whether masked loads and stores of 4- and 8-byte elements leave alone what is masked off. Highway speaks of
// all sizes.
constexpr bool kMasksAreSafe = !HWY_MEM_OPS_MIGHT_FAULT || HWY_TARGET == HWY_AVX2;

/// The first elements of a vector, which are there; the others are 1.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, hn::Mask<D> first, const hn::TFromD<D>* from) {
  return hn::IfThenElse(first, hn::MaskedLoad(first, d, from), hn::Set(d, hn::TFromD<D>{1}));
}

static_assert(2 * HWY_MAX_BYTES <= HostKernel::kRepeatedBytes);

/// Runs the last `n - begin` elements of a kernel, fewer than a vector, through a padded copy. So each
/// element sees the same instructions wherever it is. Elements have kParts of type T each.
template <class D, class T, size_t kOutputs, size_t kPointers, size_t kParts = 1>
HWY_NOINLINE void run_tail(PointwiseFn kernel, void* const* ptrs, size_t begin, size_t n,
                           const void* numbers) {
  constexpr bool kMasks = kMasksAreSafe && sizeof(T) == sizeof(hn::TFromD<D>) && kParts == 1;
  constexpr size_t kLanes = kParts * HWY_MAX_BYTES / sizeof(T);
  HWY_ALIGN T padded[kPointers][kLanes];
  void* tail_ptrs[kPointers];
  const size_t rest = kParts * (n - begin);
  const D d;
  [[maybe_unused]] const auto first = hn::FirstN(d, rest);
  for (size_t p = 0; p < kPointers; ++p) {
    tail_ptrs[p] = padded[p];
    if (p < kOutputs) continue;
    const T* from = static_cast<const T*>(ptrs[p]) + kParts * begin;
    if constexpr (kMasks)
      hn::Store(load_first(d, first, from), d, padded[p]);
    else
      for (size_t i = 0; i < kLanes; ++i) padded[p][i] = i < rest ? from[i] : T{1};
  }
  kernel(tail_ptrs, hn::Lanes(d), numbers, 0);
  for (size_t p = 0; p < kOutputs; ++p) {
    T* to = static_cast<T*>(ptrs[p]) + kParts * begin;
    if constexpr (kMasks)
      hn::BlendedStore(hn::Load(d, padded[p]), first, d, to);
    else
      std::memcpy(to, padded[p], rest * sizeof(T));
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // TENON_SIMD_OPS_INL_H_
