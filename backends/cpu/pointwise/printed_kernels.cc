#include "backends/cpu/pointwise/printed_kernels.h"

#include <algorithm>

namespace tenon::cpu {

PointwiseFn find_printed_kernel(const expr::Key& key) {
  for (const PrintedKernels* file : printed_kernels()) {
    const expr::Key* end = file->keys + file->size;
    const expr::Key* found = std::lower_bound(file->keys, end, key);
    if (found == end || *found != key) continue;
    const PointwiseFn* kernels = file->tables[static_cast<int>(cpu_target())];
    return kernels ? kernels[found - file->keys] : nullptr;
  }
  return nullptr;
}

}  // namespace tenon::cpu
