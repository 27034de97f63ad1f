// Single-threaded matrix products of half types, compiled once per instruction set. B is converted as it is
// packed; A and C have copies in float32.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm_kernels_half.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <type_traits>

#include "backends/cpu/copy/half-inl.h"
#include "backends/cpu/gemm/gemm_kernels.h"
#include "backends/cpu/gemm/gemm_product-inl.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

template <class D>
void store_as(D d, hn::Vec<D> v, Half* p) {
  store_float16(d, v, reinterpret_cast<uint16_t*>(p));
}
template <class D>
void store_as(D d, hn::Vec<D> v, BFloat16* p) {
  store_bfloat16(d, v, reinterpret_cast<uint16_t*>(p));
}

/// A matrix in float32, contiguous in the direction of the smaller stride.
template <class S>
struct FloatCopy {
  float* data;
  int64_t outer, inner, outer_stride, inner_stride;
  int64_t row, column;

  FloatCopy(GemmScratch slot, int64_t rows, int64_t columns, int64_t from_row, int64_t from_column) {
    const bool by_columns = std::abs(from_row) < std::abs(from_column);
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

template <class S>
void product_of_halves(const GemmArgs<S>& g, HalfGemmScale scale) {
  const hn::ScalableTag<float> d;
  const FloatCopy<S> a(GemmScratch::FloatA, g.m, g.k, g.a_row, g.a_col);
  const FloatCopy<S> c(GemmScratch::FloatC, g.m, g.n, g.c_row, g.c_col);
  a.load(g.a);
  if (scale.beta != 0.0f) c.load(g.c);
  GemmArgs<float> f;
  f.m = g.m, f.n = g.n, f.k = g.k;
  f.a = a.data, f.a_row = a.row, f.a_col = a.column;
  f.b_row = g.b_row, f.b_col = g.b_col;
  f.c = c.data, f.c_row = c.row, f.c_col = c.column;
  f.alpha = scale.alpha, f.beta = scale.beta;
  if (!few_rows(d, f, g.b)) large(d, f, g.b);
  c.store(g.c);
}

}  // namespace

HalfGemmKernel<Half> gemm_float16() { return &product_of_halves<Half>; }
HalfGemmKernel<BFloat16> gemm_bfloat16() { return &product_of_halves<BFloat16>; }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <>
HalfGemmKernel<Half> half_gemm_kernel(CpuTarget target) {
  static const HalfGemmKernel<Half> kernels[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(gemm_float16());
  return kernels[static_cast<size_t>(target)];
}
template <>
HalfGemmKernel<BFloat16> half_gemm_kernel(CpuTarget target) {
  static const HalfGemmKernel<BFloat16> kernels[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(gemm_bfloat16());
  return kernels[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif
