// Which instruction sets Highway compiles a kernel file for: exactly those of CpuTarget.
// Included by kernel files before anything of Highway, on every pass of foreach_target.
//
// A kernel file reads:
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "backends/cpu/<this file>"
//   #include "backends/cpu/targets.h"
//   #include "hwy/foreach_target.h"   // re-includes this file per target
//   #include "hwy/highway.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace tenon::cpu::HWY_NAMESPACE { kernels, and a table `const Fn kTable[] = {...};` }
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   ... const Fn* const tables[kNumCpuTargets] = {N_SSE4::kTable, N_AVX2::kTable, N_AVX3::kTable};
//   #endif
#ifndef TENON_BACKENDS_CPU_TARGETS_H_
#define TENON_BACKENDS_CPU_TARGETS_H_

#include "backends/cpu/cpu_target.h"

#if defined(__x86_64__)
// The baseline is what foreach_target compiles last and what is never left out: the least that the build
// has. That is SSE4 in place of the compiler's SSE2, whose Highway target would be scalar. Nothing runs
// before cpu_target() has asked the processor.
#if TENON_CPU_TARGETS & 1
#define HWY_BASELINE_TARGETS HWY_SSE4
#define TENON_CPU_BASELINE N_SSE4
#define TENON_CPU_SSE4 N_SSE4
#define TENON_CPU_LACKS_SSE4 0
#else
#define TENON_CPU_SSE4 TENON_CPU_BASELINE
#define TENON_CPU_LACKS_SSE4 HWY_SSE4
#endif
#if TENON_CPU_TARGETS & 2
#ifndef TENON_CPU_BASELINE
#define HWY_BASELINE_TARGETS HWY_AVX2
#define TENON_CPU_BASELINE N_AVX2
#endif
#define TENON_CPU_AVX2 N_AVX2
#define TENON_CPU_LACKS_AVX2 0
#else
#define TENON_CPU_AVX2 TENON_CPU_BASELINE
#define TENON_CPU_LACKS_AVX2 HWY_AVX2
#endif
#if TENON_CPU_TARGETS & 4
#ifndef TENON_CPU_BASELINE
#define HWY_BASELINE_TARGETS HWY_AVX3
#define TENON_CPU_BASELINE N_AVX3
#endif
#define TENON_CPU_AVX3 N_AVX3
#define TENON_CPU_LACKS_AVX3 0
#else
#define TENON_CPU_AVX3 TENON_CPU_BASELINE
#define TENON_CPU_LACKS_AVX3 HWY_AVX3
#endif
#define HWY_DISABLED_TARGETS                                                                      \
  (TENON_CPU_LACKS_SSE4 | TENON_CPU_LACKS_AVX2 | TENON_CPU_LACKS_AVX3 | HWY_SSSE3 | HWY_AVX3_DL | \
   HWY_SCALAR | HWY_EMU128)
/// The tables of each target, in the order of CpuTarget. In the place of one that the build lacks, which is
/// never chosen, is the baseline's.
#define TENON_CPU_TARGET_TABLES(table) \
  { TENON_CPU_SSE4::table, TENON_CPU_AVX2::table, TENON_CPU_AVX3::table }
#elif defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_SCALAR | HWY_EMU128)
#define TENON_CPU_TARGET_TABLES(table) \
  { N_NEON::table }
#endif

#endif  // TENON_BACKENDS_CPU_TARGETS_H_
