// Single-threaded matrix products of float32, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm_kernels_f32.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/gemm/gemm_kernels.h"
#include "backends/cpu/gemm/gemm_product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

GemmKernel<float> gemm_f32() { return &product<float>; }
const TileFunction<float>* full_tiles(float) { return TileTable<float, false>::kTiles.data(); }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <>
GemmKernel<float> gemm_kernel(CpuTarget target) {
  static const GemmKernel<float> kernels[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(gemm_f32());
  return kernels[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif
