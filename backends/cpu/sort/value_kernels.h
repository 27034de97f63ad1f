// Sorts the values of rows of 4 and 8 bytes by their keys, without saying where they were. Compiled once per
// instruction set; used by value_sorter.cc, and by tests that compare instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// Elements whose bits their keys do not tell, or whose order the keys do not keep.
struct UnkeyedElements {
  size_t nans = 0;
  bool negative_zero = false;
};

struct ValueKernels {
  /// Sorts n keys in place, ascending. No allocation; at most n log n comparisons.
  using Sort = void (*)(void* keys, size_t n);
  /// The keys of n floating-point elements, by the bits of their infinity: in the order of numbers, -0 before
  /// 0, every NaN the largest key. `keys` may be `row`.
  using Keys = UnkeyedElements (*)(const void* row, void* keys, size_t n, int64_t infinity);
  /// The inverse, in place; a NaN has the bits of the largest key.
  using Elements = void (*)(void* keys, size_t n);

  // Of 4 and of 8 bytes.
  Sort sort[2];
  Keys keys[2];
  Elements elements[2];
};

/// Those of one instruction set, which the machine must have: by default, that which this process runs.
const ValueKernels& value_kernels(CpuTarget target = cpu_target()) noexcept;

}  // namespace tenon::cpu
