// The kernels of lanes by dtype, of the instruction set that this process runs.
#include "backends/cpu/linalg/lanes.h"

#include "backends/cpu/linalg/factor_kernels.h"
#include "backends/cpu/linalg/spectral_kernels.h"

namespace tenon::cpu {
namespace {

template <class T>
typename LaneKernels<T>::Of joined(const FactorKernels<T>& f, const SpectralKernels<T>& s) {
  return {f.lu, f.triangle, f.cholesky, f.qr, f.householder, s.eigh, s.svd};
}

}  // namespace

template <>
const LaneKernels<float>& lane_kernels() {
  const AllFactorKernels& f = factor_kernels();
  const AllSpectralKernels& s = spectral_kernels();
  static const LaneKernels<float> all{f.lanes, joined(f.f32, s.f32), joined(f.c64, s.c64)};
  return all;
}

template <>
const LaneKernels<double>& lane_kernels() {
  const AllFactorKernels& f = factor_kernels();
  const AllSpectralKernels& s = spectral_kernels();
  static const LaneKernels<double> all{f.lanes / 2, joined(f.f64, s.f64), joined(f.c128, s.c128)};
  return all;
}

}  // namespace tenon::cpu
