// Single-threaded matrix products of one type. Included once per instruction set by gemm_kernels_f32.cc and
// gemm_kernels_f64.cc, which export `product<T>`. Knows caches and panels; of threads, that they may ask it
// to stop.

#if defined(TENON_CPU_GEMM_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_PRODUCT_INL
#undef TENON_CPU_GEMM_PRODUCT_INL
#else
#define TENON_CPU_GEMM_PRODUCT_INL
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "backends/cpu/gemm/gemm_few_rows-inl.h"
#include "backends/cpu/gemm/gemm_few_sums-inl.h"
#include "backends/cpu/gemm/gemm_kernels.h"
#include "backends/cpu/gemm/gemm_pack-inl.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "backends/cpu/gemm/gemm_tile_table-inl.h"
#include "hwy/highway.h"
#include "tenon/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Where a column of a packed B is whose panels are `panel` apart.
template <class T>
constexpr ptrdiff_t panel_offset(int64_t panel, int64_t column) {
  return column / kGemmPanel<T> * panel + column % kGemmPanel<T>;
}

/// Vectors of columns that a product of `rows` rows takes at a time.
constexpr size_t panel_vecs(size_t rows) { return rows == 1 ? 8 : rows <= max_rows(4) ? 4 : kTileVecs; }

/// Whether C may hold running totals, being written only and contiguous.
template <class T>
bool totals_fit_c(const GemmArgs<T>& g) {
  return g.beta == T(0) && g.c_col == 1;
}

/// Rows from which on the first tile of a panel packs it for the others; fewer read B in place as fast.
template <class T>
int64_t rows_that_pack(const GemmArgs<T>& g) {
  return (g.k > kGemmBlock ? 4 : 6) * static_cast<int64_t>(kTileRows);
}

/// All rows of a panel of B that is read in place: the first tile packs it for the others, one block of k
/// after the other, so that it stays in L1. Totals wait in C.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void panel_by_blocks(D d, const GemmArgs<T>& g, TileIn<T> in, int64_t column) {
  constexpr int64_t kWidth = kTileVecs * hn::MaxLanes(D());
  T* packed = static_cast<T*>(gemm_scratch(GemmScratch::PackedB, kGemmBlock * kWidth * sizeof(T)));
  for (int64_t p = 0; p < g.k;
       p += kGemmBlock, in.a += kGemmBlock * in.a_col, in.b += kGemmBlock * in.b_row) {
    const int64_t k = std::min(kGemmBlock, g.k - p);
    TileOut<T> out = final_output(g, column);
    if (p > 0) out.resume = out.c, out.resume_row = out.c_row;
    if (p + k < g.k) out.alpha = 1;
    in.packed = packed;
    tile<kTileRows, kTileVecs, false, D, true>(d, k, in, out, kWidth);
    TileIn<T> rest{in.a + kTileRows * in.a_row, in.a_row, in.a_col, packed, kWidth};
    out.c += kTileRows * out.c_row;
    if (out.resume) out.resume = out.c;
    panel_rows(d, g.m - kTileRows, k, rest, out, kTileVecs, kWidth);
  }
}

