// Products of bfloat16 by matrix units (Intel's AMX, "Sapphire Rapids" and later). Used by gemm.cc and by
// tests that compare them with the kernels of vectors.
#pragma once

#include "backends/cpu/gemm/gemm_kernels.h"

namespace tenon::cpu {

/// Null where the machine, the operating system or the build has no matrix units. The first call asks the
/// operating system for their registers.
HalfGemmKernel<BFloat16> amx_gemm_kernel();

}  // namespace tenon::cpu
