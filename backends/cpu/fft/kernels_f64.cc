// Transforms of double, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fft/kernels_f64.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/fft/kernels.h"
#include "hwy/highway.h"

#define FFT_TYPE double
#include "backends/cpu/fft/kernels-inl.h"
#undef FFT_TYPE

#if HWY_ONCE
namespace tenon::cpu {

template <>
const FftKernels<double>& fft_kernels<double>(CpuTarget target) noexcept {
  static constexpr const FftKernels<double>* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  return *kTables[static_cast<size_t>(target)];
}

template <>
const FftKernels<double>& fft_kernels<double>() {
  static const FftKernels<double>& kernels = fft_kernels<double>(cpu_target());
  return kernels;
}

}  // namespace tenon::cpu
#endif
