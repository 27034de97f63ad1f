// Products of bfloat16 in the order of matrix units (gemm.h), by vectors of float32. Included once per
// instruction set by gemm_kernels_half.cc; gemm_amx.cc has the same sums from instructions of their own.

#if defined(TENON_CPU_GEMM_BFLOAT16_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_BFLOAT16_INL
#undef TENON_CPU_GEMM_BFLOAT16_INL
#else
#define TENON_CPU_GEMM_BFLOAT16_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/gemm/flush_subnormals.h"
#include "backends/cpu/gemm/gemm_few_rows-inl.h"
#include "backends/cpu/gemm/gemm_halves-inl.h"
#include "backends/cpu/gemm/gemm_kernels.h"
#include "backends/cpu/gemm/gemm_pack-inl.h"
#include "backends/cpu/gemm/gemm_tile_table-inl.h"
#include "hwy/highway.h"
#include "tenon/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Most rows that one pass over a block of k adds, and a pass of two; with SSE4, whose emulated fma takes all
/// of the time, one.
inline constexpr int64_t kPairRows = HWY_TARGET == HWY_SSE4 ? 1 : 4,
                         kTwoPairRows = std::min<int64_t>(2, kPairRows);
/// Few rows, filled up to whole passes; one or two have passes of their own.
constexpr int64_t rows_of_passes(int64_t m) {
  return m <= 2 ? m : (m + kPairRows - 1) / kPairRows * kPairRows;
}

/// Adds the zeros that a block lacks; one is enough, and matters where it makes another zero of a sum.
template <class D, size_t kRows, size_t kVecs, class V = hn::Vec<D>>
HWY_INLINE void fill_block(D d, V (&sums)[kRows][kVecs]) {
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t v = 0; v < kVecs; ++v) sums[i][v] = hn::Add(sums[i][v], hn::Zero(d));
  }
}

template <class D, size_t kRows, size_t kVecs, class V = hn::Vec<D>>
HWY_INLINE void clear(D d, V (&sums)[kRows][kVecs]) {
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) sums[i][v] = hn::Zero(d);
  }
}

/// The sums of one block of at most kBFloat16Block k, added to totals: add(p, sums) adds those of k = p.
template <size_t kRows, size_t kVecs, class D, class Add>
HWY_INLINE void add_pair_block(D d, int64_t depth, const Add& add, float* totals, ptrdiff_t totals_row) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V even[kRows][kVecs], odd[kRows][kVecs];
  clear(d, even);
  if constexpr (HWY_TARGET == HWY_AVX3) {
    clear(d, odd);
    for (int64_t p = 0; p + 1 < depth; p += 2) {
      add(p, even);
      add(p + 1, odd);
    }
    if (depth % 2 != 0) add(depth - 1, even);
  } else {  // one parity after the other: the registers hold no more
    for (int64_t p = 0; p < depth; p += 2) add(p, even);
    clear(d, odd);
    for (int64_t p = 1; p < depth; p += 2) add(p, odd);
  }
  if (depth < kBFloat16Block) {
    if (depth + 1 < kBFloat16Block) fill_block(d, even);
    fill_block(d, odd);
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kVecs; ++v) {
      float* at = totals + static_cast<ptrdiff_t>(i) * totals_row + v * lanes;
      hn::StoreU(hn::Add(hn::LoadU(d, at), hn::Add(even[i][v], odd[i][v])), d, at);
    }
  }
}

/// Adds kTileRows rows of A times a panel of B, both packed, to totals.
template <class D>
HWY_NOINLINE void add_pair_tile(D d, int64_t k, const float* a, const float* b, float* totals,
                                ptrdiff_t totals_row) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  for (int64_t start = 0; start < k; start += kBFloat16Block) {
    const int64_t depth = std::min(kBFloat16Block, k - start);
    const auto add = [&](int64_t p, V(&sums)[kTileRows][kTileVecs]) HWY_ATTR {
      const float* row = b + (start + p) * static_cast<int64_t>(kTileVecs * lanes);
      const V b0 = hn::LoadU(d, row), b1 = hn::LoadU(d, row + lanes);
#pragma GCC unroll 8
      for (size_t i = 0; i < kTileRows; ++i) {
        const V av = hn::Set(d, a[(start + p) * static_cast<int64_t>(kTileRows) + static_cast<int64_t>(i)]);
        sums[i][0] = fused_mul_add(d, av, b0, sums[i][0]);
        sums[i][1] = fused_mul_add(d, av, b1, sums[i][1]);
      }
    };
    add_pair_block<kTileRows, kTileVecs>(d, depth, add, totals, totals_row);
  }
}

/// Adds a block of k of kRows rows of A, kBFloat16Block apart, times rows of B to totals of `columns`
/// columns, and asks for the rows that come next.
template <size_t kRows, class D>
HWY_NOINLINE void add_pair_rows(D d, int64_t depth, const float* a, const BFloat16* b, ptrdiff_t b_row,
                                const BFloat16* next, float* totals, ptrdiff_t totals_row, int64_t columns) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d)), step = static_cast<int64_t>(kFewVecs) * lanes;
  BFloat16 rest[kBFloat16Block * static_cast<int64_t>(kFewVecs * hn::MaxLanes(D()))];
  for (int64_t j = 0; j < columns; j += step, b += step) {
    const bool whole = j + step <= columns;
    if (!whole) {
      for (int64_t p = 0; p < depth; ++p) {
        for (int64_t i = 0; i < step; ++i)
          rest[p * step + i] = j + i < columns ? b[p * b_row + i] : BFloat16(0.0f);
      }
    }
    const BFloat16* from = whole ? b : rest;
    const ptrdiff_t row = whole ? b_row : step;
    const auto add = [&](int64_t p, V(&sums)[kRows][kFewVecs]) HWY_ATTR {
      const V b0 = load_stored(d, from + p * row), b1 = load_stored(d, from + p * row + lanes);
      if (next) prefetch_span(next + p * b_row + j, static_cast<size_t>(step));
#pragma GCC unroll 4
      for (size_t i = 0; i < kRows; ++i) {
        const V av = hn::Set(d, a[static_cast<int64_t>(i) * kBFloat16Block + p]);
        sums[i][0] = fused_mul_add(d, av, b0, sums[i][0]);
        sums[i][1] = fused_mul_add(d, av, b1, sums[i][1]);
      }
    };
    add_pair_block<kRows, kFewVecs>(d, depth, add, totals + j, totals_row);
  }
}

/// Few rows times a B of contiguous rows, which is read in runs, a block of k at a time; totals stay in L1.
template <class D>
HWY_INLINE void few_pairs_by_rows(D d, const GemmArgs<BFloat16>& g, HalfGemmScale scale) {
  constexpr int64_t kStep = static_cast<int64_t>(kFewVecs * hn::MaxLanes(D())), kTotals = 8192;
  const int64_t run = std::min((g.n + kStep - 1) / kStep, kTotals / kStep / g.m) * kStep;
  const int64_t filled = rows_of_passes(g.m) * run;
  float* totals =
      static_cast<float*>(gemm_scratch(GemmScratch::Totals, static_cast<size_t>(filled) * sizeof(float)));
  float a[kFewRows * kBFloat16Block] = {};
  for (int64_t j = 0; j < g.n; j += run) {
    const int64_t columns = std::min(run, g.n - j);
    std::fill_n(totals, filled, 0.0f);
    for (int64_t p = 0; p < g.k; p += kBFloat16Block) {
      if (p % (64 * kBFloat16Block) == 0) check_stop();
      const int64_t depth = std::min(kBFloat16Block, g.k - p);
      for (int64_t r = 0; r < g.m; ++r) {
        for (int64_t i = 0; i < depth; ++i)
          a[r * kBFloat16Block + i] = static_cast<float>(g.a[r * g.a_row + (p + i) * g.a_col]);
      }
      const BFloat16* rows = g.b + p * g.b_row + j;
      const BFloat16* next = p + 2 * kBFloat16Block <= g.k ? rows + kBFloat16Block * g.b_row : nullptr;
      const FlushSubnormals flush;
      for (int64_t r = 0; r < g.m; r += kPairRows, next = nullptr) {
        const auto add = g.m - r == 1   ? &add_pair_rows<1, D>
                         : g.m - r == 2 ? &add_pair_rows<kTwoPairRows, D>
                                        : &add_pair_rows<kPairRows, D>;
        add(d, depth, a + r * kBFloat16Block, rows, g.b_row, next, totals + r * run, run, columns);
      }
    }
    finish_bfloat16(d, totals, run, g.m, columns, g.c + j * g.c_col, g.c_row, g.c_col, scale);
  }
}