/// Small products: A is read in place, and so is B if its rows are contiguous or it is packed; else its
/// panels are packed.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void direct(D d, const GemmArgs<T>& g) {
  constexpr size_t kStackBytes = 16384;
  constexpr bool kBlocks = HWY_TARGET != HWY_SSE4;  // whose emulated fma takes all of the time
  HWY_ALIGN T stack[kStackBytes / sizeof(T)];
  const size_t lanes = hn::Lanes(d);
  const bool panels = g.b_panel != 0, pack = !panels && g.b_col != 1 && g.n > 1;
  const bool blocks = kBlocks && !panels && !pack && g.m >= rows_that_pack(g) && totals_fit_c(g);
  const size_t most = panel_vecs(static_cast<size_t>(std::min<int64_t>(g.m, 8)));
  TileIn<T> in{g.a, g.a_row, g.a_col, g.b, panels ? kGemmPanel<T> : g.b_row};
  if (panels) in.b_panel = g.b_panel;
  for (int64_t j = 0; j < g.n;) {
    const size_t columns =
        static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(most * lanes), g.n - j));
    const size_t vecs = (columns + lanes - 1) / lanes;
    in.b = g.b + (panels ? panel_offset<T>(g.b_panel, j) : j * g.b_col);
    if (pack) {
      const size_t width = vecs * lanes;
      const size_t bytes = width * static_cast<size_t>(g.k) * sizeof(T);
      T* packed = bytes <= kStackBytes ? stack : static_cast<T*>(gemm_scratch(GemmScratch::PackedB, bytes));
      pack_b_panel(d, packed, width, in.b, g.b_row, g.b_col, g.k, columns);
      in.b = packed;
      in.b_row = static_cast<ptrdiff_t>(width);
    }
    if (!blocks || columns != kTileVecs * lanes)
      panel_rows(d, g.m, g.k, in, final_output(g, j), vecs, columns);
    else if constexpr (kBlocks)
      panel_by_blocks(d, g, in, j);
    if (g.bias) add_to_rows(d, g.bias + j, g.c + j, g.c_row, g.m, columns);
    j += static_cast<int64_t>(columns);
  }
}

/// Many rows of A, each read by few panels of B: packing A would cost more than it saves. Slices of A stay in
/// L1 while the panels pass by.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void direct_slices(D d, const GemmArgs<T>& g) {
  const int64_t rows = std::max<int64_t>(kTileRows * 4, 32768 / sizeof(T) / g.k / kTileRows * kTileRows);
  GemmArgs<T> slice = g;
  if (g.b_panel == 0) {
    slice.b_panel = g.k * kGemmPanel<T>;
    const int64_t panels = (g.n + kGemmPanel<T> - 1) / kGemmPanel<T>;
    T* packed = static_cast<T*>(
        gemm_scratch(GemmScratch::PackedB, static_cast<size_t>(panels * slice.b_panel) * sizeof(T)));
    pack_b_block(d, packed, slice.b_panel, kGemmPanel<T>, g.b, g.b_row, g.b_col, g.k,
                 static_cast<size_t>(g.n));
    slice.b = packed;
  }
  for (int64_t i = 0; i < g.m; i += rows, slice.a += rows * g.a_row, slice.c += rows * g.c_row) {
    check_stop();
    slice.m = std::min(rows, g.m - i);
    direct(d, slice);
  }
}

/// A block of A and one of B, packed: `rows` x k and k x `columns`.
template <class T>
struct PackedBlocks {
  const T* a;
  const T* b;
  ptrdiff_t panel;      ///< between the panels of B
  int64_t panel_width;  ///< their columns: those of a tile, or as many as some tiles have
  int64_t rows, columns, k;
  const T* next = nullptr;  ///< the panel of B that is read after these; null: they are in a cache already
  const T* bias = nullptr;  ///< added to the rows of C, which are then finished
};

/// The tiles of one pair of blocks, `out` being that of its first element: a panel of B stays in L1 while the
/// block of A passes by it.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void multiply_packed(D d, const PackedBlocks<T>& in, const TileOut<T>& out) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = static_cast<int64_t>(kTileVecs) * lanes;
  constexpr int64_t kLine = 64 / sizeof(T);
  const auto column = [&](int64_t j) { return in.b + j / in.panel_width * in.panel + j % in.panel_width; };
  for (int64_t j = 0; j < in.columns; j += width) {
    const int64_t columns = std::min(width, in.columns - j), vecs = (columns + lanes - 1) / lanes;
    const T* b = column(j);
    // The first tiles ask for a line each of the rows that come next.
    const T* next = in.next && j + width < in.columns ? column(j + width) : in.next;
    const int64_t lines = next ? width / kLine : 0;
    for (int64_t i = 0, line = 0; i < in.rows; i += static_cast<int64_t>(kTileRows), ++line) {
      const int64_t rows = std::min(static_cast<int64_t>(kTileRows), in.rows - i);
      TileOut<T> tile = out;
      tile.c += i * out.c_row + j * out.c_col;
      if (out.resume) tile.resume += i * out.resume_row + j;
      find_tile<D>(static_cast<size_t>(rows), static_cast<size_t>(vecs), columns != vecs * lanes)(
          d, in.k,
          {in.a + i * in.k, 1, kTileRows, b, in.panel_width, kGemmPanel<T>,
           line < lines ? next + line * kLine : nullptr},
          tile, static_cast<size_t>(columns));
    }
    if (in.bias) add_to_rows(d, in.bias + j, out.c + j, out.c_row, in.rows, static_cast<size_t>(columns));
  }
}

