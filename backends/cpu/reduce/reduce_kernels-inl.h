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

#include "backends/cpu/copy/half-inl.h"
#include "backends/cpu/pointwise/simd_ops-inl.h"
#include "backends/cpu/reduce/lanes-inl.h"
#include "backends/cpu/reduce/reduce_kernels.h"
#include "backends/cpu/reduce/reduce_ops.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Loads of elements of type From as vectors of T, and of one element.

template <class T>
struct LoadSame {
  using From = T;
  template <class D>
  static HWY_INLINE hn::Vec<D> vector(D d, const T* p) {
    return hn::LoadU(d, p);
  }
};

struct LoadFloat16 {
  using From = uint16_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> vector(D d, const uint16_t* p) {
    return load_float16(d, p);
  }
};

struct LoadBFloat16 {
  using From = uint16_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> vector(D d, const uint16_t* p) {
    return load_bfloat16(d, p);
  }
};

template <class Integer>
struct LoadInteger {
  using From = Integer;
  template <class D>
  static HWY_INLINE hn::Vec<D> vector(D d, const From* p) {
    const auto narrow = hn::LoadU(hn::Rebind<From, D>(), p);
    if constexpr (sizeof(From) == 4)
      return hn::PromoteTo(d, narrow);
    else
      return hn::PromoteTo(d, hn::PromoteTo(hn::Rebind<int32_t, D>(), narrow));
  }
};

/// Anything but zero counts as one.
struct LoadBool {
  using From = uint8_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> vector(D d, const uint8_t* p) {
    return hn::Min(LoadInteger<uint8_t>::vector(d, p), hn::Set(d, 1));
  }
};

template <class Load, class T>
HWY_INLINE T load_one(const typename Load::From* p) {
  if constexpr (std::is_same_v<Load, LoadSame<T>>)
    return *p;
  else
    return hn::GetLane(Load::vector(hn::CappedTag<T, 1>(), p));
}

/// Adds the last `n` elements of a chunk, fewer than its lanes, to their lanes: in registers, since a vector
/// that is loaded right after its elements were stored one by one waits for them.
template <ReduceOp kOp, class D, class T = hn::TFromD<D>>
HWY_INLINE void combine_tail(D d, hn::Vec<D> (&sum)[kVecs<D>], const T* p, size_t n) {
  constexpr size_t kLanes = hn::MaxLanes(D());
#pragma GCC unroll 8
  for (size_t v = 0; v < kVecs<D>; ++v) {
    const size_t count = n > v * kLanes ? std::min(kLanes, n - v * kLanes) : 0;
    const auto there = hn::FirstN(d, count);
    hn::Vec<D> x;
    if constexpr (kMasksAreSafe && sizeof(T) >= 4) {
      x = hn::MaskedLoad(there, d, p + v * kLanes);
    } else {
      HWY_ALIGN T padded[kLanes] = {};
      for (size_t l = 0; l < count; ++l) padded[l] = p[v * kLanes + l];
      x = hn::Load(d, padded);
    }
    sum[v] = hn::IfThenElse(there, combine<kOp>(d, sum[v], x), sum[v]);
  }
}

/// The extremum of any number of elements. It does not depend on their order: several vectors collect
/// independently, by instructions that lose NaN and the sign of zero, which are looked after separately.
template <ReduceOp kOp, class Load, class T>
HWY_INLINE T extremum(const typename Load::From* p, size_t n) {
  const LaneTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(LaneTag<T>()), kTogether = 8;
  using V = hn::Vec<LaneTag<T>>;
  constexpr bool kFloating = std::is_floating_point_v<T>;
  V best[kTogether];
  // A NaN makes the sum of all NaN. So do infinities of either sign: then they are looked at one by one.
  V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  for (V& b : best) b = hn::Set(d, detail::identity<T>(kOp));
  const auto take = [&](size_t into, V x) HWY_ATTR {
    V& b = best[into];
    b = kOp == ReduceOp::Max ? hn::Max(b, x) : hn::Min(b, x);
    if constexpr (kFloating) sums[into % 4] = hn::Add(sums[into % 4], x);
  };
  size_t i = 0;
  for (; i + kTogether * kLanes <= n; i += kTogether * kLanes) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kTogether; ++v) take(v, Load::vector(d, p + i + v * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) take(0, Load::vector(d, p + i));
  if (i < n && n >= kLanes) {
    // The last whole vector; what it has in common with the one before counts once as well as twice.
    take(1, Load::vector(d, p + n - kLanes));
    i = n;
  }
  if constexpr (kFloating) {
    if (HWY_UNLIKELY(
            !hn::AllFalse(d, hn::IsNaN(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])))))) {
      for (size_t k = 0; k < i; ++k) {
        const T x = load_one<Load, T>(p + k);
        if (x != x) return std::numeric_limits<T>::quiet_NaN();
      }
    }
  }
