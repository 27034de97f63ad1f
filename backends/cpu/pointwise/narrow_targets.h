// After backends/cpu/targets.h, before Highway's headers: no form for AVX-512, which runs that of AVX2.
// Included by printed primitives of functions that are `narrow` (tenon/expr/function.h), and by kernels that
// are seldom run.
#ifndef TENON_BACKENDS_CPU_POINTWISE_NARROW_TARGETS_H_
#define TENON_BACKENDS_CPU_POINTWISE_NARROW_TARGETS_H_

#if defined(__x86_64__) && (TENON_CPU_TARGETS & 2) && (TENON_CPU_TARGETS & 4)
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (TENON_CPU_LACKS_SSE4 | HWY_AVX3 | HWY_SSSE3 | HWY_AVX3_DL | HWY_SCALAR | HWY_EMU128)
#undef TENON_CPU_AVX3
#define TENON_CPU_AVX3 N_AVX2
#endif

#endif  // TENON_BACKENDS_CPU_POINTWISE_NARROW_TARGETS_H_
