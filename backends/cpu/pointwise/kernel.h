// PointwiseFn: the shape of every pointwise kernel on CPU.
// Used by printed kernels, the interpreter and the iterator. Knows no dtype, stride or thread.
#pragma once

#include <cstddef>

#include "backends/cpu/cpu_target.h"
#include "tenon/expr/key.h"
#include "tenon/iter/host.h"

namespace tenon::cpu {

/// `ptrs`: outputs, then inputs, each `n` contiguous elements of their slot's dtype. `numbers`: 8 bytes each,
/// and a number of a 4-byte type takes the first 4. `repeated`: bit i is set where pointer i is that of
/// one of several inputs that is one element, HostKernel::kRepeatedBytes full of it. Safe in place (an output
/// that is exactly an input). Never throws, never allocates.
using PointwiseFn = HostKernel::Function;

/// The kernels of one printed file: `tables[static_cast<int>(cpu_target())][kernel]`; null for a target that
/// the file has none for.
using PointwiseTables = const PointwiseFn* const[kNumCpuTargets];

/// A printed file that kernels are found in by what they compute: kernel i has the key `keys[i]`, an
/// expr::in_type, and keys are sorted.
struct PrintedKernels {
  const expr::Key* keys;
  size_t size;
  const PointwiseFn* const* tables;
};

}  // namespace tenon::cpu
