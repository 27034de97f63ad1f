// Which tiles there are, and where each is found. Included once per instruction set by gemm_product-inl.h,
// which runs them, by gemm_partial_kernels_*.cc, which compile those that cut their last vector (half of the
// tiles are as much as one file should compile), and by the products of other folders.

#if defined(TENON_CPU_GEMM_TILE_TABLE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_TILE_TABLE_INL
#undef TENON_CPU_GEMM_TILE_TABLE_INL
#else
#define TENON_CPU_GEMM_TILE_TABLE_INL
#endif

#include <array>
#include <cstddef>
#include <utility>

#include "backends/cpu/gemm/gemm_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

// The emulated fma of SSE4 is long and needs the registers itself: fewer rows keep its code small.
#if HWY_TARGET == HWY_SSE4
constexpr size_t kTileRows = 2;
#else
constexpr size_t kTileRows = 6;
#endif
constexpr size_t kTileVecs = 2;

/// Most rows that the tiles of `vecs` vectors take: about twelve sums, which hides the latency of fma and
/// leaves registers for the operands.
constexpr size_t max_rows(size_t vecs) {
  if (HWY_TARGET == HWY_SSE4) return vecs <= 2 ? 2 : 1;
  return vecs == 1 ? 8 : vecs == 2 ? 6 : vecs <= 4 ? 3 : 1;
}

inline constexpr size_t kMostTileRows = 8, kMostTileVecs = 8;
constexpr size_t tile_place(size_t rows, size_t vecs) { return (rows - 1) * kMostTileVecs + vecs - 1; }

template <class T>
using TileFunction = void (*)(hn::ScalableTag<T>, int64_t, const TileIn<T>&, const TileOut<T>&, size_t);

/// By tile_place; null where there is no such tile.
template <class T, bool kPartial>
struct TileTable {
  template <size_t kRows, size_t kVecs>
  static constexpr TileFunction<T> entry() {
    if constexpr (kRows <= max_rows(kVecs)) {
      return &tile<kRows, kVecs, kPartial, hn::ScalableTag<T>>;
    } else {
      return nullptr;
    }
  }
  template <size_t... kIndex>
  static constexpr auto all(std::index_sequence<kIndex...>) {
    return std::array<TileFunction<T>, sizeof...(kIndex)>{
        entry<kIndex / kMostTileVecs + 1, kIndex % kMostTileVecs + 1>()...};
  }
  static constexpr std::array<TileFunction<T>, kMostTileRows* kMostTileVecs> kTiles =
      all(std::make_index_sequence<kMostTileRows * kMostTileVecs>());
};

/// All tiles of the argument's type, for files that do not compile them.
const TileFunction<float>* full_tiles(float);
const TileFunction<double>* full_tiles(double);
/// The partial tiles of a type.
const TileFunction<float>* partial_tiles(float);
const TileFunction<double>* partial_tiles(double);

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
