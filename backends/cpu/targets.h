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

#if defined(__x86_64__)
// The baseline is what foreach_target compiles last and what is never left out; SSE4 in place of the
// compiler's SSE2, whose Highway target would be scalar. Nothing runs before cpu_target() has asked the
// processor.
#define HWY_BASELINE_TARGETS HWY_SSE4
#ifdef TENON_BASELINE_ONLY
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL | HWY_SCALAR | HWY_EMU128)
#define TENON_CPU_TARGET_TABLES(table) \
  { N_SSE4::table, N_SSE4::table, N_SSE4::table }
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SCALAR | HWY_EMU128)
/// Calls X(namespace) for each target, in the order of CpuTarget.
#define TENON_CPU_TARGET_TABLES(table) \
  { N_SSE4::table, N_AVX2::table, N_AVX3::table }
#endif
#elif defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_SCALAR | HWY_EMU128)
#define TENON_CPU_TARGET_TABLES(table) \
  { N_NEON::table }
#endif

#endif  // TENON_BACKENDS_CPU_TARGETS_H_
