// The measurements: one function in one dtype, on every instruction set of this machine. Used by main.cc.
#pragma once

#include <cstdint>

#include "backends/cpu/cpu_target.h"
#include "bench/accuracy/error.h"
#include "bench/accuracy/functions.h"

namespace tenon::accuracy {

/// Whether the instruction set multiplies and adds in one; without, kernels emulate it and take some twenty
/// times as long.
bool has_fma(cpu::CpuTarget target) noexcept;

/// Every `step`-th float32 of a function of one argument, against the C library in double. An instruction set
/// without fma runs every `without_fma_every`-th block of 2,048 neighbours.
Tally measure_float32(const MathFunction& f, uint32_t step, uint64_t without_fma_every, int threads);

/// About `samples` arguments (or pairs) in float32 or float64, against MPFR.
Tally measure_sampled(const MathFunction& f, DType dtype, size_t samples);

/// Every number in float16 or bfloat16 (of two arguments: about `samples` pairs) through the operator,
/// against MPFR. Runs each instruction set in a process of its own, because a process has only one.
Tally measure_half(const MathFunction& f, DType dtype, size_t samples);

/// How far the C library's double is from MPFR at `samples` float32 arguments, in units in the last place of
/// float32.
double reference_error(const MathFunction& f, size_t samples);

}  // namespace tenon::accuracy
