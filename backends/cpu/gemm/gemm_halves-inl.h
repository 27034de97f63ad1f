// Matrices of half types as float32, and totals as half types. Included once per instruction set by the files
// that multiply half types.

#if defined(TENON_CPU_GEMM_HALVES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_GEMM_HALVES_INL
#undef TENON_CPU_GEMM_HALVES_INL
#else
#define TENON_CPU_GEMM_HALVES_INL
#endif

#include <cstdint>
#include <cstdlib>

#include "backends/cpu/copy/half-inl.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "backends/cpu/gemm/gemm_simd-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> v, Half* p) {
  store_float16(d, v, reinterpret_cast<uint16_t*>(p));
}
template <class D>
HWY_INLINE void store_as(D d, hn::Vec<D> v, BFloat16* p) {
  store_bfloat16(d, v, reinterpret_cast<uint16_t*>(p));
}

/// A matrix in float32, contiguous in the direction of the smaller stride.
template <class S>
struct FloatCopy {
  float* data;
  int64_t outer, inner, outer_stride, inner_stride;
  int64_t row, column;

  FloatCopy(GemmScratch slot, int64_t rows, int64_t columns, int64_t from_row, int64_t from_column) {
    // The stride of a dimension of one element says nothing.
    const bool by_columns = columns == 1 || (rows != 1 && std::abs(from_row) < std::abs(from_column));
    outer = by_columns ? columns : rows, inner = by_columns ? rows : columns;
    outer_stride = by_columns ? from_column : from_row, inner_stride = by_columns ? from_row : from_column;
    row = by_columns ? 1 : columns, column = by_columns ? rows : 1;
    data = static_cast<float*>(gemm_scratch(slot, static_cast<size_t>(rows * columns) * sizeof(float)));
  }

  void load(const S* from) const {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < outer; ++i, from += outer_stride) {
      float* to = data + i * inner;
      int64_t j = 0;
      for (; inner_stride == 1 && j + lanes <= inner; j += lanes)
        hn::StoreU(load_stored(d, from + j), d, to + j);
      for (; j < inner; ++j) to[j] = static_cast<float>(from[j * inner_stride]);
    }
  }
  void store(S* to) const {
    const hn::ScalableTag<float> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < outer; ++i, to += outer_stride) {
      const float* from = data + i * inner;
      int64_t j = 0;
      for (; inner_stride == 1 && j + lanes <= inner; j += lanes) store_as(d, hn::LoadU(d, from + j), to + j);
      for (; j < inner; ++j) to[j * inner_stride] = S(from[j]);
    }
  }
};

/// c = alpha * total + beta * c, in float32, rounded once. `row` is between the rows of totals; both have
/// `rows` rows of `columns` elements.
template <class D>
HWY_NOINLINE void finish_bfloat16(D d, const float* totals, ptrdiff_t row, int64_t rows, int64_t columns,
                                  BFloat16* c, ptrdiff_t c_row, ptrdiff_t c_col, HalfGemmScale scale) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto alpha = hn::Set(d, scale.alpha), beta = hn::Set(d, scale.beta);
  const bool adds = scale.beta != 0.0f;
  for (int64_t i = 0; i < rows; ++i, totals += row, c += c_row) {
    int64_t j = 0;
    for (; c_col == 1 && j + lanes <= columns; j += lanes) {
      auto x = hn::Mul(hn::LoadU(d, totals + j), alpha);
      if (adds) x = hn::Add(x, hn::Mul(load_stored(d, c + j), beta));
      store_as(d, x, c + j);
    }
    for (; j < columns; ++j) {
      BFloat16& at = c[j * c_col];
      const float x = totals[j] * scale.alpha;
      at = BFloat16(adds ? x + static_cast<float>(at) * scale.beta : x);
    }
  }
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
