// The micro kernel of products whose vectors run along the rows of the weights: a few neighbouring columns by
// a few vectors of rows, held in registers while k runs in ascending order. Columns are read where the band
// has them, by an offset for each k, so that windows are not packed. Included once per instruction set by
// turned_product-inl.h. Independent of convolutions.

#if defined(TENON_CPU_TURNED_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_TURNED_TILE_INL
#undef TENON_CPU_TURNED_TILE_INL
#else
#define TENON_CPU_TURNED_TILE_INL
#endif

#include <array>
#include <cstddef>
#include <utility>

#include "backends/cpu/pointwise/simd_ops-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Most columns of a tile: its sums, the weights and one window fill the registers.
#if HWY_TARGET == HWY_SSE4
constexpr size_t kTurnedColumns = 2;
#elif HWY_TARGET == HWY_AVX2
constexpr size_t kTurnedColumns = 6;
#else
constexpr size_t kTurnedColumns = 14;
#endif
constexpr size_t kTurnedVecs = 2;

/// Element (p, column) of the windows is at windows[offsets[p] + column], element (p, row) of the weights
/// at weights[p * width + row], where width is the tile's.
template <class T>
struct TurnedIn {
  const T* windows;
  const int64_t* offsets;
  const T* weights;
};

/// Sums by column, then row: totals so far + sum + bias to c.
template <class T>
struct TurnedOut {
  T* c;
  ptrdiff_t c_column;
  const T* resume;  ///< Columns of the tile's width; null in the first pass.
  const T* bias;    ///< By row, or null.
};

template <size_t kColumns, size_t kVecs, class T>
HWY_NOINLINE void turned_tile(int64_t k, const TurnedIn<T>& in, const TurnedOut<T>& out) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const T *windows = in.windows, *weights = in.weights;
  const int64_t* offsets = in.offsets;
  V sum[kColumns][kVecs];
#pragma GCC unroll 16
  for (size_t i = 0; i < kColumns; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) sum[i][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < k; ++p, weights += kVecs * lanes) {
    const T* window = windows + offsets[p];
    V weight[kVecs];
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) weight[v] = hn::Load(d, weights + v * lanes);
#pragma GCC unroll 16
    for (size_t i = 0; i < kColumns; ++i) {
      const V x = hn::Set(d, window[i]);
#pragma GCC unroll 2
      for (size_t v = 0; v < kVecs; ++v) sum[i][v] = fused_mul_add(d, weight[v], x, sum[i][v]);
    }
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < kColumns; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) {
      V x = sum[i][v];
      if (out.resume) x = hn::Add(hn::LoadU(d, out.resume + (i * kVecs + v) * lanes), x);
      if (out.bias) x = hn::Add(x, hn::LoadU(d, out.bias + v * lanes));
      hn::StoreU(x, d, out.c + static_cast<ptrdiff_t>(i) * out.c_column + v * lanes);
    }
  }
}

template <class T>
using TurnedTile = void (*)(int64_t, const TurnedIn<T>&, const TurnedOut<T>&);
/// By columns less one, then vectors less one.
template <class T>
constexpr auto kTurnedTiles = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<TurnedTile<T>, sizeof...(kIndex)>{
      &turned_tile<kIndex / kTurnedVecs + 1, kIndex % kTurnedVecs + 1, T>...};
}
(std::make_index_sequence<kTurnedColumns * kTurnedVecs>());

}  // namespace
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