#pragma GCC unroll 4
  for (size_t half = kTogether / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (size_t v = 0; v < half; ++v)
      best[v] = kOp == ReduceOp::Max ? hn::Max(best[v], best[v + half]) : hn::Min(best[v], best[v + half]);
  }
  T value;
  if constexpr (kFloating)
    value = hn::GetLane(kOp == ReduceOp::Max ? hn::MaxOfLanes(d, best[0]) : hn::MinOfLanes(d, best[0]));
  else
    value = fold_vector<kOp>(d, best[0]);
  for (; i < n; ++i) value = detail::combine(kOp, value, load_one<Load, T>(p + i));
  if constexpr (kFloating) {
    if (HWY_UNLIKELY(value == 0)) {
      for (size_t k = 0; k < n; ++k) {
        const T x = load_one<Load, T>(p + k);
        if (x == 0) value = detail::combine(kOp, value, x);
      }
    }
  }
  return value;
}

/// kCount chunks side by side: their sums do not wait for one another. Those that come next are asked for
/// `ahead`: a chunk may end a page, beyond which the processor does not look by itself.
template <ReduceOp kOp, class Load, size_t kCount, class D, class T = hn::TFromD<D>>
HWY_INLINE void some_chunks(D d, const typename Load::From* p, bool ahead, T* out) {
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
        sum[c][v] = combine<kOp>(d, sum[c][v], Load::vector(d, p + c * kReduceChunk + i + v * kLanes));
      }
      if (ahead) __builtin_prefetch(p + (c + kCount) * kReduceChunk + i, 0, 2);
    }
  }
#pragma GCC unroll 8
  for (size_t c = 0; c < kCount; ++c) out[c] = fold_vectors<kOp>(d, sum[c]);
}

/// The chunks of kCount rows side by side; `n` may be less than a whole chunk. Rows that go backward have
/// element i at p[-i].
template <ReduceOp kOp, size_t kCount, bool kBackward, class D, class T = hn::TFromD<D>>
HWY_INLINE void some_rows(D d, const T* const* p, size_t n, T* out) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  hn::Vec<D> sum[kCount][kVecs<D>];
#pragma GCC unroll 8
  for (size_t c = 0; c < kCount; ++c) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs<D>; ++v) sum[c][v] = hn::Set(d, detail::identity<T>(kOp));
  }
  size_t i = 0;
  for (; i + kReduceLanes <= n; i += kReduceLanes) {
#pragma GCC unroll 8
    for (size_t c = 0; c < kCount; ++c) {
#pragma GCC unroll 8
      for (size_t v = 0; v < kVecs<D>; ++v) {
        const size_t at = i + v * kLanes;
        if constexpr (kBackward)
          sum[c][v] = combine<kOp>(d, sum[c][v], hn::Reverse(d, hn::LoadU(d, p[c] - at - (kLanes - 1))));
        else
          sum[c][v] = combine<kOp>(d, sum[c][v], hn::LoadU(d, p[c] + at));
      }
    }
  }
#pragma GCC unroll 8
  for (size_t c = 0; c < kCount; ++c) {
    if constexpr (kBackward) {
      T tail[kReduceLanes];
      for (size_t l = i; l < n; ++l) tail[l - i] = *(p[c] - l);
      if (i < n) combine_tail<kOp>(d, sum[c], tail, n - i);
    } else {
      if (i < n) combine_tail<kOp>(d, sum[c], p[c] + i, n - i);
    }
    out[c] = fold_vectors<kOp>(d, sum[c]);
  }
}

