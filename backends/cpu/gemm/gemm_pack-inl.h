// Packing: copies of A and B in the order in which the micro kernel reads them.
// Included once per instruction set by gemm_product-inl.h.

#if defined(TENON_CPU_GEMM_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_PACK_INL
#undef TENON_CPU_GEMM_PACK_INL
#else
#define TENON_CPU_GEMM_PACK_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "backends/cpu/gemm/gemm_simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Copies one vector of k-contiguous columns, as many k as whole blocks hold; returns how many.
template <class D, class Columns, class Mask, class T = hn::TFromD<D>>
HWY_INLINE int64_t pack_transposed(D d, T* to, size_t width, Columns column, int64_t k, Mask mask) {
  constexpr int64_t kStep = kBlockLanes<T>;
  int64_t p = 0;
  for (; p + kStep <= k; p += kStep) {
    hn::Vec<D> rows[kStep];
    load_transposed(d, column, rows);
    column.advance(kStep);
#pragma GCC unroll 4
    for (int64_t s = 0; s < kStep; ++s) {
      hn::StoreU(hn::IfThenElseZero(mask, rows[s]), d, to);
      to += width;
    }
  }
  return p;
}

/// Copies one vector of k-contiguous columns (`columns` exist), by way of a buffer: each line of
/// memory is read once, though columns a power of two apart share cache sets.
template <class D, class S, class T = hn::TFromD<D>>
HWY_NOINLINE void pack_columns(D d, T* to, size_t width, const S* b, ptrdiff_t b_col, int64_t k,
                               size_t columns) {
  constexpr int64_t kRun = 64, kRow = kRun + 64 / sizeof(T), kStep = kBlockLanes<T>;
  HWY_ALIGN T buffer[hn::MaxLanes(D()) * kRow];
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  if (columns < hn::Lanes(d)) std::fill_n(buffer, hn::MaxLanes(D()) * kRow, T(0));
  for (int64_t p = 0; p < k; p += kRun) {
    const int64_t run = std::min(kRun, k - p);
    for (size_t l = 0; l < columns; ++l) {
      const S* from = b + static_cast<ptrdiff_t>(l) * b_col + p;
      T* row = buffer + static_cast<int64_t>(l) * kRow;
      int64_t i = 0;
      for (; i + lanes <= run; i += lanes) hn::StoreU(load_stored(d, from + i), d, row + i);
      for (; i < run; ++i) row[i] = static_cast<T>(from[i]);
    }
    ColumnsAt<D> column(buffer, kRow);
    for (int64_t i = 0; i < run; i += kStep) {
      hn::Vec<D> rows[kStep];
      load_transposed(d, column, rows);
      column.advance(kStep);
#pragma GCC unroll 4
      for (int64_t s = 0; s < kStep; ++s) {
        if (i + s < run) hn::StoreU(rows[s], d, to);
        to += width;
      }
    }
  }
}

/// One panel of B, k x width, as rows of `width` elements (a multiple of the lanes); columns from `columns`
/// on are zero.
template <class D, class S, class T = hn::TFromD<D>>
HWY_NOINLINE void pack_b_panel(D d, T* to, size_t width, const S* b, ptrdiff_t b_row, ptrdiff_t b_col,
                               int64_t k, size_t columns) {
  const size_t lanes = hn::Lanes(d);
  const auto row_at = [&](int64_t p, size_t j) { return to + p * static_cast<ptrdiff_t>(width) + j; };
  for (size_t j = 0; j < width; j += lanes) {
    if (j >= columns) {
      for (int64_t p = 0; p < k; ++p) hn::StoreU(hn::Zero(d), d, row_at(p, j));
      continue;
    }
    const size_t here = std::min(lanes, columns - j);
    const S* from = b + static_cast<ptrdiff_t>(j) * b_col;
    if (here == lanes && b_col == 1) {
      for (int64_t p = 0; p < k; ++p) hn::StoreU(load_stored(d, from + p * b_row), d, row_at(p, j));
    } else if (b_row == 1 && !std::is_same_v<S, T>) {
      pack_columns(d, row_at(0, j), width, from, b_col, k, here);
    } else {
      int64_t done = 0;
      if constexpr (std::is_same_v<S, T>) {
        const auto mask = hn::FirstN(d, here);
        if (b_row == 1 && here == lanes) {
          done = pack_transposed(d, row_at(0, j), width, ColumnsAt<D>(from, b_col), k, mask);
        } else if (b_row == 1) {
          done = pack_transposed(d, row_at(0, j), width, FirstColumnsAt<D>(from, b_col, here), k, mask);
        }
      }
      for (int64_t p = done; p < k; ++p) {
        for (size_t l = 0; l < lanes; ++l)
          row_at(p, j)[l] =
              l < here ? static_cast<T>(from[p * b_row + static_cast<ptrdiff_t>(l) * b_col]) : T(0);
      }
    }
  }
}

/// A block of B, k x columns, as panels of `width` columns that start `panel` elements apart. Several panels
/// are packed at once, so that rows are read in runs of 2 KiB: one panel alone would read two lines of each
/// row, and rows a power of two apart evict one another.
template <class D, class S, class T = hn::TFromD<D>>
HWY_NOINLINE void pack_b_block(D d, T* to, ptrdiff_t panel, size_t width, const S* b, ptrdiff_t b_row,
                               ptrdiff_t b_col, int64_t k, size_t columns) {
  constexpr size_t kRun = 2048 / sizeof(S);
  const size_t lanes = hn::Lanes(d);
  size_t j = 0;
  while (b_col == 1 && j + width <= columns) {
    const size_t panels = std::min(kRun, columns - j) / width;
    for (int64_t p = 0; p < k; ++p) {
      const S* from = b + p * b_row + j;
      T* out = to + p * static_cast<ptrdiff_t>(width);
      for (size_t i = 0; i < panels; ++i, from += width, out += panel) {
        for (size_t l = 0; l < width; l += lanes) hn::StoreU(load_stored(d, from + l), d, out + l);
      }
    }
    j += panels * width;
    to += static_cast<ptrdiff_t>(panels) * panel;
  }
  for (; j < columns; j += width, to += panel) {
    pack_b_panel(d, to, width, b + static_cast<ptrdiff_t>(j) * b_col, b_row, b_col, k,
                 std::min(width, columns - j));
  }
}

/// `rows` rows of A in panels of kRows: for each k, the panel's elements side by side; missing rows are zero.
template <size_t kRows, class S, class T>
HWY_NOINLINE void pack_a(T* to, const S* a, ptrdiff_t a_row, ptrdiff_t a_col, int64_t rows, int64_t k) {
  for (int64_t i = 0; i < rows; i += kRows) {
    const size_t here = static_cast<size_t>(std::min<int64_t>(kRows, rows - i));
    const S* from = a + i * a_row;
    if (here == kRows && a_row == 1 && std::is_same_v<S, T>) {
      for (int64_t p = 0; p < k; ++p, to += kRows) std::memcpy(to, from + p * a_col, kRows * sizeof(T));
    } else if (here == kRows) {
      for (int64_t p = 0; p < k; ++p) {
        const S* at = from + p * a_col;
#pragma GCC unroll 8
        for (size_t r = 0; r < kRows; ++r) to[r] = static_cast<T>(at[static_cast<ptrdiff_t>(r) * a_row]);
        to += kRows;
      }
    } else {
      for (int64_t p = 0; p < k; ++p) {
        const S* at = from + p * a_col;
        for (size_t r = 0; r < kRows; ++r)
          to[r] = r < here ? static_cast<T>(at[static_cast<ptrdiff_t>(r) * a_row]) : T(0);
        to += kRows;
      }
    }
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
