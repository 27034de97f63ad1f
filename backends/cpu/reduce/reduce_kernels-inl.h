// Block reductions of one type. Included once per instruction set by reduce_kernels_float.cc and
// reduce_kernels_integer.cc, which export `ReduceTable<T>`.

#if defined(TENON_CPU_REDUCE_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_REDUCE_KERNELS_INL
#undef TENON_CPU_REDUCE_KERNELS_INL
#else
#define TENON_CPU_REDUCE_KERNELS_INL
#endif

#include <algorithm>
#include <type_traits>

#include "backends/cpu/pointwise/simd_ops-inl.h"
#include "backends/cpu/reduce/reduce_kernels.h"
#include "backends/cpu/reduce/reduce_ops.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <ReduceOp kOp, class D, class V = hn::Vec<D>>
HWY_INLINE V combine(D d, V earlier, V later) {
  using T = hn::TFromD<D>;
  if constexpr (kOp == ReduceOp::Sum) {
    return hn::Add(earlier, later);
  } else if constexpr (kOp == ReduceOp::Prod && std::is_same_v<T, int64_t>) {
    return per_lane(d, earlier, later, [](T x, T y) { return detail::combine(ReduceOp::Prod, x, y); });
  } else if constexpr (kOp == ReduceOp::Prod) {
    return hn::Mul(earlier, later);
  } else if constexpr (kOp == ReduceOp::Max) {
    return maximum(d, earlier, later);
  } else {
    return minimum(d, earlier, later);
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

/// kCount chunks side by side: their sums do not wait for one another.
template <ReduceOp kOp, size_t kCount, class D, class T = hn::TFromD<D>>
HWY_INLINE void some_chunks(D d, const T* p, T* out) {
  using V = hn::Vec<D>;
  constexpr size_t kLanes = hn::MaxLanes(D());
  V sum[kCount][kVecs<D>];
#pragma GCC unroll 8
  for (size_t c = 0; c < kCount; ++c) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs<D>; ++v) sum[c][v] = hn::Set(d, detail::identity<T>(kOp));
  }
  for (size_t i = 0; i < kReduceChunk; i += kReduceLanes) {
#pragma GCC unroll 8
    for (size_t c = 0; c < kCount; ++c) {
#pragma GCC unroll 8
      for (size_t v = 0; v < kVecs<D>; ++v) {
        sum[c][v] = combine<kOp>(d, sum[c][v], hn::LoadU(d, p + c * kReduceChunk + i + v * kLanes));
      }
    }
  }
#pragma GCC unroll 8
  for (size_t c = 0; c < kCount; ++c) out[c] = fold_vectors<kOp>(d, sum[c]);
}

template <ReduceOp kOp, class T>
void chunks(const T* p, size_t count, T* out) {
  const LaneTag<T> d;
  constexpr size_t kTogether = std::max<size_t>(1, 8 / kVecs<LaneTag<T>>);
  size_t c = 0;
  for (; c + kTogether <= count; c += kTogether)
    some_chunks<kOp, kTogether>(d, p + c * kReduceChunk, out + c);
  for (; c < count; ++c) some_chunks<kOp, 1>(d, p + c * kReduceChunk, out + c);
}

template <ReduceOp kOp, class T>
void lanes(T* lanes, size_t at, const T* p, size_t n) {
  const LaneTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(LaneTag<T>());
  for (; at != 0 && n > 0; at = (at + 1) % kReduceLanes, ++p, --n)
    lanes[at] = detail::combine(kOp, lanes[at], *p);
  if (n == 0) return;
  hn::Vec<LaneTag<T>> sum[kVecs<LaneTag<T>>];
#pragma GCC unroll 8
  for (size_t v = 0; v < kVecs<LaneTag<T>>; ++v) sum[v] = hn::LoadU(d, lanes + v * kLanes);
  for (; n >= kReduceLanes; p += kReduceLanes, n -= kReduceLanes) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs<LaneTag<T>>; ++v)
      sum[v] = combine<kOp>(d, sum[v], hn::LoadU(d, p + v * kLanes));
  }
#pragma GCC unroll 8
  for (size_t v = 0; v < kVecs<LaneTag<T>>; ++v) hn::StoreU(sum[v], d, lanes + v * kLanes);
  for (size_t l = 0; l < n; ++l) lanes[l] = detail::combine(kOp, lanes[l], p[l]);
}