constexpr bool is_extremum(ReduceOp op) { return op == ReduceOp::Max || op == ReduceOp::Min; }

template <ReduceOp kOp, class Load, class T>
void chunks(const void* from, size_t count, bool ahead, T* out) {
  const auto* p = static_cast<const typename Load::From*>(from);
  if constexpr (is_extremum(kOp)) {
    for (size_t c = 0; c < count; ++c) out[c] = extremum<kOp, Load, T>(p + c * kReduceChunk, kReduceChunk);
    return;
  }
  const LaneTag<T> d;
  constexpr size_t kTogether = std::max<size_t>(1, 8 / kVecs<LaneTag<T>>);
  size_t c = 0;
  for (; c + kTogether <= count; c += kTogether)
    some_chunks<kOp, Load, kTogether>(d, p + c * kReduceChunk, ahead, out + c);
  if constexpr (kTogether >= 8) {
    for (; c + 4 <= count; c += 4) some_chunks<kOp, Load, 4>(d, p + c * kReduceChunk, ahead, out + c);
  }
  for (; c < count; ++c) some_chunks<kOp, Load, 1>(d, p + c * kReduceChunk, false, out + c);
}

template <ReduceOp kOp, bool kBackward, class T>
void row_chunks(const T* const* p, size_t rows, size_t n, T* out) {
  if constexpr (is_extremum(kOp)) {
    for (size_t r = 0; r < rows; ++r) {
      // The processor fetches ahead within a page; a row may begin another one.
      const T* next = p[std::min(r + 1, rows - 1)];
      for (size_t i = 0; i < std::min<size_t>(n, 256 / sizeof(T)); i += 64 / sizeof(T))
        hwy::Prefetch(kBackward ? next - i : next + i);
      out[r] = extremum<kOp, LoadSame<T>, T>(kBackward ? p[r] - (n - 1) : p[r], n);
    }
  } else {
    const LaneTag<T> d;
    if (rows == 1) return some_rows<kOp, 1, kBackward>(d, p, n, out);
    constexpr size_t kTogether = std::max<size_t>(2, 4 / kVecs<LaneTag<T>>);
    for (size_t r = 0; r < rows; r += kTogether) {
      if (r + kTogether <= rows) {
        some_rows<kOp, kTogether, kBackward>(d, p + r, n, out + r);
        continue;
      }
      // The last rows, and one of them again in place of those that are missing.
      const T* some[kTogether];
      T results[kTogether];
      for (size_t c = 0; c < kTogether; ++c) some[c] = p[std::min(r + c, rows - 1)];
      some_rows<kOp, kTogether, kBackward>(d, some, n, results);
      std::copy_n(results, rows - r, out + r);
    }
  }
}

template <ReduceOp kOp, class Load, class T>
void lanes(T* lanes, size_t at, const void* from, size_t n) {
  const auto* p = static_cast<const typename Load::From*>(from);
  if constexpr (is_extremum(kOp)) {
    lanes[0] = detail::combine(kOp, lanes[0], extremum<kOp, Load, T>(p, n));
    return;
  }
  const LaneTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(LaneTag<T>());
  for (; at != 0 && n > 0; at = (at + 1) % kReduceLanes, ++p, --n)
    lanes[at] = detail::combine(kOp, lanes[at], load_one<Load, T>(p));
  if (n == 0) return;
  hn::Vec<LaneTag<T>> sum[kVecs<LaneTag<T>>];
#pragma GCC unroll 8
  for (size_t v = 0; v < kVecs<LaneTag<T>>; ++v) sum[v] = hn::LoadU(d, lanes + v * kLanes);
  for (; n >= kReduceLanes; p += kReduceLanes, n -= kReduceLanes) {
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs<LaneTag<T>>; ++v)
      sum[v] = combine<kOp>(d, sum[v], Load::vector(d, p + v * kLanes));
  }
  if constexpr (std::is_same_v<Load, LoadSame<T>>) {
    if (n > 0) combine_tail<kOp>(d, sum, p, n);
    n = 0;
  }
