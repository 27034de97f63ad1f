// The words of a Philox stream (tenon/core/philox.h), many blocks at a time: what random operators spend
// their time on. Compiled once per instruction set; used by random.cc, and by tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

struct PhiloxKernels {
  /// Blocks [first, first + n) of the stream of `seed`, each as its two words of 64 bits.
  void (*blocks)(uint64_t seed, uint64_t first, size_t n, uint64_t* words);
};

/// Those of one instruction set, which the machine must have: by default, that which this process runs.
const PhiloxKernels& philox_kernels(CpuTarget target = cpu_target()) noexcept;

}  // namespace tenon::cpu
