// The kernels of factor_kernels.cc, by dtype. Used by lanes.cc.
#pragma once

#include "backends/cpu/linalg/lanes.h"

namespace tenon::cpu {

template <class T>
struct FactorKernels {
  typename LaneKernels<T>::Kernel lu, triangle, cholesky, qr, householder;
};

struct AllFactorKernels {
  FactorKernels<float> f32, c64;
  FactorKernels<double> f64, c128;
  size_t lanes;  ///< of float
};

const AllFactorKernels& factor_kernels();

}  // namespace tenon::cpu