#pragma GCC unroll 8
  for (size_t v = 0; v < kVecs<LaneTag<T>>; ++v) hn::StoreU(sum[v], d, lanes + v * kLanes);
  for (size_t l = 0; l < n; ++l) lanes[l] = detail::combine(kOp, lanes[l], load_one<Load, T>(p + l));
}

/// to = from op row over `width` elements; the lane's first row has the identity for `from`, which is then
/// null.
template <ReduceOp kOp, bool kFirst, class Load, class T, class From = typename Load::From>
HWY_INLINE void one_row(T* to, const From* row, size_t width, const From* ahead) {
  const LaneTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(LaneTag<T>());
  constexpr size_t kLine = std::max<size_t>(kLanes, 64 / sizeof(From));
  const auto identity = hn::Set(d, detail::identity<T>(kOp));
  const auto step = [&](size_t j) HWY_ATTR {
    const auto before = kFirst ? identity : hn::LoadU(d, to + j);
    hn::StoreU(combine<kOp>(d, before, Load::vector(d, row + j)), d, to + j);
  };
  size_t j = 0;
  for (; j + kLine <= width; j += kLine) {
    hwy::Prefetch(ahead + j);
#pragma GCC unroll 8
    for (size_t v = 0; v < kLine; v += kLanes) step(j + v);
  }
  for (; j + kLanes <= width; j += kLanes) step(j);
  for (; j < width; ++j) {
    to[j] = detail::combine(kOp, kFirst ? detail::identity<T>(kOp) : to[j], load_one<Load, T>(row + j));
  }
}

