// After backends/cpu/targets.h, before Highway's headers: no form for SSE4, where the interpreter runs what
// has a printed kernel elsewhere. A build for SSE4 alone has it. Included by printed kernels: processors
// without AVX2 are from before 2013, and their form is a third of the code.
#ifndef TENON_BACKENDS_CPU_POINTWISE_WIDE_TARGETS_H_
#define TENON_BACKENDS_CPU_POINTWISE_WIDE_TARGETS_H_

#if defined(__x86_64__) && (TENON_CPU_TARGETS & 1) && (TENON_CPU_TARGETS & 2)
#undef HWY_BASELINE_TARGETS
#define HWY_BASELINE_TARGETS HWY_AVX2
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSE4 | TENON_CPU_LACKS_AVX3 | HWY_SSSE3 | HWY_AVX3_DL | HWY_SCALAR | HWY_EMU128)
#if !(TENON_CPU_TARGETS & 4)
#undef TENON_CPU_AVX3
#define TENON_CPU_AVX3 N_AVX2
#endif
#undef TENON_CPU_TARGET_TABLES
#define TENON_CPU_TARGET_TABLES(table) \
  { nullptr, TENON_CPU_AVX2::table, TENON_CPU_AVX3::table }
#endif

#endif  // TENON_BACKENDS_CPU_POINTWISE_WIDE_TARGETS_H_
