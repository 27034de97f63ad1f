// Single-threaded matrix products of half types, compiled once per instruction set. B is converted as it is
// packed; A and C have copies in float32.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm_kernels_half.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm/gemm_bfloat16-inl.h"
#include "backends/cpu/gemm/gemm_halves-inl.h"
#include "backends/cpu/gemm/gemm_kernels.h"
#include "backends/cpu/gemm/gemm_product-inl.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {

void product_of_float16(const GemmArgs<Half>& g, HalfGemmScale scale) {
  if (g.k <= kFewK && g.m > kFewKRows && g.n > 1) {
    // Slices of C, whose copies stay in L2.
    GemmArgs<Half> slice = g;
    for (int64_t i = 0; i < g.m;
         i += kFewKRows, slice.a += kFewKRows * g.a_row, slice.c += kFewKRows * g.c_row) {
      slice.m = std::min(kFewKRows, g.m - i);
      product_of_float16(slice, scale);
    }
    return;
  }
  const hn::ScalableTag<float> d;
  const FloatCopy<Half> a(GemmScratch::FloatA, g.m, g.k, g.a_row, g.a_col);
  const FloatCopy<Half> c(GemmScratch::FloatC, g.m, g.n, g.c_row, g.c_col);
  a.load(g.a);
  if (scale.beta != 0.0f) c.load(g.c);
  GemmArgs<float> f;
  f.m = g.m, f.n = g.n, f.k = g.k;
  f.a = a.data, f.a_row = a.row, f.a_col = a.column;
  f.b_row = g.b_row, f.b_col = g.b_col;
  f.c = c.data, f.c_row = c.row, f.c_col = c.column;
  f.alpha = scale.alpha, f.beta = scale.beta;
  if (is_few_sums(d, f) || (HWY_TARGET != HWY_SSE4 && g.m * g.n == 1)) {
    const FloatCopy<Half> b(GemmScratch::FloatB, g.k, g.n, g.b_row, g.b_col);
    b.load(g.b);
    f.b = b.data, f.b_row = b.row, f.b_col = b.column;
    few_sums(d, f);
  } else if (!few_rows(d, f, g.b)) {
    large(d, f, g.b);
  }
  c.store(g.c);
}

}  // namespace

HalfGemmKernel<Half> gemm_float16() { return &product_of_float16; }
HalfGemmKernel<BFloat16> gemm_bfloat16() { return &product_of_bfloat16; }

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
