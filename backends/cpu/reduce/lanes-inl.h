// The lanes of a chunk (reduce.h) in vectors, and how they are folded. Included once per instruction set by
// reductions, and by printed kernels that add up what they compute.

#if defined(TENON_CPU_REDUCE_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_REDUCE_LANES_INL
#undef TENON_CPU_REDUCE_LANES_INL
#else
#define TENON_CPU_REDUCE_LANES_INL
#endif

#include <type_traits>

#include "backends/cpu/pointwise/simd_ops-inl.h"
#include "backends/cpu/reduce/reduce_ops.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Not inlined: a chunk has sixteen of them.
template <class D>
HWY_NOINLINE hn::Vec<D> multiply_int64(D d, hn::Vec<D> a, hn::Vec<D> b) {
  return per_lane(d, a, b, [](int64_t x, int64_t y) { return detail::combine(ReduceOp::Prod, x, y); });
}

template <ReduceOp kOp, class D, class V = hn::Vec<D>>
HWY_INLINE V combine(D d, V earlier, V later) {
  using T = hn::TFromD<D>;
  if constexpr (kOp == ReduceOp::Sum) {
    return hn::Add(earlier, later);
  } else if constexpr (kOp == ReduceOp::Prod && std::is_same_v<T, int64_t>) {
    return multiply_int64(d, earlier, later);
  } else if constexpr (kOp == ReduceOp::Prod) {
    return hn::Mul(earlier, later);
  } else if constexpr (!hwy::IsFloat<T>()) {
    return kOp == ReduceOp::Max ? hn::Max(earlier, later) : hn::Min(earlier, later);
  } else {
    // Of zeros of either sign, these instructions give now the first operand and now the second one. The bits
    // of 0 and -0 in common are 0, those of either are -0.
    const V one_way = kOp == ReduceOp::Max ? hn::Max(earlier, later) : hn::Min(earlier, later);
    const V other_way = kOp == ReduceOp::Max ? hn::Max(later, earlier) : hn::Min(later, earlier);
    const V number = kOp == ReduceOp::Max ? hn::And(one_way, other_way) : hn::Or(one_way, other_way);
    const auto nan = hn::Or(is_nan(d, earlier), is_nan(d, later));
    return hn::IfThenElse(nan, hn::Set(d, std::numeric_limits<T>::quiet_NaN()), number);
  }
}

/// At most a chunk's lanes, so that a wide vector of narrow elements still has whole lanes.
template <class T>
using LaneTag = hn::CappedTag<T, kReduceLanes>;

template <class D>
constexpr size_t kVecs = kReduceLanes / hn::MaxLanes(D());

/// Folds the lanes of one vector.
template <ReduceOp kOp, class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE T fold_vector(D d, V v) {
  if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
    const hn::Half<D> dh;
    return fold_vector<kOp>(dh, combine<kOp>(dh, hn::LowerHalf(dh, v), hn::UpperHalf(dh, v)));
  } else {
    HWY_ALIGN T x[hn::MaxLanes(D())];
    hn::Store(v, d, x);
#pragma GCC unroll 4
    for (size_t half = hn::MaxLanes(D()) / 2; half > 0; half /= 2) {
      for (size_t l = 0; l < half; ++l) x[l] = detail::combine(kOp, x[l], x[l + half]);
    }
    return x[0];
  }
}

/// The lanes of a finished chunk, in kVecs vectors, in one value.
template <ReduceOp kOp, class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE T fold_vectors(D d, V (&v)[kVecs<D>]) {
#pragma GCC unroll 4
  for (size_t half = kVecs<D> / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (size_t i = 0; i < half; ++i) v[i] = combine<kOp>(d, v[i], v[i + half]);
  }
  return fold_vector<kOp>(d, v[0]);
}

/// The last `n` elements at `from`, fewer than a chunk's lanes, and ones where there are no more.
HWY_INLINE void pad_lanes(float* to, const float* from, size_t n) {
  for (size_t i = 0; i < kReduceLanes; ++i) to[i] = i < n ? from[i] : 1.0f;
}

}  // namespace
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
