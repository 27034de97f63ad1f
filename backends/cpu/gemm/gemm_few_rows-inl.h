// Few rows times a matrix that is read once, in the order of memory: one that is too large for the caches, or
// one of any size whose columns are contiguous. Included once per instruction set by gemm_product-inl.h.

#if defined(TENON_CPU_GEMM_FEW_ROWS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_FEW_ROWS_INL
#undef TENON_CPU_GEMM_FEW_ROWS_INL
#else
#define TENON_CPU_GEMM_FEW_ROWS_INL
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "backends/cpu/gemm/gemm_kernels.h"
#include "backends/cpu/gemm/gemm_pack-inl.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "backends/cpu/gemm/gemm_tile_table-inl.h"
#include "hwy/highway.h"
#include "tenon/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The tile of that many rows and vectors. Partial ones are compiled in files of their own.
template <class D, class T = hn::TFromD<D>>
TileFunction<T> find_tile(size_t rows, size_t vecs, bool partial) {
  const size_t at = tile_place(rows, vecs);
  return (partial ? partial_tiles(T()) : full_tiles(T()))[at];
}

/// All rows of one panel of columns, `in.b` being readable with unit column stride.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void panel_rows(D d, int64_t m, int64_t k, TileIn<T> in, TileOut<T> out, size_t vecs,
                           size_t columns) {
  const bool partial = columns != vecs * hn::Lanes(d);
  // Rows are dealt evenly: 8 as 4 + 4, not as 6 + 2, whose few sums would wait for one another.
  const int64_t most = static_cast<int64_t>(max_rows(vecs));
  const int64_t parts = (m + most - 1) / most;
  const int64_t base = m / parts, longer = m % parts;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t rows = base + (part < longer ? 1 : 0);
    find_tile<D>(static_cast<size_t>(rows), vecs, partial)(d, k, in, out, columns);
    in.a += rows * in.a_row;
    out.c += rows * out.c_row;
    if (out.resume) out.resume += rows * out.resume_row;
  }
}

/// Of the columns from `column` on.
template <class T>
TileOut<T> final_output(const GemmArgs<T>& g, int64_t column = 0) {
  return {g.c + column * g.c_col, g.c_row, g.c_col, g.alpha, g.beta, nullptr, 0};
}

/// Most rows that these functions take.
inline constexpr int64_t kFewRows = 8;
/// Of a right matrix that stays in L2 from one product to the next.
inline constexpr int64_t kCachedBytes = int64_t{1} << 21;
/// Bytes of B, which is stored as S.
template <class S, class T>
int64_t right_bytes(const GemmArgs<T>& g) {
  return g.k * g.n * static_cast<int64_t>(sizeof(S));
}
/// Vectors of columns that are added up at a time.
inline constexpr size_t kFewVecs = 2;
/// Rows of B that are added together, as the registers allow.
inline constexpr int64_t kFewDepth = HWY_TARGET == HWY_AVX3 ? 8 : 4;

/// k of columns that are turned together: few lines of each, so that memory and arithmetic take turns often.
inline constexpr int64_t kFewChunk = 64;

/// total = first ? sum : total + sum, and sum = 0.
template <class T>
HWY_INLINE void end_block(T* total, T* sum, int64_t size, bool first) {
  for (int64_t i = 0; i < size; ++i) {
    total[i] = first ? sum[i] : total[i] + sum[i];
    sum[i] = T(0);
  }
}