/// Adds all k of one vector of columns to totals of kRows rows. `a` is filled up with zeros to whole blocks.
/// A line of each column is a block of the definition; its pairs of k change places in registers.
template <size_t kRows, class D>
HWY_NOINLINE void add_pair_columns(D d, int64_t k, const float* a, int64_t a_row,
                                   const BFloat16* const* columns, float* totals) {
  using V = hn::Vec<D>;
  const hn::RebindToUnsigned<D> pairs;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kPairs = kBFloat16Block / 2;
  HWY_ALIGN uint32_t rest[hn::MaxLanes(D()) * kPairs] = {};
  const auto upper = hn::Set(pairs, 0xFFFF0000u);
  for (int64_t p = 0; p < k; p += kBFloat16Block, a += kBFloat16Block) {
    const bool whole = p + kBFloat16Block <= k;
    for (size_t l = 0; !whole && l < lanes; ++l)
      std::memcpy(rest + l * kPairs, columns[l] + p, static_cast<size_t>(k - p) * sizeof(BFloat16));
    hn::Vec<decltype(pairs)> lines[kPairs];
    turn_lines(
        pairs,
        [&](size_t lane) HWY_ATTR {
          return whole ? reinterpret_cast<const uint32_t*>(columns[lane] + p) : rest + lane * kPairs;
        },
        [&](int64_t i, auto line) HWY_ATTR { lines[i] = line; });
    const auto add = [&](int64_t i, V(&sums)[kRows][1]) HWY_ATTR {
      const auto line = lines[i / 2];
      const V b = hn::BitCast(d, i % 2 == 0 ? hn::ShiftLeft<16>(line) : hn::And(line, upper));
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r)
        sums[r][0] = fused_mul_add(d, hn::Set(d, a[static_cast<int64_t>(r) * a_row + i]), b, sums[r][0]);
    };
    add_pair_block<kRows, 1>(d, kBFloat16Block, add, totals, static_cast<ptrdiff_t>(lanes));
  }
}

/// Few rows times a B of contiguous columns.
template <class D>
HWY_INLINE void few_pairs_by_columns(D d, const GemmArgs<BFloat16>& g, HalfGemmScale scale) {
  constexpr size_t kMostLanes = hn::MaxLanes(D());
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t row = (g.k + kBFloat16Block - 1) / kBFloat16Block * kBFloat16Block;
  const int64_t rows = rows_of_passes(g.m);
  float* a =
      static_cast<float*>(gemm_scratch(GemmScratch::FloatA, static_cast<size_t>(rows * row) * sizeof(float)));
  std::fill_n(a, rows * row, 0.0f);
  for (int64_t r = 0; r < g.m; ++r) {
    for (int64_t p = 0; p < g.k; ++p) a[r * row + p] = static_cast<float>(g.a[r * g.a_row + p * g.a_col]);
  }
  const BFloat16* column[kMostLanes];
  HWY_ALIGN float totals[static_cast<size_t>(kFewRows) * kMostLanes];
  for (int64_t j = 0; j < g.n; j += lanes) {
    check_stop();
    // Lanes without a column have the last one's sums, which are not stored.
    for (int64_t l = 0; l < lanes; ++l) column[l] = g.b + std::min(j + l, g.n - 1) * g.b_col;
    std::fill_n(totals, rows * lanes, 0.0f);
    {
      const FlushSubnormals flush;
      for (int64_t r = 0; r < g.m; r += kPairRows) {
        const auto add = g.m - r == 1   ? &add_pair_columns<1, D>
                         : g.m - r == 2 ? &add_pair_columns<kTwoPairRows, D>
                                        : &add_pair_columns<kPairRows, D>;
        add(d, g.k, a + r * row, row, column, totals + r * lanes);
      }
    }
    finish_bfloat16(d, totals, lanes, g.m, std::min(lanes, g.n - j), g.c + j * g.c_col, g.c_row, g.c_col,
                    scale);
  }
}

