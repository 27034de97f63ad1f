// The table of single-threaded matrix products that each instruction set exports.
// Used by gemm.cc (which chooses the orientation and splits over threads) and by tests that compare
// instruction sets.
#pragma once

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/gemm/gemm.h"

namespace tenon::cpu {

/// Whole products on the calling thread. Arguments as gemm's, with m, n, k >= 1; fast when C has unit column
/// stride.
struct GemmKernels {
  void (*f32)(const GemmArgs<float>& args);
  void (*f64)(const GemmArgs<double>& args);
};

/// The table of one instruction set; the machine must have it.
const GemmKernels& gemm_kernels(CpuTarget target);

}  // namespace tenon::cpu
