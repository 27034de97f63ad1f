// The micro kernel of the gradient by the weights: a few rows of windows, read where the band has them, by a
// few vectors of rows of the incoming gradient, held in registers while positions run in ascending order.
// Included once per instruction set by window_product-inl.h. Independent of convolutions.

#if defined(TENON_CPU_GRADIENT_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GRADIENT_TILE_INL
#undef TENON_CPU_GRADIENT_TILE_INL
#else
#define TENON_CPU_GRADIENT_TILE_INL
#endif

#include <array>
#include <cstddef>
#include <utility>

#include "backends/cpu/gemm/gemm_tile_table-inl.h"
#include "backends/cpu/pointwise/simd_ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Most rows of a tile: each has a pointer, and pointers are fewer than vectors.
constexpr size_t kGradientRows = HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 ? kTileRows : 8;

/// Element (row, j) of the windows is at band[rows[row] + places[j]], the gradient's vectors of position j
/// at grads[j * width].
template <class T>
struct GradientIn {
  const T* band;
  const int64_t* rows;
  const int64_t* places;
  const T* grads;
  ptrdiff_t width;
};

/// Sums over `count` positions to totals, added to what they hold unless they are the first.
template <size_t kRows, size_t kVecs, class T>
HWY_NOINLINE void gradient_tile(int64_t count, const GradientIn<T>& in, bool first, T* totals,
                                ptrdiff_t row) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const int64_t* places = in.places;
  const T* grads = in.grads;
  const ptrdiff_t width = in.width;
  const T* from[kRows];
  V sum[kRows][kVecs];
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
    from[i] = in.band + in.rows[i];
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) sum[i][v] = hn::Zero(d);
  }
  for (int64_t j = 0; j < count; ++j, grads += width) {
    const int64_t at = places[j];
    V grad[kVecs];
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) grad[v] = hn::Load(d, grads + v * lanes);
#pragma GCC unroll 8
    for (size_t i = 0; i < kRows; ++i) {
      const V x = hn::Set(d, from[i][at]);
#pragma GCC unroll 2
      for (size_t v = 0; v < kVecs; ++v) sum[i][v] = fused_mul_add(d, x, grad[v], sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i, totals += row) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) {
      T* to = totals + v * lanes;
      hn::StoreU(first ? sum[i][v] : hn::Add(hn::LoadU(d, to), sum[i][v]), d, to);
    }
  }
}

template <class T>
using GradientTile = void (*)(int64_t, const GradientIn<T>&, bool, T*, ptrdiff_t);
/// By rows less one, then vectors less one.
template <class T>
constexpr auto kGradientTiles = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<GradientTile<T>, sizeof...(kIndex)>{
      &gradient_tile<kIndex / kTileVecs + 1, kIndex % kTileVecs + 1, T>...};
}
(std::make_index_sequence<kGradientRows * kTileVecs>());

}  // namespace
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