/// Large products, blocked for the caches as Goto and van de Geijn (2008) describe. Each pass over k is one
/// block of the definition.
///
/// A B that is packed already is read where it is.
template <class D, class S, class T = hn::TFromD<D>>
HWY_INLINE void blocked(D d, const GemmArgs<T>& g, const S* b) {
  // A block of A is 360 KiB and stays in L2, while B comes from L3: B comes once for each block of A.
  constexpr int64_t kMostRows = 1440 / sizeof(T) / kTileRows * kTileRows;
  const int64_t block_rows = g.k <= kFewK ? kFewKRows : kMostRows;
  // Where a single block holds all rows of A, B is used once: in slices of 512 KiB, which stay in L2.
  constexpr int64_t kBlockColumns = 2048, kSliceColumns = 2048 / sizeof(T);
  // Panels a power of two apart would evict one another while several are packed at once.
  constexpr int64_t kPanelGap = 128 / sizeof(T);
  const int64_t width = static_cast<int64_t>(kTileVecs * hn::Lanes(d));
  // Totals between passes are kept in C where C may hold them, else in scratch memory.
  const bool in_place = totals_fit_c(g), several = g.k > kGemmBlock, one_block = g.m <= block_rows;
  const int64_t block_columns = std::min(g.n, several && !in_place ? 512 : kBlockColumns);
  const bool is_packed = g.b_panel != 0;
  const int64_t slice_columns =
      one_block && !is_packed ? std::min(block_columns, kSliceColumns) : block_columns;
  const int64_t most_k = std::min(g.k, kGemmBlock), panels = (slice_columns + width - 1) / width;
  const auto scratch = [](GemmScratch slot, int64_t elements) {
    return static_cast<T*>(gemm_scratch(slot, static_cast<size_t>(elements) * sizeof(T)));
  };
  T* packed_b = is_packed ? nullptr : scratch(GemmScratch::PackedB, panels * (width * most_k + kPanelGap));
  T* packed_a = scratch(GemmScratch::PackedA, block_rows * most_k);
  T* totals = several && !in_place ? scratch(GemmScratch::Totals, g.m * block_columns) : nullptr;
  for (int64_t jc = 0; jc < g.n; jc += block_columns) {
    const int64_t block_end = std::min(jc + block_columns, g.n);
    for (int64_t pc = 0; pc < g.k; pc += kGemmBlock) {
      const int64_t block_k = std::min(kGemmBlock, g.k - pc), panel = width * block_k + kPanelGap;
      for (int64_t js = jc; js < block_end; js += slice_columns) {
        const int64_t columns = std::min(slice_columns, block_end - js);
        PackedBlocks<T> blocks{packed_a, packed_b, panel, width, 0, columns, block_k};
        if (is_packed) {
          if constexpr (std::is_same_v<S, T>)
            blocks.b = b + panel_offset<T>(g.b_panel, js) + pc * kGemmPanel<T>;
          blocks.panel = g.b_panel, blocks.panel_width = kGemmPanel<T>;
          const bool ends = pc + block_k == g.k;  // the next rows of these panels, or the next panels
          if (one_block)
            blocks.next =
                ends ? g.b + panel_offset<T>(g.b_panel, block_end % g.n) : blocks.b + block_k * kGemmPanel<T>;
        } else {
          pack_b_block(d, packed_b, panel, static_cast<size_t>(width), b + pc * g.b_row + js * g.b_col,
                       g.b_row, g.b_col, block_k, static_cast<size_t>(columns));
        }
        for (int64_t ic = 0; ic < g.m; ic += block_rows) {
          check_stop();
          const int64_t rows = std::min(block_rows, g.m - ic);
          if (!one_block || js == jc) {
            pack_a<kTileRows>(packed_a, g.a + ic * g.a_row + pc * g.a_col, g.a_row, g.a_col, rows, block_k);
          }
          TileOut<T> out = final_output(g, js);
          out.c += ic * g.c_row;
          T* before = totals ? totals + ic * block_columns + (js - jc) : out.c;
          const ptrdiff_t before_row = totals ? block_columns : g.c_row;
          if (pc > 0) out.resume = before, out.resume_row = before_row;
          const bool last = pc + block_k == g.k;
          blocks.bias = g.bias && last ? g.bias + js : nullptr;
          if (!last) {
            out.c = before, out.c_row = before_row, out.c_col = 1;
            out.alpha = 1, out.beta = 0;
          }
          blocks.rows = rows;
          multiply_packed(d, blocks, out);
        }
      }
    }
  }
}