/// to = from op row over `width` elements; the lane's first row has the identity for `from`, which is then
/// null.
template <ReduceOp kOp, bool kFirst, class T>
HWY_INLINE void one_row(T* to, const T* row, size_t width, const T* ahead) {
  const LaneTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(LaneTag<T>());
  constexpr size_t kLine = std::max<size_t>(kLanes, 64 / sizeof(T));
  const auto identity = hn::Set(d, detail::identity<T>(kOp));
  const auto step = [&](size_t j) HWY_ATTR {
    const auto before = kFirst ? identity : hn::LoadU(d, to + j);
    hn::StoreU(combine<kOp>(d, before, hn::LoadU(d, row + j)), d, to + j);
  };
  size_t j = 0;
  for (; j + kLine <= width; j += kLine) {
    hwy::Prefetch(ahead + j);
#pragma GCC unroll 8
    for (size_t v = 0; v < kLine; v += kLanes) step(j + v);
  }
  for (; j + kLanes <= width; j += kLanes) step(j);
  for (; j < width; ++j) to[j] = detail::combine(kOp, kFirst ? detail::identity<T>(kOp) : to[j], row[j]);
}

template <ReduceOp kOp, class T>
void rows(T* lanes, size_t within, size_t width, const T* p, ptrdiff_t stride, size_t rows) {
  // Row by row, so that memory is read in order; the sums stay in the L1 cache, and a lane's turn comes every
  // 16 rows. Rows may be pages apart, which no hardware prefetcher follows.
  const ptrdiff_t ahead = 8 * stride;
  for (; within < kReduceLanes && rows > 0; ++within, --rows, p += stride) {
    one_row<kOp, true>(lanes + within * kReduceStrip, p, width, rows > 8 ? p + ahead : p);
  }
  for (; rows > 0; ++within, --rows, p += stride) {
    one_row<kOp, false>(lanes + within % kReduceLanes * kReduceStrip, p, width, rows > 8 ? p + ahead : p);
  }
}

template <ReduceOp kOp, class T>
T fold(const T* lanes) {
  const LaneTag<T> d;
  hn::Vec<LaneTag<T>> sum[kVecs<LaneTag<T>>];
  for (size_t v = 0; v < kVecs<LaneTag<T>>; ++v) sum[v] = hn::LoadU(d, lanes + v * hn::Lanes(d));
  return fold_vectors<kOp>(d, sum);
}

template <ReduceOp kOp, class T>
void merge_strips(const T* earlier, T* later, size_t width) {
  const LaneTag<T> d;
  for (size_t j = 0; j < width; j += hn::Lanes(d)) {
    hn::StoreU(combine<kOp>(d, hn::LoadU(d, earlier + j), hn::LoadU(d, later + j)), d, later + j);
  }
}

template <ReduceOp kOp, class T>
void fold_strip(T* to, const T* lanes, size_t used, size_t width) {
  const LaneTag<T> d;
  using V = hn::Vec<LaneTag<T>>;
  for (size_t j = 0; j < width; j += hn::Lanes(d)) {
    V x[kReduceLanes];
    for (size_t l = 0; l < kReduceLanes; ++l) {
      x[l] = l < used ? hn::LoadU(d, lanes + l * kReduceStrip + j) : hn::Set(d, detail::identity<T>(kOp));
    }
#pragma GCC unroll 4
    for (size_t half = kReduceLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (size_t l = 0; l < half; ++l) x[l] = combine<kOp>(d, x[l], x[l + half]);
    }
    hn::StoreU(x[0], d, to + j);
  }
}

template <ReduceOp kOp, class T>
constexpr ReduceKernels<T> entry() {
  if constexpr (std::is_same_v<T, uint8_t> && (kOp == ReduceOp::Sum || kOp == ReduceOp::Prod)) {
    return {};
  } else {
    return {&chunks<kOp, T>, &lanes<kOp, T>,      &fold<kOp, T>,
            &rows<kOp, T>,   &fold_strip<kOp, T>, &merge_strips<kOp, T>};
  }
}

}  // namespace

template <class T>
struct ReduceTable {
  static constexpr ReduceKernels<T> kTable[4] = {entry<ReduceOp::Sum, T>(), entry<ReduceOp::Prod, T>(),
                                                 entry<ReduceOp::Max, T>(), entry<ReduceOp::Min, T>()};
};

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