/// Any product, B being converted as it is packed.
template <class D>
HWY_INLINE void packed_pairs(D d, const GemmArgs<BFloat16>& g, HalfGemmScale scale) {
  // Multiples of all tiles; a panel of B stays in L1, the block of A in L2.
  constexpr int64_t kBlockColumns = 512, kBlockK = 256;
  const int64_t slice_rows = g.k <= kFewK ? kFewKRows : 360;
  constexpr auto kRows = static_cast<int64_t>(kTileRows);
  const auto width = static_cast<int64_t>(kTileVecs * hn::Lanes(d));
  const auto scratch = [](GemmScratch slot, int64_t elements) {
    return static_cast<float*>(gemm_scratch(slot, static_cast<size_t>(elements) * sizeof(float)));
  };
  const int64_t panel = width * std::min(g.k, kBlockK);
  const int64_t most_columns = (std::min(g.n, kBlockColumns) + width - 1) / width * width;
  const int64_t most_rows = (std::min(g.m, slice_rows) + kRows - 1) / kRows * kRows;
  float* packed_a = scratch(GemmScratch::PackedA, most_rows * std::min(g.k, kBlockK));
  float* packed_b = scratch(GemmScratch::PackedB, most_columns / width * panel);
  float* totals = scratch(GemmScratch::Totals, most_rows * most_columns);
  for (int64_t i0 = 0; i0 < g.m; i0 += slice_rows) {
    const int64_t rows = std::min(slice_rows, g.m - i0);
    for (int64_t j0 = 0; j0 < g.n; j0 += kBlockColumns) {
      const int64_t columns = std::min(kBlockColumns, g.n - j0);
      std::fill_n(totals, most_rows * most_columns, 0.0f);
      for (int64_t p = 0; p < g.k; p += kBlockK) {
        check_stop();
        const int64_t k = std::min(kBlockK, g.k - p);
        pack_a<kTileRows>(packed_a, g.a + i0 * g.a_row + p * g.a_col, g.a_row, g.a_col, rows, k);
        pack_b_block(d, packed_b, panel, static_cast<size_t>(width), g.b + p * g.b_row + j0 * g.b_col,
                     g.b_row, g.b_col, k, static_cast<size_t>(columns));
        const FlushSubnormals flush;
        for (int64_t j = 0; j < columns; j += width) {
          for (int64_t i = 0; i < rows; i += kRows)
            add_pair_tile(d, k, packed_a + i * k, packed_b + j / width * panel, totals + i * most_columns + j,
                          most_columns);
        }
      }
      finish_bfloat16(d, totals, most_columns, rows, columns, g.c + i0 * g.c_row + j0 * g.c_col, g.c_row,
                      g.c_col, scale);
    }
  }
}

inline void product_of_bfloat16(const GemmArgs<BFloat16>& g, HalfGemmScale scale) {
  const hn::ScalableTag<float> d;
  const bool column = g.n == 1 && g.b_row == 1;  // whose other stride says nothing
  if (g.m <= kFewRows && g.b_col == 1 && !column) {
    few_pairs_by_rows(d, g, scale);
  } else if (g.m <= kFewRows && g.b_row == 1) {
    few_pairs_by_columns(d, g, scale);
  } else {
    packed_pairs(d, g, scale);
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