/// Adds kDepth rows of B, times `a`, [m, kDepth], to the sums of m rows and `columns` columns, and asks for
/// the rows that come next.
template <int64_t kDepth, class D, class S, class T = hn::TFromD<D>>
HWY_NOINLINE void add_rows(D d, int64_t m, const T* a, const S* b, ptrdiff_t b_row, const S* next, T* sums,
                           ptrdiff_t sums_row, int64_t columns) {
  using V = hn::Vec<D>;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), step = static_cast<int64_t>(kFewVecs) * lanes;
  int64_t j = 0;
  for (; j + step <= columns; j += step) {
    V b0[kDepth], b1[kDepth];
#pragma GCC unroll 8
    for (int64_t p = 0; p < kDepth; ++p) {
      b0[p] = load_stored(d, b + p * b_row + j);
      b1[p] = load_stored(d, b + p * b_row + j + lanes);
      prefetch_span(next + p * b_row + j, static_cast<size_t>(step));
    }
    const T* ar = a;
    T* at = sums + j;
    for (int64_t r = 0; r < m; ++r, ar += kDepth, at += sums_row) {
      V s0 = hn::LoadU(d, at), s1 = hn::LoadU(d, at + lanes);
#pragma GCC unroll 8
      for (int64_t p = 0; p < kDepth; ++p) {
        const V av = hn::Set(d, ar[p]);
        s0 = fused_mul_add(d, av, b0[p], s0);
        s1 = fused_mul_add(d, av, b1[p], s1);
      }
      hn::StoreU(s0, d, at);
      hn::StoreU(s1, d, at + lanes);
    }
  }
  for (; j < columns; ++j) {
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t p = 0; p < kDepth; ++p)
        sums[r * sums_row + j] =
            std::fma(a[r * kDepth + p], static_cast<T>(b[p * b_row + j]), sums[r * sums_row + j]);
    }
  }
}

/// B has contiguous rows. A run of each is read, some rows at a time; sums stay in L1.
template <class D, class S, class T = hn::TFromD<D>>
HWY_INLINE void few_rows_by_rows(D d, const GemmArgs<T>& g, const S* b) {
  constexpr int64_t kLine = 64 / sizeof(T), kSums = 16384 / sizeof(T);
  const int64_t run = std::min((g.n + kLine - 1) / kLine, kSums / kLine / std::max<int64_t>(g.m, 2)) * kLine;
  const int64_t row = run + kLine;  // rows of a power of two would hide one another's stores
  T* sums =
      static_cast<T*>(gemm_scratch(GemmScratch::PackedB, static_cast<size_t>(2 * g.m * row) * sizeof(T)));
  T* totals = sums + g.m * row;
  T a[kFewRows * kFewDepth];
  std::fill_n(sums, g.m * row, T(0));
  for (int64_t j = 0; j < g.n; j += run) {
    const int64_t columns = std::min(run, g.n - j);
    const S* after = b + (j + 2 * run <= g.n ? j + run : 0);
    for (int64_t pc = 0; pc < g.k; pc += kGemmBlock) {
      check_stop();
      const int64_t end = std::min(pc + kGemmBlock, g.k);
      for (int64_t p = pc; p < end;) {
        const int64_t depth = p + kFewDepth <= end ? kFewDepth : 1;
        for (int64_t r = 0; r < g.m; ++r) {
          for (int64_t i = 0; i < depth; ++i) a[r * depth + i] = g.a[r * g.a_row + (p + i) * g.a_col];
        }
        const S* rows = b + p * g.b_row + j;
        const S* next = p + 2 * kFewDepth <= g.k ? rows + kFewDepth * g.b_row : after;
        const auto add = depth == 1 ? &add_rows<1, D, S> : &add_rows<kFewDepth, D, S>;
        add(d, g.m, a, rows, g.b_row, next, sums, row, columns);
        p += depth;
      }
      end_block(totals, sums, g.m * row, pc == 0);
    }
    finish_tile(d, totals, static_cast<size_t>(g.m), static_cast<size_t>(row), static_cast<size_t>(columns),
                final_output(g, j));
    if (g.bias) add_to_rows(d, g.bias + j, g.c + j, g.c_row, g.m, static_cast<size_t>(columns));
  }
}

/// Adds `depth` k of packed columns to the sums of kRows rows, and asks for lines that come later: one of
/// each of `columns` columns, spread over the loop.
template <size_t kRows, class D, class S, class T = hn::TFromD<D>>
HWY_NOINLINE void add_columns(D d, int64_t depth, const T* a, ptrdiff_t a_row, const T* packed, T* sums,
                              const S* later, ptrdiff_t b_col, int64_t columns) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  V sum[kRows][kFewVecs];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kFewVecs; ++v) sum[r][v] = hn::Load(d, sums + (r * kFewVecs + v) * lanes);
  }
  for (int64_t p = 0; p < depth; ++p, ++a, packed += kFewVecs * lanes) {
    for (int64_t c = p; c < columns; c += depth) prefetch_span(later + c * b_col, kFewChunk);
    const V b0 = hn::Load(d, packed), b1 = hn::Load(d, packed + lanes);
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const V av = hn::Set(d, a[static_cast<ptrdiff_t>(r) * a_row]);
      sum[r][0] = fused_mul_add(d, av, b0, sum[r][0]);
      sum[r][1] = fused_mul_add(d, av, b1, sum[r][1]);
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (size_t v = 0; v < kFewVecs; ++v) hn::Store(sum[r][v], d, sums + (r * kFewVecs + v) * lanes);
  }
}

#if HWY_TARGET <= HWY_AVX3
/// The even (odd) 128-bit blocks of two vectors in turns: a0 b0 a2 b2 (a1 b1 a3 b3).
HWY_INLINE __m512 even_blocks(__m512 a, __m512 b) {
  return _mm512_mask_shuffle_f32x4(a, 0xF0F0, b, b, _MM_PERM_CCAA);
}
HWY_INLINE __m512 odd_blocks(__m512 a, __m512 b) {
  return _mm512_mask_shuffle_f32x4(b, 0x0F0F, a, a, _MM_PERM_DDBB);
}
#endif

/// A line of memory of each of one vector of columns, which begins at column(lane), turned: use(i, vector)
/// for element i of each.
template <class D, class Columns, class Use, class T = hn::TFromD<D>>
HWY_INLINE void turn_lines(D d, const Columns& column, const Use& use) {
  using V = hn::Vec<D>;
#if HWY_TARGET <= HWY_AVX3
  constexpr size_t kLanes = hn::MaxLanes(D());
  if constexpr (kLanes == 16) {
    // Columns a power of two apart share a cache set, which has few ways: both halves of a line are loaded
    // one after the other, each beside that of another column. Blocks of four columns change places, then the
    // elements within blocks, which are used at once, as registers are few.
    const hn::Half<D> dh;
    const hn::Repartition<float, D> df;
    const auto half_lines = [&](size_t lane, size_t i) HWY_ATTR {
      return hn::BitCast(
          df, hn::Combine(d, hn::LoadU(dh, column(lane + 8) + i), hn::LoadU(dh, column(lane) + i)));
    };
    V block[kLanes];
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; ++c) {
#pragma GCC unroll 2
      for (size_t i = 0; i < kLanes; i += kLanes / 2) {
        const auto v02 = half_lines(c, i), v13 = half_lines(c + 4, i);
        block[c + i] = hn::BitCast(d, hn::Vec<decltype(df)>{even_blocks(v02.raw, v13.raw)});
        block[c + i + 4] = hn::BitCast(d, hn::Vec<decltype(df)>{odd_blocks(v02.raw, v13.raw)});
      }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kLanes; i += 4) {
      V rows[4];
      transpose_blocks(d, block[i], block[i + 1], block[i + 2], block[i + 3], rows);
#pragma GCC unroll 4
      for (size_t r = 0; r < 4; ++r) use(static_cast<int64_t>(i + r), rows[r]);
    }
    return;
  }
#endif
#pragma GCC unroll 8
  for (size_t i = 0; i < 64 / sizeof(T); i += kBlockLanes<T>) {
    V rows[kBlockLanes<T>];
    load_transposed(
        d, [&](size_t lane) HWY_ATTR { return column(lane) + i; }, rows);
#pragma GCC unroll 4
    for (size_t r = 0; r < kBlockLanes<T>; ++r) use(static_cast<int64_t>(i + r), rows[r]);
  }
}

