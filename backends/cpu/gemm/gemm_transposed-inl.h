// A row or two times a matrix whose columns are contiguous: the weight of a linear layer at batch 1. The
// columns are transposed in registers, so that lanes are outputs and each sum runs along k in order. With
// AVX-512 whole lines of memory are; narrower vectors read quarters of them where they lie, which costs less
// there than bringing lines side by side.
// Included once per instruction set by gemm_product-inl.h. Knows strides; nothing of threads.

#if defined(TENON_CPU_GEMM_TRANSPOSED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_TRANSPOSED_INL
#undef TENON_CPU_GEMM_TRANSPOSED_INL
#else
#define TENON_CPU_GEMM_TRANSPOSED_INL
#endif

#include <algorithm>
#include <cstddef>

#include "backends/cpu/gemm/gemm_tile-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Vectors of columns whose sums hide the latency of fma.
inline constexpr size_t kTransposedVecs = HWY_TARGET == HWY_SSE4 ? 2 : 4;

#if HWY_TARGET == HWY_AVX3

/// A line of memory of each of some columns, side by side: at fixed distances, so that reading them needs no
/// address arithmetic, and nowhere near each other in the cache, where columns a power of two apart share
/// few sets.
template <class T>
inline constexpr int64_t kLine = 64 / sizeof(T);

/// Columns that lie in such lines, as load_transposed takes them.
template <class T>
struct LineColumns {
  const T* first;
  HWY_INLINE const T* operator()(size_t lane) const { return first + lane * static_cast<size_t>(kLine<T>); }
};

/// Copies `count` elements of each of `columns` columns, `b_col` apart, to lines.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void copy_lines(D d, const T* b, ptrdiff_t b_col, size_t columns, int64_t count, T* lines) {
  constexpr auto kItems = static_cast<size_t>(kLine<T>);
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(count);
  for (size_t j = 0; j < columns; ++j, b += b_col, lines += kItems) {
    // The line after next, to the second cache: more streams than the processor follows by itself.
    __builtin_prefetch(b + 2 * kItems, 0, 2);
    if (n == kItems) {
      for (size_t i = 0; i < kItems; i += lanes) hn::Store(hn::LoadU(d, b + i), d, lines + i);
    } else {
      for (size_t i = 0; i < n; i += lanes)
        hn::Store(load_first(d, b + i, std::min(lanes, n - i)), d, lines + i);
    }
  }
}

/// Adds `count` products a[r][p] * column(lane)[p], of at most a line, to the sums of kRows rows and kVecs
/// vectors of columns.
template <size_t kRows, size_t kVecs, class D, class T = hn::TFromD<D>>
HWY_INLINE void accumulate_lines(D d, int64_t count, const T* a, ptrdiff_t a_row, ptrdiff_t a_col,
                                 const T* lines, hn::Vec<D> (&sum)[kVecs][kRows]) {
  using V = hn::Vec<D>;
  constexpr int64_t kStep = kBlockLanes<T>;
  const size_t vector_lines = hn::Lanes(d) * static_cast<size_t>(kLine<T>);
  int64_t p = 0;
  for (; p + kStep <= count; p += kStep, a += kStep * a_col) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVecs; ++v) {
      V bv[kStep];
      load_transposed(d, LineColumns<T>{lines + v * vector_lines + p}, bv);
#pragma GCC unroll 4
      for (int64_t s = 0; s < kStep; ++s) {
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          const V av = hn::Set(d, a[static_cast<ptrdiff_t>(r) * a_row + s * a_col]);
          sum[v][r] = fused_mul_add(d, av, bv[s], sum[v][r]);
        }
      }
    }
  }
  if (p == count) return;
#pragma GCC unroll 4
  for (size_t v = 0; v < kVecs; ++v) {
    V bv[kStep];
    load_transposed(d, LineColumns<T>{lines + v * vector_lines + p}, bv);
    for (int64_t s = 0; s < count - p; ++s) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const V av = hn::Set(d, a[static_cast<ptrdiff_t>(r) * a_row + s * a_col]);
        sum[v][r] = fused_mul_add(d, av, bv[s], sum[v][r]);
      }
    }
  }
}

/// A line of each of 16 columns, transposed: out[k] has element k of every column.
template <class D>
HWY_INLINE void transpose_lines(D d, const float* b, ptrdiff_t b_col, hn::Vec<D> (&out)[16]) {
  using V = hn::Vec<D>;
  V quarter[4][4];  // of columns 4g .. 4g + 3: block L of vector i has their elements 4L + i
#pragma GCC unroll 4
  for (ptrdiff_t g = 0; g < 4; ++g) {
    const float* at = b + 4 * g * b_col;
    const V c0 = hn::LoadU(d, at), c1 = hn::LoadU(d, at + b_col);
    const V c2 = hn::LoadU(d, at + 2 * b_col), c3 = hn::LoadU(d, at + 3 * b_col);
    const V low02 = hn::InterleaveLower(d, c0, c2), low13 = hn::InterleaveLower(d, c1, c3);
    const V high02 = hn::InterleaveUpper(d, c0, c2), high13 = hn::InterleaveUpper(d, c1, c3);
    quarter[g][0] = hn::InterleaveLower(d, low02, low13);
    quarter[g][1] = hn::InterleaveUpper(d, low02, low13);
    quarter[g][2] = hn::InterleaveLower(d, high02, high13);
    quarter[g][3] = hn::InterleaveUpper(d, high02, high13);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    const auto q0 = quarter[0][i].raw, q1 = quarter[1][i].raw, q2 = quarter[2][i].raw, q3 = quarter[3][i].raw;
    const auto low01 = _mm512_shuffle_f32x4(q0, q1, 0x44), high01 = _mm512_shuffle_f32x4(q0, q1, 0xEE);
    const auto low23 = _mm512_shuffle_f32x4(q2, q3, 0x44), high23 = _mm512_shuffle_f32x4(q2, q3, 0xEE);
    out[i] = V{_mm512_shuffle_f32x4(low01, low23, 0x88)};
    out[4 + i] = V{_mm512_shuffle_f32x4(low01, low23, 0xDD)};
    out[8 + i] = V{_mm512_shuffle_f32x4(high01, high23, 0x88)};
    out[12 + i] = V{_mm512_shuffle_f32x4(high01, high23, 0xDD)};
  }
}

/// As accumulate_lines, of a whole line, read where it lies: one load for what takes four of quarters.
template <size_t kRows, size_t kVecs, class D>
HWY_INLINE void accumulate_whole_lines(D d, const float* a, ptrdiff_t a_row, ptrdiff_t a_col, const float* b,
                                       ptrdiff_t b_col, hn::Vec<D> (&sum)[kVecs][kRows]) {
  using V = hn::Vec<D>;
  constexpr ptrdiff_t kLanes = 16;
  for (ptrdiff_t j = 0; j < static_cast<ptrdiff_t>(kVecs) * kLanes; ++j)
    __builtin_prefetch(b + j * b_col + 2 * kLanes, 0, 2);
#pragma GCC unroll 4
  for (size_t v = 0; v < kVecs; ++v) {
    V bv[kLanes];
    transpose_lines(d, b + static_cast<ptrdiff_t>(v) * kLanes * b_col, b_col, bv);
#pragma GCC unroll 16
    for (ptrdiff_t s = 0; s < kLanes; ++s) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const V av = hn::Set(d, a[static_cast<ptrdiff_t>(r) * a_row + s * a_col]);
        sum[v][r] = fused_mul_add(d, av, bv[s], sum[v][r]);
      }
    }
  }
}

/// kRows rows times k-contiguous columns (a transposed matrix), kVecs vectors of outputs, of which `columns`
/// exist, at b + j * b_col.
template <size_t kRows, size_t kVecs, class D, class T = hn::TFromD<D>>
HWY_NOINLINE void tile_transposed(D d, int64_t k, const TileIn<T>& in, ptrdiff_t b_col, const TileOut<T>& out,
                                  size_t columns) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN T total[kRows * kVecs * hn::MaxLanes(D())];
  HWY_ALIGN T lines[kVecs * hn::MaxLanes(D()) * static_cast<size_t>(kLine<T>)];
  std::fill(lines + columns * static_cast<size_t>(kLine<T>), std::end(lines), T(0));
  for (int64_t start = 0; start < k; start += kGemmBlock) {
    const int64_t end = std::min<int64_t>(start + kGemmBlock, k);
    V sum[kVecs][kRows];
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) sum[v][r] = hn::Zero(d);
    }
    for (int64_t p = start; p < end; p += kLine<T>) {
      const int64_t count = std::min(kLine<T>, end - p);
      if constexpr (sizeof(T) == 4) {
        if (count == kLine<T> && columns == kVecs * lanes) {
          accumulate_whole_lines<kRows, kVecs>(d, in.a + p * in.a_col, in.a_row, in.a_col, in.b + p, b_col,
                                               sum);
          continue;
        }
      }
      copy_lines(d, in.b + p, b_col, columns, count, lines);
      accumulate_lines<kRows, kVecs>(d, count, in.a + p * in.a_col, in.a_row, in.a_col, lines, sum);
    }
    HWY_ALIGN T block_sum[kRows * kVecs * hn::MaxLanes(D())];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVecs; ++v) hn::Store(sum[v][r], d, block_sum + (r * kVecs + v) * lanes);
    }
    add_block(d, total, block_sum, kRows * kVecs, start == 0);
  }
  finish_tile(d, total, kRows, kVecs * lanes, columns, out);
}

