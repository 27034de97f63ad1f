// The single-threaded matrix products that each instruction set exports.
// Used by gemm.cc (which chooses the orientation and splits over threads) and by tests that compare
// instruction sets.
#pragma once

#include <utility>

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/gemm/gemm.h"

namespace tenon::cpu {

/// Over few k, memory takes outputs no faster than they are made, and it takes them fastest along rows: in
/// blocks of a few rows.
inline constexpr int64_t kFewK = 64, kFewKRows = 48;

/// C^T = B^T A^T: each product of two elements and the order of the sum are the same.
template <class T>
GemmArgs<T> transposed(const GemmArgs<T>& g) {
  GemmArgs<T> t = g;
  std::swap(t.m, t.n);
  t.a = g.b, t.a_row = g.b_col, t.a_col = g.b_row;
  t.b = g.a, t.b_row = g.a_col, t.b_col = g.a_row;
  t.c_row = g.c_col, t.c_col = g.c_row;
  return t;
}

/// A whole product on the calling thread. Arguments as gemm's, with m, n, k >= 1; fast when C has unit column
/// stride.
template <class T>
using GemmKernel = void (*)(const GemmArgs<T>& args);

/// That of one instruction set; the machine must have it. T: float or double.
template <class T>
GemmKernel<T> gemm_kernel(CpuTarget target);
template <>
GemmKernel<float> gemm_kernel(CpuTarget target);
template <>
GemmKernel<double> gemm_kernel(CpuTarget target);

/// The same for half types, whose alpha and beta are `scale`. S: Half or BFloat16.
template <class S>
using HalfGemmKernel = void (*)(const GemmArgs<S>& args, HalfGemmScale scale);
template <class S>
HalfGemmKernel<S> half_gemm_kernel(CpuTarget target);
template <>
HalfGemmKernel<Half> half_gemm_kernel(CpuTarget target);
template <>
HalfGemmKernel<BFloat16> half_gemm_kernel(CpuTarget target);

}  // namespace tenon::cpu
