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
