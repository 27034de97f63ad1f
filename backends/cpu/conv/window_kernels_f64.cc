// Single-threaded products of float64 weights and windows, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/window_kernels_f64.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/conv/depthwise-inl.h"
#include "hwy/highway.h"

#if HWY_ONCE
template tenon::cpu::WindowKernels<double> tenon::cpu::window_kernels(CpuTarget);
#endif
