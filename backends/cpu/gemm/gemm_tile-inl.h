// The micro kernel: a few rows by a few vectors of outputs, held in registers while k runs in ascending
// order. Included once per instruction set by gemm_tile_table-inl.h. Knows strides and masks, no
// cache blocking, and of threads that they may ask it to stop.

#if defined(TENON_CPU_GEMM_TILE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_TILE_INL
#undef TENON_CPU_GEMM_TILE_INL
#else
#define TENON_CPU_GEMM_TILE_INL
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_simd-inl.h"
#include "backends/cpu/pointwise/simd_ops-inl.h"
#include "hwy/highway.h"
#include "tenon/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Where a tile's outputs go: alpha * total + beta * c to C. A pass over some of k resumes from the totals of
/// the passes before it, and all but the last one have the totals' own place for C.
template <class T>
struct TileOut {
  T* c;
  ptrdiff_t c_row, c_col;
  T alpha, beta;
  const T* resume;  ///< null in the first pass; unit column stride
  ptrdiff_t resume_row;

  /// Whether totals are stored as they are.
  bool plain() const { return alpha == T(1) && beta == T(0) && c_col == 1; }
};

template <class T>
struct TileIn {
  const T* a;
  ptrdiff_t a_row, a_col;
  const T* b;
  ptrdiff_t b_row;                    ///< unit column stride
  ptrdiff_t b_panel = kGemmPanel<T>;  ///< between columns that are kGemmPanel apart
  const T* next = nullptr;            ///< not null: a line of each of k rows, b_row apart, that is read later
  T* packed = nullptr;  ///< where a tile that packs writes B, one row of the tile after the other
};

template <class T>
HWY_INLINE T finish_scalar(T total, const T* c, T alpha, T beta) {
  const T scaled = total * alpha;
  return beta == T(0) ? scaled : scaled + *c * beta;
}

/// Totals [rows, row_length], whose first `columns` columns exist, to C. The general case, off the tiles'
/// fast path.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void finish_tile(D d, const T* total, size_t rows, size_t row_length, size_t columns,
                              const TileOut<T>& out) {
  const size_t lanes = hn::Lanes(d);
  T* c = out.c;
  for (size_t i = 0; i < rows; ++i, total += row_length, c += out.c_row) {
    size_t j = 0;
    for (; out.c_col == 1 && j + lanes <= columns; j += lanes) {
      auto x = hn::Mul(hn::Load(d, total + j), hn::Set(d, out.alpha));
      if (out.beta != T(0)) x = hn::Add(x, hn::Mul(hn::LoadU(d, c + j), hn::Set(d, out.beta)));
      hn::StoreU(x, d, c + j);
    }
    for (; j < columns; ++j) {
      T* at = c + static_cast<ptrdiff_t>(j) * out.c_col;
      *at = finish_scalar(total[j], at, out.alpha, out.beta);
    }
  }
}

/// Adds `bias`, of `columns` elements, to each of some rows of finished outputs with unit column stride.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void add_to_rows(D d, const T* bias, T* c, ptrdiff_t c_row, int64_t rows, size_t columns) {
  const size_t lanes = hn::Lanes(d);
  for (int64_t i = 0; i < rows; ++i, c += c_row) {
    size_t j = 0;
    for (; j + lanes <= columns; j += lanes)
      hn::StoreU(hn::Add(hn::LoadU(d, c + j), hn::LoadU(d, bias + j)), d, c + j);
    for (; j < columns; ++j) c[j] += bias[j];
  }
}

/// a + b; integers wrap.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  } else {
    return a + b;
  }
}

/// Adds `bias`, of `rows` elements, to each of some columns likewise: one of them to all of a row.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void add_to_columns(D d, const T* bias, T* c, ptrdiff_t c_row, int64_t rows, size_t columns) {
  const size_t lanes = hn::Lanes(d);
  for (int64_t i = 0; i < rows; ++i, c += c_row) {
    const auto b = hn::Set(d, bias[i]);
    size_t j = 0;
    for (; j + lanes <= columns; j += lanes) hn::StoreU(hn::Add(hn::LoadU(d, c + j), b), d, c + j);
    for (; j < columns; ++j) c[j] = plus(c[j], bias[i]);
  }
}

/// The totals that a pass resumes from, [rows, row_length].
template <class T>
HWY_NOINLINE void load_totals(T* total, size_t rows, size_t row_length, size_t columns,
                              const TileOut<T>& out) {
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j)
      total[i * row_length + j] =
          out.resume[static_cast<ptrdiff_t>(i) * out.resume_row + static_cast<ptrdiff_t>(j)];
    for (size_t j = columns; j < row_length; ++j) total[i * row_length + j] = T(0);
  }
}

/// total = first ? sum : total + sum, for `vecs` vectors.
template <class D, class T = hn::TFromD<D>>
HWY_NOINLINE void add_block(D d, T* total, const T* sum, size_t vecs, bool first) {
  for (size_t i = 0; i < vecs * hn::Lanes(d); i += hn::Lanes(d)) {
    const auto s = hn::Load(d, sum + i);
    hn::Store(first ? s : hn::Add(hn::Load(d, total + i), s), d, total + i);
  }
}

/// A sum may be endless: a tensor of stride 0 has any number of elements.
HWY_INLINE void check_stop_after(int64_t products) {
  if (products != 0 && products % (kGemmBlock * 4096) == 0) [[unlikely]]
    check_stop();
}

/// kRows x (kVecs vectors) outputs, whose first `columns` columns exist; k >= 1. When `kPartial`, B is not
/// readable after them; the last vector alone may be partial. When `kPacks`, B is written as it is read.
template <size_t kRows, size_t kVecs, bool kPartial, class D, bool kPacks = false, class T = hn::TFromD<D>>
HWY_NOINLINE void tile(D d, int64_t k, const TileIn<T>& in, const TileOut<T>& out, size_t columns) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const T* a = in.a;
  const T* b = in.b;
  const ptrdiff_t a_row = in.a_row, a_col = in.a_col, b_row = in.b_row, b_panel = in.b_panel;
  const T* next = in.next;
  [[maybe_unused]] T* packed = in.packed;
  const auto b_at = [&](size_t v) HWY_ATTR {
    constexpr size_t kVecsOfPanel = static_cast<size_t>(kGemmPanel<T>) / hn::MaxLanes(D());
    return b + static_cast<ptrdiff_t>(v / kVecsOfPanel) * b_panel + v % kVecsOfPanel * lanes;
  };
  const size_t tail = columns - (kVecs - 1) * lanes;
#if TENON_MASKED_MEMORY
  const auto mask = hn::FirstN(d, tail);
#endif
  if (out.resume) {
    // The totals so far are read at the end of the pass, where the sums would wait for them.
    for (size_t i = 0; i < kRows; ++i) {
      const T* before = out.resume + static_cast<ptrdiff_t>(i) * out.resume_row;
      for (size_t v = 0; v < kVecs; ++v) __builtin_prefetch(before + v * lanes);
    }
  }
  HWY_ALIGN T total[kRows * kVecs * hn::MaxLanes(D())];
  for (int64_t start = 0; start < k; start += kGemmBlock) {
    check_stop_after(start);
    const int64_t block = std::min<int64_t>(kGemmBlock, k - start);
    V sum[kRows][kVecs];
#pragma GCC unroll 8
    for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (size_t v = 0; v < kVecs; ++v) sum[i][v] = hn::Zero(d);
    }
    for (int64_t p = 0; p < block; ++p) {
      if (next) {
        // Into the second cache: the first one has what this tile reads.
        __builtin_prefetch(next, 0, 2);
        next += b_row;
      }
      V bv[kVecs];
#pragma GCC unroll 8
      for (size_t v = 0; v < kVecs; ++v) {
        if (kPartial && v + 1 == kVecs) {
#if TENON_MASKED_MEMORY
          bv[v] = hn::MaskedLoad(mask, d, b_at(v));
#else
          bv[v] = load_first(d, b_at(v), tail);
#endif
        } else {
          bv[v] = hn::LoadU(d, b_at(v));
        }
        if constexpr (kPacks) hn::Store(bv[v], d, packed + v * lanes);
      }
      if constexpr (kPacks) packed += kVecs * lanes;
#pragma GCC unroll 8
      for (size_t i = 0; i < kRows; ++i) {
        const V av = hn::Set(d, a[static_cast<ptrdiff_t>(i) * a_row]);
#pragma GCC unroll 8
        for (size_t v = 0; v < kVecs; ++v) sum[i][v] = fused_mul_add(d, av, bv[v], sum[i][v]);
      }
      a += a_col;
      b += b_row;
    }
    const bool only = k <= kGemmBlock;
    if (only && out.plain() && (!kPartial || !out.resume)) {
#pragma GCC unroll 8
      for (size_t i = 0; i < kRows; ++i) {
        T* c = out.c + static_cast<ptrdiff_t>(i) * out.c_row;
        const T* before = out.resume + static_cast<ptrdiff_t>(i) * out.resume_row;
#pragma GCC unroll 8
        for (size_t v = 0; v < kVecs; ++v) {
          if (kPartial && v + 1 == kVecs) {
            store_first(sum[i][v], d, c + v * lanes, tail);
          } else {
            if (out.resume) sum[i][v] = hn::Add(hn::LoadU(d, before + v * lanes), sum[i][v]);
            hn::StoreU(sum[i][v], d, c + v * lanes);
          }
        }
      }
      return;
    }
    // Blocks are added in memory: the register file is full of sums.
    HWY_ALIGN T block_sum[kRows * kVecs * hn::MaxLanes(D())];
#pragma GCC unroll 8
    for (size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (size_t v = 0; v < kVecs; ++v) hn::Store(sum[i][v], d, block_sum + (i * kVecs + v) * lanes);
    }
    if (start == 0 && out.resume) load_totals(total, kRows, kVecs * lanes, columns, out);
    add_block(d, total, block_sum, kRows * kVecs, start == 0 && !out.resume);
  }
  finish_tile(d, total, kRows, kVecs * lanes, columns, out);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
