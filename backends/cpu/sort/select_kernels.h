// The search of a row for elements that belong to its first: what topk spends its time on. Compiled once per
// instruction set; used by row_sorter.cc, and by tests that compare instruction sets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

inline constexpr size_t kSelectGroups = 32;

struct SelectKernels {
  /// The place of the first element in [begin, end) whose key (order.h), inverted if `descending`, is less
  /// than `limit`; `end` if there is none. `constant` is that of the order.
  using Search = size_t (*)(const void* row, size_t begin, size_t end, int64_t constant, bool descending,
                            int64_t limit);

  /// The least key, inverted likewise, of every kSelectGroups-th element of [0, n) from each of the first
  /// kSelectGroups on; n is a multiple of it.
  using Least = void (*)(const void* row, size_t n, int64_t constant, bool descending, int64_t* least);

  Search integer[4];   ///< Elements of 1, 2, 4 and 8 bytes with an IntegerOrder.
  Search floating[4];  ///< The same with a FloatOrder; there is none of 1 byte.
  Least least_integer[4];
  Least least_floating[4];
};

/// Those of one instruction set, which the machine must have: by default, that which this process runs.
const SelectKernels& select_kernels(CpuTarget target = cpu_target()) noexcept;

}  // namespace tenon::cpu