#else

/// Adds `block` products a[r][p] * column(lane)[p] to the sums of kRows rows and kVecs vectors of columns.
template <size_t kRows, size_t kVecs, class D, class Columns, class T = hn::TFromD<D>>
HWY_INLINE void accumulate_transposed(D d, int64_t block, const T* a, ptrdiff_t a_row, ptrdiff_t a_col,
                                      Columns (&column)[kVecs], hn::Vec<D> (*sum)[kRows]) {
  using V = hn::Vec<D>;
  constexpr int64_t kStep = kBlockLanes<T>;
  int64_t p = 0;
  for (; p + kStep <= block; p += kStep) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVecs; ++v) {
      V bv[kStep];
      load_transposed(d, column[v], bv);
      column[v].advance(kStep);
#pragma GCC unroll 4
      for (int64_t s = 0; s < kStep; ++s) {
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r) {
          const V av = hn::Set(d, a[static_cast<ptrdiff_t>(r) * a_row + s * a_col]);
          sum[v][r] = fused_mul_add(d, av, bv[s], sum[v][r]);
        }
      }
    }
    a += kStep * a_col;
  }
  for (; p < block; ++p) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVecs; ++v) {
      HWY_ALIGN T row[hn::MaxLanes(D())];
      for (size_t l = 0; l < hn::Lanes(d); ++l) row[l] = *column[v](l);
      column[v].advance(1);
      const V bv = hn::Load(d, row);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        sum[v][r] = fused_mul_add(d, hn::Set(d, a[static_cast<ptrdiff_t>(r) * a_row]), bv, sum[v][r]);
      }
    }
    a += a_col;
  }
}

/// kRows rows times k-contiguous columns (a transposed matrix), kVecs vectors of outputs: the columns are
/// transposed in registers, so nothing is packed. `columns` exist, at b + j * b_col: all, if kVecs is
/// kTransposedVecs.
template <size_t kRows, size_t kVecs, class D, class T = hn::TFromD<D>>
HWY_NOINLINE void tile_transposed(D d, int64_t k, const TileIn<T>& in, ptrdiff_t b_col, const TileOut<T>& out,
                                  size_t columns) {
  using V = hn::Vec<D>;
  constexpr int64_t kLine = 64 / sizeof(T);
  // Columns a power of two apart share few cache sets and would evict one another between steps: then a line
  // of the columns of one vector at a time, else all vectors together, whose sums need not wait for one
  // another.
  const bool share_sets = b_col * static_cast<ptrdiff_t>(sizeof(T)) % 1024 == 0;
  const size_t lanes = hn::Lanes(d);
  HWY_ALIGN T total[kRows * kVecs * hn::MaxLanes(D())];
  for (int64_t start = 0; start < k; start += kGemmBlock) {
    const int64_t end = std::min<int64_t>(start + kGemmBlock, k);
    V sum[kVecs][kRows];
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) sum[v][r] = hn::Zero(d);
    }
    const T* a = in.a + start * in.a_col;
    if constexpr (kVecs < kTransposedVecs) {
      FirstColumnsAt<D> column[kVecs];
      for (size_t v = 0; v < kVecs; ++v) {
        column[v] = {in.b + start + static_cast<ptrdiff_t>(v * lanes) * b_col, b_col,
                     std::min(lanes, columns - v * lanes)};
      }
      accumulate_transposed<kRows>(d, end - start, a, in.a_row, in.a_col, column, sum);
    } else if (share_sets) {
      for (int64_t p = start; p < end; p += kLine) {
        const int64_t block = std::min(kLine, end - p);
#pragma GCC unroll 4
        for (size_t v = 0; v < kVecs; ++v) {
          ColumnsAt<D> column[1] = {{in.b + p + static_cast<ptrdiff_t>(v * lanes) * b_col, b_col}};
          accumulate_transposed<kRows>(d, block, in.a + p * in.a_col, in.a_row, in.a_col, column, sum + v);
        }
      }
    } else {
      ColumnsAt<D> column[kVecs];
      for (size_t v = 0; v < kVecs; ++v)
        column[v] = {in.b + start + static_cast<ptrdiff_t>(v * lanes) * b_col, b_col};
      accumulate_transposed<kRows>(d, end - start, a, in.a_row, in.a_col, column, sum);
    }
    HWY_ALIGN T block_sum[kRows * kVecs * hn::MaxLanes(D())];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVecs; ++v) hn::Store(sum[v][r], d, block_sum + (r * kVecs + v) * lanes);
    }
    add_block(d, total, block_sum, kRows * kVecs, start == 0);
  }
  finish_tile(d, total, kRows, kVecs * lanes, columns, out);
}

#endif

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
