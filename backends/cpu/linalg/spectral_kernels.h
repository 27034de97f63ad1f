// The kernels of spectral_kernels.cc, by dtype. Used by lanes.cc.
#pragma once

#include "backends/cpu/linalg/lanes.h"

namespace tenon::cpu {

template <class T>
struct SpectralKernels {
  typename LaneKernels<T>::Kernel eigh, svd;
};

struct AllSpectralKernels {
  SpectralKernels<float> f32, c64;
  SpectralKernels<double> f64, c128;
};

const AllSpectralKernels& spectral_kernels();

}  // namespace tenon::cpu