/// A column times a row, as the gradient of a weight for one sample is: nothing is summed, so that a tile
/// would cost more than its outputs.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void outer(D d, const GemmArgs<T>& g) {
  constexpr int64_t kRows = 4;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(g.n);
  const auto zero = hn::Zero(d);
  const T* a = g.a;
  T* c = g.c;
  int64_t i = 0;
  for (; i + kRows <= g.m; i += kRows, a += kRows * g.a_row, c += kRows * g.c_row) {
    const auto a0 = hn::Set(d, a[0]), a1 = hn::Set(d, a[g.a_row]), a2 = hn::Set(d, a[2 * g.a_row]),
               a3 = hn::Set(d, a[3 * g.a_row]);
    size_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      const auto b = hn::LoadU(d, g.b + j);
      hn::StoreU(fused_mul_add(d, a0, b, zero), d, c + j);
      hn::StoreU(fused_mul_add(d, a1, b, zero), d, c + g.c_row + j);
      hn::StoreU(fused_mul_add(d, a2, b, zero), d, c + 2 * g.c_row + j);
      hn::StoreU(fused_mul_add(d, a3, b, zero), d, c + 3 * g.c_row + j);
    }
    if (j == n) continue;
    const auto b = load_first(d, g.b + j, n - j);
    store_first(fused_mul_add(d, a0, b, zero), d, c + j, n - j);
    store_first(fused_mul_add(d, a1, b, zero), d, c + g.c_row + j, n - j);
    store_first(fused_mul_add(d, a2, b, zero), d, c + 2 * g.c_row + j, n - j);
    store_first(fused_mul_add(d, a3, b, zero), d, c + 3 * g.c_row + j, n - j);
  }
  for (; i < g.m; ++i, a += g.a_row, c += g.c_row) {
    const auto av = hn::Set(d, *a);
    for (size_t j = 0; j < n; j += lanes) {
      const size_t columns = std::min(lanes, n - j);
      store_first(fused_mul_add(d, av, load_first(d, g.b + j, columns), zero), d, c + j, columns);
    }
  }
}

/// Large products, B being stored as S.
template <class D, class S, class T = hn::TFromD<D>>
HWY_INLINE void large(D d, const GemmArgs<T>& g, const S* b) {
  if (g.k <= kGemmBlock || totals_fit_c(g)) return blocked(d, g, b);
  // Slices of rows bound the memory for totals.
  constexpr int64_t kSlice = 1920;
  GemmArgs<T> slice = g;
  for (int64_t i = 0; i < g.m; i += kSlice) {
    slice.m = std::min(kSlice, g.m - i);
    blocked(d, slice, b);
    slice.a += kSlice * g.a_row, slice.c += kSlice * g.c_row;
  }
}

