// Single-threaded products of int32 weights and windows, compiled once per instruction set.
#include "backends/cpu/targets.h"
// Integers are for exact results, not for speed: no form for AVX-512.
#include "backends/cpu/pointwise/narrow_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/window_kernels_i32.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/conv/depthwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

WindowKernels<int32_t> window_i32() { return window_table<int32_t>(); }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <>
WindowKernels<int32_t> window_kernels(CpuTarget target) {
  static const WindowKernels<int32_t> kernels[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(window_i32());
  return kernels[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif
