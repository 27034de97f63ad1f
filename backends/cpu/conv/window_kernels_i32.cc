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

#if HWY_ONCE
template tenon::cpu::WindowKernels<int32_t> tenon::cpu::window_kernels(CpuTarget);
#endif
