// A few sums over many k, as dot() has one: no vector is filled by rows or columns, and one sum's additions
// wait for one another. Blocks of k do not (gemm.h). Included once per instruction set by
// gemm_product-inl.h.

#if defined(TENON_CPU_GEMM_FEW_SUMS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_FEW_SUMS_INL
#undef TENON_CPU_GEMM_FEW_SUMS_INL
#else
#define TENON_CPU_GEMM_FEW_SUMS_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/gemm_few_rows-inl.h"
#include "backends/cpu/gemm/gemm_kernels.h"
#include "backends/cpu/gemm/gemm_pack-inl.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "hwy/highway.h"
#include "tenon/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Most rows and columns of such a product.
inline constexpr int64_t kFewSums = 8;

/// The sums of one row of A by some columns of B, each lane that of a block of `depth` k.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void add_blocks(D d, int64_t depth, const T* a, const T* b, ptrdiff_t b_column, int64_t columns,
                             T* sums) {
  constexpr size_t kColumns = 4;
  const size_t lanes = hn::Lanes(d);
  for (int64_t j = 0; j < columns; j += kColumns) {
    hn::Vec<D> sum[kColumns];
    const T* column[kColumns];
#pragma GCC unroll 4
    for (size_t c = 0; c < kColumns; ++c) {
      sum[c] = hn::Zero(d);
      column[c] = b + std::min(j + static_cast<int64_t>(c), columns - 1) * b_column;
    }
    for (int64_t p = 0; p < depth; ++p) {
      const ptrdiff_t at = p * static_cast<ptrdiff_t>(lanes);
      const auto av = hn::Load(d, a + at);
#pragma GCC unroll 4
      for (size_t c = 0; c < kColumns; ++c)
        sum[c] = fused_mul_add(d, av, hn::Load(d, column[c] + at), sum[c]);
    }
    for (size_t c = 0; c < kColumns; ++c) hn::Store(sum[c], d, sums + (static_cast<size_t>(j) + c) * lanes);
  }
}

/// Every second of `count` elements, as one of the parts of complex numbers.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE const T* take_every_second(D d, T* to, const T* from, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  // The last one has none after it.
  for (; i + lanes < count; i += lanes) {
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, from + 2 * i, even, odd);
    hn::Store(even, d, to + i);
  }
  for (; i < count; ++i) to[i] = from[2 * i];
  return to;
}

/// Whether such a product pays for turning blocks of rows and columns: a vector has half of its lanes to
/// fill.
template <class D, class T = hn::TFromD<D>>
bool is_few_sums(D d, const GemmArgs<T>& g) {
  const bool one = g.m == 1 && g.n == 1;
  const bool few = g.m <= kFewSums && g.n <= kFewSums && g.a_col == 1 && g.b_row == 1;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // With SSE4, emulated fma takes all of the time.
  return HWY_TARGET != HWY_SSE4 && (one || few) && 4 * g.k >= 3 * lanes * kGemmBlock && g.b_panel == 0;
}

/// The product of few sums over many k. Blocks of rows and columns are turned, so that each fills a lane.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void few_sums(D d, const GemmArgs<T>& g) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t size = kGemmBlock * lanes;
  T* left = static_cast<T*>(
      gemm_scratch(GemmScratch::PackedB, static_cast<size_t>((g.m + g.n + 1) * size) * sizeof(T)));
  T *right = left + g.m * size, *second = right + g.n * size;
  HWY_ALIGN T sums[static_cast<size_t>(kFewSums) * hn::MaxLanes(D())];
  HWY_ALIGN T totals[static_cast<size_t>(kFewSums * kFewSums)] = {};
  for (int64_t p = 0; p < g.k;) {
    check_stop();
    const int64_t whole = std::min(lanes, (g.k - p) / kGemmBlock), blocks = std::max<int64_t>(whole, 1);
    const int64_t depth = whole > 0 ? kGemmBlock : g.k - p;
    const auto turn = [&](T* to, const T* from, ptrdiff_t step) HWY_ATTR {
      from += p * step;
      if (step == 2) from = take_every_second(d, second, from, blocks * depth), step = 1;
      pack_b_panel(d, to, static_cast<size_t>(lanes), from, step, kGemmBlock * step, depth,
                   static_cast<size_t>(blocks));
    };
    for (int64_t i = 0; i < g.m; ++i) turn(left + i * size, g.a + i * g.a_row, g.a_col);
    for (int64_t j = 0; j < g.n; ++j) turn(right + j * size, g.b + j * g.b_col, g.b_row);
    for (int64_t i = 0; i < g.m; ++i) {
      add_blocks(d, depth, left + i * size, right, size, g.n, sums);
      for (int64_t j = 0; j < g.n; ++j) {
        T& total = totals[i * kFewSums + j];
        for (int64_t l = 0; l < blocks; ++l)
          total = p == 0 && l == 0 ? sums[j * lanes] : total + sums[j * lanes + l];
      }
    }
    p += blocks * depth;
  }
  const auto columns = static_cast<size_t>(g.n);
  finish_tile(d, totals, static_cast<size_t>(g.m), static_cast<size_t>(kFewSums), columns, final_output(g));
  if (g.bias) add_to_rows(d, g.bias, g.c, g.c_row, g.m, columns);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