/// Most rows of A for which B's columns are turned where they are, B being stored as S: more pay for a packed
/// panel, from few rows on where registers do not keep a turned line for all of them.
template <class D, class S, class T = hn::TFromD<D>>
int64_t most_turned_rows(const GemmArgs<T>& g, bool large) {
  if (!std::is_same_v<S, T>) return large ? kFewRows : 0;
  if (HWY_TARGET == HWY_SSE4) return 1;
  constexpr int64_t kKept = int64_t{1} << 15;
  const bool turned = large || (HWY_TARGET == HWY_AVX3 && right_bytes<S>(g) >= kKept);
  return !turned ? 2 : std::is_same_v<S, float> ? kFewRows : 4;
}

/// Few rows times a matrix that is read where it is, B being stored as S; whether it was such: B does not
/// stay in L2, or its columns are contiguous.
template <class D, class S, class T = hn::TFromD<D>>
HWY_INLINE bool few_rows(D d, const GemmArgs<T>& g, const S* b) {
  if (g.m > kFewRows || g.b_panel != 0) return false;
  const int64_t bytes = right_bytes<S>(g);
  const bool large = bytes >= (int64_t{1} << 19);
  if (g.b_col == 1) {
    // Tiles read rows that stay in L2 faster, but for two, which leave them waiting.
    if (!large || (std::is_same_v<S, T> && bytes <= kCachedBytes && g.m != 2)) return false;
    few_rows_by_rows(d, g, b);
    return true;
  }
  if (g.b_row != 1 || g.m > most_turned_rows<D, S>(g, large)) return false;
  few_rows_by_columns(d, g, b);
  return true;
}

/// Whether tiles read B where it is rather than packed: its rows are contiguous, and stay in L2 while the few
/// tiles of a column pass by, or in L3 where it is read once.
template <class T>
bool read_in_place(const GemmArgs<T>& g) {
  const int64_t most = g.m >= rows_that_pack(g) ? 2 * kCachedBytes : kCachedBytes;
  return g.b_panel == 0 && g.b_col == 1 && right_bytes<T>(g) <= most && g.m <= 192;
}

template <class T>
void product(const GemmArgs<T>& g);

/// In slices of columns, which stay in L2 until the biases of their rows are added.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void product_with_row_bias(D d, const GemmArgs<T>& g) {
  constexpr int64_t kSlice = (int64_t{1} << 18) / sizeof(T), kStep = 8 * kGemmPanel<T>;
  const int64_t columns = std::max(kStep, kSlice / g.m / kStep * kStep);
  GemmArgs<T> slice = g;
  slice.row_bias = nullptr;
  for (int64_t j = 0; j < g.n; j += columns) {
    slice.n = std::min(columns, g.n - j);
    slice.b = g.b + (g.b_panel != 0 ? panel_offset<T>(g.b_panel, j) : j * g.b_col);
    slice.c = g.c + j;
    product(slice);
    add_to_columns(d, g.row_bias, slice.c, g.c_row, g.m, static_cast<size_t>(slice.n));
  }
}

template <class T>
void product(const GemmArgs<T>& g) {
  const hn::ScalableTag<T> d;
  if (g.row_bias) return product_with_row_bias(d, g);
  constexpr int64_t kFewColumns = 512 / sizeof(T);
  constexpr int64_t kSmallLeft = 32768 / sizeof(T);  // stays in L1 without being packed
  if (g.k == 1 && g.b_col == 1 && g.b_panel == 0 && !g.bias && final_output(g).plain()) {
    outer(d, g);
  } else if (is_few_sums(d, g)) {
    few_sums(d, g);
  } else if (few_rows(d, g, g.b)) {
    return;
  } else if (g.m < 16 || read_in_place(g) || g.m * g.n * g.k <= int64_t{96} * 96 * 96 ||
             (g.b_panel != 0 && g.m * g.k <= kSmallLeft)) {
    direct(d, g);
  } else if (g.n <= kFewColumns && g.k <= kGemmBlock && g.a_col == 1) {
    direct_slices(d, g);
  } else {
    large(d, g, g.b);
  }
}

}  // namespace

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