/// The elements of a line of each column, in ascending k: use(i, vector) for each. bfloat16 changes places in
/// pairs, which are the upper halves of float32 once they are apart.
template <class S, class D, class Columns, class Use, class T = hn::TFromD<D>>
HWY_INLINE void for_lines(D d, const Columns& column, int64_t p, const Use& use) {
  if constexpr (std::is_same_v<S, T>) {
    turn_lines(
        d, [&](size_t lane) HWY_ATTR { return column(lane) + p; }, use);
  } else {
    const hn::RebindToUnsigned<D> pairs;
    const auto upper = hn::Set(pairs, 0xFFFF0000u);
    turn_lines(
        pairs, [&](size_t lane) HWY_ATTR { return reinterpret_cast<const uint32_t*>(column(lane) + p); },
        [&](int64_t i, hn::Vec<decltype(pairs)> line) HWY_ATTR {
          use(2 * i, hn::BitCast(d, hn::ShiftLeft<16>(line)));
          use(2 * i + 1, hn::BitCast(d, hn::And(line, upper)));
        });
  }
}

/// Rows of the left matrix: four from `first` on and, of more, the others from row `second` on, which may be
/// the same. Each vector of columns that takes turns has a `first` of its own: a compiler that knew them to
/// be the same would keep a line's elements from one vector to the next, and spill them.
template <class T>
struct LeftRows {
  const T* first[kFewVecs];
  ptrdiff_t row;
  int64_t second;
};

/// Adds `depth` k of columns, from `at` on, to the sums of kRows rows. kVecs vectors of columns take turns,
/// so that the sums of few rows do not wait for one another. The runs are long enough for the processor to
/// see that memory is read in order, and to ask for it.
template <size_t kRows, size_t kVecs, class S, class D, class Columns, class T = hn::TFromD<D>>
HWY_INLINE void add_turned(D d, int64_t depth, const LeftRows<T>& left, const Columns* columns, int64_t at,
                           T* sums) {
  using V = hn::Vec<D>;
  constexpr int64_t kLine = 64 / sizeof(S);
  constexpr size_t kGroup = 4;
  const size_t lanes = hn::Lanes(d);
  const ptrdiff_t row = left.row, row3 = 3 * row;
  const T* a[kVecs];
  for (size_t v = 0; v < kVecs; ++v) a[v] = left.first[v] + at;
  const auto left_row = [&](size_t v, size_t r) HWY_ATTR {
    const T* group = a[v] + (r < kGroup ? 0 : left.second * row);
    return r % kGroup == 3 ? group + row3 : group + static_cast<ptrdiff_t>(r % kGroup) * row;
  };
  V sum[kVecs][kRows];
  const auto each = [&](const auto& use) HWY_ATTR {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVecs; ++v) {
#pragma GCC unroll 8
      for (size_t r = 0; r < kRows; ++r) {
        const size_t place = r < kGroup ? r : static_cast<size_t>(left.second) + r - kGroup;
        use(sum[v][r], sums + (place * kFewVecs + v) * lanes);
      }
    }
  };
  const auto add = [&](size_t v, int64_t p, V line) HWY_ATTR {
#pragma GCC unroll 8
    for (size_t r = 0; r < kRows; ++r)
      sum[v][r] = fused_mul_add(d, hn::Set(d, left_row(v, r)[p]), line, sum[v][r]);
  };
  each([&](V& s, const T* from) HWY_ATTR { s = hn::Load(d, from); });
  int64_t p = 0;
  for (; p + kLine <= depth; p += kLine) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVecs; ++v) {
      for_lines<S>(d, columns[v], p, [&](int64_t i, V line) HWY_ATTR { add(v, p + i, line); });
    }
  }
  // The last whole line of each column, without what was added before; or all that there is.
  const int64_t begin = std::max(depth - kLine, -at);
  for (size_t v = 0; v < kVecs && p < depth; ++v) {
    HWY_ALIGN T last[kLine * hn::MaxLanes(D())];
    const auto line_at = [&](int64_t q) { return last + static_cast<size_t>(q - begin) * lanes; };
    if (begin == depth - kLine) {
      for_lines<S>(d, columns[v], begin,
                   [&](int64_t i, V line) HWY_ATTR { hn::Store(line, d, line_at(begin + i)); });
    } else {
      for (int64_t q = p; q < depth; ++q) {
        for (size_t l = 0; l < lanes; ++l) line_at(q)[l] = static_cast<T>(columns[v](l)[q]);
      }
    }
    for (int64_t q = p; q < depth; ++q) add(v, q, hn::Load(d, line_at(q)));
  }
  each([&](V s, T* to) HWY_ATTR { hn::Store(s, d, to); });
}