template <ReduceOp kOp, class Load, class T>
void rows(T* lanes, size_t within, size_t width, const void* from, ptrdiff_t stride, size_t rows) {
  const auto* p = static_cast<const typename Load::From*>(from);
  // Row by row, so that memory is read in order; the sums stay in the L1 cache, and a lane's turn comes every
  // 16 rows. Rows may be pages apart, which no hardware prefetcher follows.
  const ptrdiff_t ahead = 8 * stride;
  for (; within < kReduceLanes && rows > 0; ++within, --rows, p += stride) {
    one_row<kOp, true, Load>(lanes + within * kReduceStrip, p, width, rows > 8 ? p + ahead : p);
  }
  for (; rows > 0; ++within, --rows, p += stride) {
    one_row<kOp, false, Load>(lanes + within % kReduceLanes * kReduceStrip, p, width,
                              rows > 8 ? p + ahead : p);
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
void fold_strip(T* to, const T* lanes, ptrdiff_t stride, size_t used, size_t width) {
  const LaneTag<T> d;
  using V = hn::Vec<LaneTag<T>>;
  const V identity = hn::Set(d, detail::identity<T>(kOp));
  for (size_t j = 0; j < width; j += hn::Lanes(d)) {
    V x[kReduceLanes];
#pragma GCC unroll 16
    for (size_t l = 0; l < kReduceLanes; ++l)
      x[l] = l < used ? hn::LoadU(d, lanes + static_cast<ptrdiff_t>(l) * stride + j) : identity;
    // A lane starts from the identity, which makes 0 of the sum of nothing but -0.
    if constexpr (kOp == ReduceOp::Sum) x[0] = hn::Add(identity, x[0]);
#pragma GCC unroll 4
    for (size_t half = kReduceLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
      for (size_t l = 0; l < half; ++l) x[l] = combine<kOp>(d, x[l], x[l + half]);
    }
    hn::StoreU(x[0], d, to + j);
  }
}

/// Pairs side by side have 16 lanes of their first elements and 16 of their second, in turn.
template <size_t kCount, class D, class T = hn::TFromD<D>>
HWY_INLINE void some_pair_chunks(D d, const T* p, T* first, T* second) {
  constexpr size_t kLanes = hn::MaxLanes(D()), kVectors = 2 * kVecs<D>;
  hn::Vec<D> sum[kCount][kVectors];
#pragma GCC unroll 8
  for (size_t c = 0; c < kCount; ++c) {
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) sum[c][v] = hn::Zero(d);
  }
  for (size_t i = 0; i < 2 * kReduceChunk; i += 2 * kReduceLanes) {
#pragma GCC unroll 8
    for (size_t c = 0; c < kCount; ++c) {
#pragma GCC unroll 16
      for (size_t v = 0; v < kVectors; ++v)
        sum[c][v] = hn::Add(sum[c][v], hn::LoadU(d, p + 2 * c * kReduceChunk + i + v * kLanes));
    }
  }
#pragma GCC unroll 8
  for (size_t c = 0; c < kCount; ++c) {
    T lanes[2 * kReduceLanes], parts[2][kReduceLanes];
#pragma GCC unroll 16
    for (size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[c][v], d, lanes + v * kLanes);
    for (size_t l = 0; l < kReduceLanes; ++l) parts[0][l] = lanes[2 * l], parts[1][l] = lanes[2 * l + 1];
    first[c] = fold<ReduceOp::Sum>(parts[0]);
    second[c] = fold<ReduceOp::Sum>(parts[1]);
  }
}

template <class T>
void pair_chunks(const T* p, size_t count, T* first, T* second) {
  const LaneTag<T> d;
  constexpr size_t kTogether = std::max<size_t>(1, 4 / kVecs<LaneTag<T>>);
  size_t c = 0;
  for (; c + kTogether <= count; c += kTogether)
    some_pair_chunks<kTogether>(d, p + 2 * c * kReduceChunk, first + c, second + c);
  for (; c < count; ++c) some_pair_chunks<1>(d, p + 2 * c * kReduceChunk, first + c, second + c);
}

template <ReduceOp kOp, class Load, class T>
constexpr ReduceWalks<T> walks() {
  return {&chunks<kOp, Load, T>, &lanes<kOp, Load, T>, &rows<kOp, Load, T>};
}

template <ReduceOp kOp, ReduceSource kSource, class Load, class T>
constexpr void add_source(ReduceKernels<T>& kernels) {
  if constexpr (reduces_from<T>(kSource, kOp))
    kernels.from[static_cast<size_t>(kSource)] = walks<kOp, Load, T>();
}

template <ReduceOp kOp, class T>
constexpr ReduceKernels<T> entry() {
  if constexpr (std::is_same_v<T, uint8_t> && (kOp == ReduceOp::Sum || kOp == ReduceOp::Prod)) {
    return {};
  } else {
    ReduceKernels<T> k{walks<kOp, LoadSame<T>, T>(), &fold<kOp, T>,       &row_chunks<kOp, false, T>,
                       &row_chunks<kOp, true, T>,    &fold_strip<kOp, T>, &merge_strips<kOp, T>};
    add_source<kOp, ReduceSource::Float16, LoadFloat16>(k);
    add_source<kOp, ReduceSource::BFloat16, LoadBFloat16>(k);
    add_source<kOp, ReduceSource::Bool, LoadBool>(k);
    add_source<kOp, ReduceSource::UInt8, LoadInteger<uint8_t>>(k);
    add_source<kOp, ReduceSource::Int8, LoadInteger<int8_t>>(k);
    add_source<kOp, ReduceSource::Int16, LoadInteger<int16_t>>(k);
    add_source<kOp, ReduceSource::Int32, LoadInteger<int32_t>>(k);
    if constexpr (kOp == ReduceOp::Sum && std::is_floating_point_v<T>) k.pair_chunks = &pair_chunks<T>;
    return k;
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

#if HWY_ONCE
namespace tenon::cpu {

template <class T>
const ReduceKernels<T>& reduce_kernels(CpuTarget target, ReduceOp op) {
  static constexpr const ReduceKernels<T>* kTables[kNumCpuTargets] =
      TENON_CPU_TARGET_TABLES(ReduceTable<T>::kTable);
  return kTables[static_cast<size_t>(target)][static_cast<size_t>(op)];
}

}  // namespace tenon::cpu
#endif

#endif
