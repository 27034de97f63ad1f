#include "backends/cpu/pointwise/printed_kernels.h"

#include <algorithm>

namespace tenon::cpu {

PointwiseFn find_printed_kernel(const expr::Key& key) {
  for (const PrintedKernels* file : printed_kernels()) {
    const expr::Key* end = file->keys + file->size;
    const expr::Key* found = std::lower_bound(file->keys, end, key);
    if (found != end && *found == key)
      return file->tables[static_cast<int>(cpu_target())][found - file->keys];
  }
  return nullptr;
}

}  // namespace tenon::cpu
