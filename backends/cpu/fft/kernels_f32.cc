// Transforms of float, compiled once per instruction set.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fft/kernels_f32.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include "backends/cpu/fft/kernels.h"
#include "hwy/highway.h"

#define FFT_TYPE float
#include "backends/cpu/fft/kernels-inl.h"
#undef FFT_TYPE

#if HWY_ONCE
namespace tenon::cpu {

template <>
const FftKernels<float>& fft_kernels<float>(CpuTarget target) noexcept {
  static constexpr const FftKernels<float>* kTables[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(kTable);
  return *kTables[static_cast<size_t>(target)];
}

template <>
const FftKernels<float>& fft_kernels<float>() {
  static const FftKernels<float>& kernels = fft_kernels<float>(cpu_target());
  return kernels;
}

}  // namespace tenon::cpu
#endif