/// The same for kVecs vectors of columns from b on.
template <size_t kRows, size_t kVecs, class D, class S, class T = hn::TFromD<D>>
HWY_NOINLINE void turn_vectors(D d, int64_t depth, const LeftRows<T>& left, const S* b, ptrdiff_t b_col,
                               int64_t at, T* sums) {
  ColumnsAt<D, S> columns[kVecs];
  for (size_t v = 0; v < kVecs; ++v)
    columns[v] = {b + at + static_cast<ptrdiff_t>(v * hn::Lanes(d)) * b_col, b_col};
  add_turned<kRows, kVecs, S>(d, depth, left, columns, at, sums);
}

/// The same for the first `count` columns of one vector.
template <size_t kRows, class D, class S, class T = hn::TFromD<D>>
HWY_NOINLINE void turn_first(D d, int64_t depth, const LeftRows<T>& left, const S* b, ptrdiff_t b_col,
                             size_t count, int64_t at, T* sums) {
  const FirstColumnsAt<D, S> columns(b + at, b_col, count);
  add_turned<kRows, 1, S>(d, depth, left, &columns, at, sums);
}

/// What adds m rows of whole vectors; with SSE4, whose emulated fma takes all of the time, one.
template <class D, class S>
auto turning([[maybe_unused]] int64_t m) {
  if constexpr (HWY_TARGET == HWY_SSE4) {
    return &turn_vectors<1, 1, D, S>;
  } else {
    if (m > 2) return m == 3 ? &turn_vectors<3, 1, D, S> : &turn_vectors<4, 1, D, S>;
    return m == 1 ? &turn_vectors<1, 1, D, S> : &turn_vectors<2, 1, D, S>;
  }
}

/// Adds `depth` k of `count` columns from b on to the sums of m rows.
template <class D, class S, class T = hn::TFromD<D>>
HWY_INLINE void turn_columns(D d, int64_t m, int64_t depth, LeftRows<T> left, const S* b, ptrdiff_t b_col,
                             size_t count, int64_t at, [[maybe_unused]] bool cached, T* sums) {
  const size_t lanes = hn::Lanes(d);
  if constexpr (HWY_TARGET != HWY_SSE4) {
    // Two vectors of columns are too many places for what brings memory into the caches, and two of sixteen
    // too many for a cache set that columns a power of two apart share.
    if (m == 1 && cached && count == kFewVecs * lanes)
      return turn_vectors<1, kFewVecs>(d, depth, left, b, b_col, at, sums);
    if constexpr (HWY_TARGET != HWY_AVX3) {
      if (m == 2 && count == kFewVecs * lanes)
        return turn_vectors<2, kFewVecs>(d, depth, left, b, b_col, at, sums);
    }
  }
  const auto from = [&](size_t v) { return b + static_cast<ptrdiff_t>(v * lanes) * b_col; };
  const size_t full = count / lanes, rest = count % lanes;
  if constexpr (HWY_TARGET != HWY_SSE4 && std::is_same_v<S, float>) {
    if (m > 4) {
      constexpr size_t kSome = HWY_TARGET == HWY_AVX3 ? 6 : kFewRows;
      const bool some = m <= static_cast<int64_t>(kSome);
      left.second = m - static_cast<int64_t>(some ? kSome : kFewRows) + 4;
      const auto first = some ? &turn_first<kSome, D, S> : &turn_first<kFewRows, D, S>;
      for (size_t v = 0; v * lanes < count; ++v)
        first(d, depth, left, from(v), b_col, std::min(lanes, count - v * lanes), at, sums + v * lanes);
      return;
    }
  }
  const auto whole = turning<D, S>(m);
  for (size_t v = 0; v < full; ++v) whole(d, depth, left, from(v), b_col, at, sums + v * lanes);
  for (int64_t r = 0; rest > 0 && r < m; ++r) {
    const LeftRows<T> row{{left.first[0] + r * left.row}, 0, 0};
    turn_first<1>(d, depth, row, from(full), b_col, rest, at,
                  sums + (static_cast<size_t>(r) * kFewVecs + full) * lanes);
  }
}

