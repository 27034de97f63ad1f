// Single-threaded products of float32 weights and windows, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/window_kernels_f32.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/conv/depthwise-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {

WindowKernels<float> window_f32() { return window_table<float>(); }

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <>
WindowKernels<float> window_kernels(CpuTarget target) {
  static const WindowKernels<float> kernels[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(window_f32());
  return kernels[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif
