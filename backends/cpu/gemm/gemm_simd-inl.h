// The vector operations that the matrix product needs beyond Highway's: partial loads and stores, and the
// transposition of k-contiguous columns. Included once per instruction set by gemm_product-inl.h.

#if defined(TENON_CPU_GEMM_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_SIMD_INL
#undef TENON_CPU_GEMM_SIMD_INL
#else
#define TENON_CPU_GEMM_SIMD_INL
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "backends/cpu/copy/half-inl.h"
#include "hwy/highway.h"
#include "tenon/core/half.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Elsewhere Highway's masked loads and stores touch the whole vector.
#undef TENON_MASKED_MEMORY
#define TENON_MASKED_MEMORY (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

/// The first `count` lanes of memory; never touches memory after them.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_first(D d, const T* p, size_t count) {
#if !TENON_MASKED_MEMORY
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)] = {};
  for (size_t i = 0; i < count; ++i) buffer[i] = p[i];
  return hn::Load(d, buffer);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#endif
}

/// Writes the first `count` lanes and nothing else.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void store_first(hn::Vec<D> v, D d, T* p, size_t count) {
#if !TENON_MASKED_MEMORY
  HWY_ALIGN T buffer[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(v, d, buffer);
  for (size_t i = 0; i < count; ++i) p[i] = buffer[i];
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#endif
}

/// A vector of elements as matrices are stored: of the vector's type, or half types, which become float32.
template <class D, class S>
HWY_INLINE hn::Vec<D> load_stored(D d, const S* p) {
  if constexpr (std::is_same_v<S, Half>) {
    return load_float16(d, reinterpret_cast<const uint16_t*>(p));
  } else if constexpr (std::is_same_v<S, BFloat16>) {
    return load_bfloat16(d, reinterpret_cast<const uint16_t*>(p));
  } else {
    return hn::LoadU(d, p);
  }
}

/// Asks for the lines of `count` elements, which are read soon.
template <class S>
HWY_INLINE void prefetch_span(const S* p, size_t count) {
  for (size_t i = 0; i < count; i += 64 / sizeof(S)) __builtin_prefetch(p + i);
}

/// Lanes of a 128-bit block: as many consecutive k as one transposition takes.
template <class T>
inline constexpr size_t kBlockLanes = 16 / sizeof(T);

/// The columns that fill one vector, one per lane, as pointers to be read along k; S: as what they are
/// stored.
template <class D, class S = hn::TFromD<D>>
class ColumnsAt {
 public:
  ColumnsAt() = default;
  /// Evenly spaced columns: one pointer for each 128-bit block, the rest is addressing.
  ColumnsAt(const S* first, ptrdiff_t stride) : stride_(stride), stride3_(3 * stride) {
    for (size_t i = 0; i < kBlocks; ++i) block_[i] = first + static_cast<ptrdiff_t>(i * kWithin) * stride;
  }
  HWY_INLINE const S* operator()(size_t lane) const {
    const size_t within = lane % kWithin;
    const S* base = block_[lane / kWithin];
    return within == 3 ? base + stride3_ : base + static_cast<ptrdiff_t>(within) * stride_;
  }
  HWY_INLINE void advance(ptrdiff_t k) {
#pragma GCC unroll 8
    for (size_t i = 0; i < kBlocks; ++i) block_[i] += k;
  }

 private:
  static constexpr size_t kWithin = kBlockLanes<hn::TFromD<D>>, kBlocks = hn::MaxLanes(D()) / kWithin;
  const S* block_[kBlocks];
  ptrdiff_t stride_, stride3_;
};

/// The first `count` of evenly spaced columns; lanes after them read the last one again.
template <class D, class T = hn::TFromD<D>>
class FirstColumnsAt {
 public:
  FirstColumnsAt() = default;
  FirstColumnsAt(const T* first, ptrdiff_t stride, size_t count) {
    for (size_t l = 0; l < hn::MaxLanes(D()); ++l)
      column_[l] = first + static_cast<ptrdiff_t>(std::min(l, count - 1)) * stride;
  }
  HWY_INLINE const T* operator()(size_t lane) const { return column_[lane]; }
  HWY_INLINE void advance(ptrdiff_t k) {
    for (size_t l = 0; l < hn::MaxLanes(D()); ++l) column_[l] += k;
  }

 private:
  const T* column_[hn::MaxLanes(D())];
};

/// The next 128-bit block from every fourth column, from column kFirst on (every second for float64).
template <size_t kFirst, class D, class Columns>
HWY_INLINE hn::Vec<D> load_blocks(D d, const Columns& column) {
  constexpr size_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes == kBlockLanes<hn::TFromD<D>>) {
    return hn::LoadU(d, column(kFirst));
  } else {
    const hn::Half<D> dh;
    return hn::Combine(d, load_blocks<kFirst + kLanes / 2>(dh, column), load_blocks<kFirst>(dh, column));
  }
}

/// Of each 128-bit block, the four elements of four vectors: out[i] has element i of each.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V c0, V c1, V c2, V c3, V* out) {
  const auto low02 = hn::InterleaveLower(d, c0, c2), low13 = hn::InterleaveLower(d, c1, c3);
  const auto high02 = hn::InterleaveUpper(d, c0, c2), high13 = hn::InterleaveUpper(d, c1, c3);
  out[0] = hn::InterleaveLower(d, low02, low13);
  out[1] = hn::InterleaveUpper(d, low02, low13);
  out[2] = hn::InterleaveLower(d, high02, high13);
  out[3] = hn::InterleaveUpper(d, high02, high13);
}

/// Reads column(lane)[0 .. kBlockLanes) for every lane; out[j] has lane's element j in each lane.
template <class D, class Columns, class T = hn::TFromD<D>>
HWY_INLINE void load_transposed(D d, const Columns& column, hn::Vec<D>* out) {
  if constexpr (sizeof(T) == 4) {
    const auto c0 = load_blocks<0>(d, column), c1 = load_blocks<1>(d, column);
    const auto c2 = load_blocks<2>(d, column), c3 = load_blocks<3>(d, column);
    transpose_blocks(d, c0, c1, c2, c3, out);
  } else {
    const auto c0 = load_blocks<0>(d, column), c1 = load_blocks<1>(d, column);
    out[0] = hn::InterleaveLower(d, c0, c1);
    out[1] = hn::InterleaveUpper(d, c0, c1);
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