/// B has contiguous columns. A line of each of some columns is read and turned, in registers or, where
/// elements are converted for more rows than one pass adds, in L1, and added to sums, which stay there.
template <class D, class S, class T = hn::TFromD<D>>
HWY_INLINE void few_rows_by_columns(D d, const GemmArgs<T>& g, const S* b) {
  constexpr size_t kMostWidth = kFewVecs * hn::MaxLanes(D());
  constexpr bool kConverted = !std::is_same_v<S, T>,
                 kPairs = std::is_same_v<S, BFloat16> && HWY_TARGET != HWY_SSE4;
  constexpr int64_t kRowsOfPass = 4;
  const bool turned = !kConverted || (kPairs && g.m <= kRowsOfPass);
  HWY_ALIGN T packed[kConverted ? kFewChunk * kMostWidth : 1];
  const T* left = g.a;
  ptrdiff_t left_row = g.a_row;
  if (g.a_col != 1) {
    T* to = static_cast<T*>(gemm_scratch(GemmScratch::PackedA, static_cast<size_t>(g.m * g.k) * sizeof(T)));
    for (int64_t r = 0; r < g.m; ++r) {
      for (int64_t p = 0; p < g.k; ++p) to[r * g.k + p] = g.a[r * g.a_row + p * g.a_col];
    }
    left = to;
    left_row = g.k;
  }
  const LeftRows<T> rows{{left, left}, left_row, 0};
  HWY_ALIGN T sums[static_cast<size_t>(kFewRows) * kMostWidth] = {};
  HWY_ALIGN T totals[static_cast<size_t>(kFewRows) * kMostWidth];
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d)), width = static_cast<int64_t>(kFewVecs) * lanes;
  for (int64_t j = 0; j < g.n; j += width, b += width * g.b_col) {
    const int64_t columns = std::min(width, g.n - j);
    if (!turned && columns < width) std::fill_n(packed, kFewChunk * width, T(0));
    for (int64_t p = 0; p < g.k;) {
      if (p % (16 * kGemmBlock) == 0) check_stop();
      const int64_t depth = std::min(turned ? kGemmBlock : kFewChunk, g.k - p);
      const T* a = left + p;
      if constexpr (!kConverted || kPairs) {
        const bool cached = right_bytes<S>(g) <= kCachedBytes;
        if (turned)
          turn_columns(d, g.m, depth, rows, b, g.b_col, static_cast<size_t>(columns), p, cached, sums);
      }
      if constexpr (kConverted) {
        for (int64_t v = 0; !turned && v * lanes < columns; ++v) {
          pack_columns(d, packed + v * lanes, static_cast<size_t>(width), b + v * lanes * g.b_col + p,
                       g.b_col, depth, static_cast<size_t>(std::min(lanes, columns - v * lanes)));
        }
        // The lines after the next ones, of these columns or of the next.
        const int64_t coming = p + depth;
        const S* later = coming < g.k           ? b + coming
                         : j + 2 * width <= g.n ? b + width * g.b_col + coming - g.k
                                                : b;
        int64_t wanted = columns;
        for (int64_t r = 0; !turned && r < g.m; r += kRowsOfPass, wanted = 0) {
          const auto add = g.m - r >= 4   ? &add_columns<4, D, S>
                           : g.m - r == 3 ? &add_columns<3, D, S>
                           : g.m - r == 2 ? &add_columns<2, D, S>
                                          : &add_columns<1, D, S>;
          add(d, depth, a + r * left_row, left_row, packed, sums + r * width, later, g.b_col, wanted);
        }
      }
      p += depth;
      if (p % kGemmBlock == 0 || p == g.k) end_block(totals, sums, g.m * width, p <= kGemmBlock);
    }
    finish_tile(d, totals, static_cast<size_t>(g.m), static_cast<size_t>(width), static_cast<size_t>(columns),
                final_output(g, j));
    if (g.bias) add_to_rows(d, g.bias + j, g.c + j, g.c_row, g.m, static_cast<size_t>(columns));
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
