#include "tenon/ops/forms/reduced_dims.h"

#include "tenon/core/tensor_impl.h"
#include "tenon/iter/geometry.h"

namespace tenon::ops {

Dims reduction_mask(std::optional<IntArrayRef> dim, int64_t ndim, const char* op) {
  if (!dim || dim->empty()) return Dims(static_cast<size_t>(ndim), 1);
  Dims mask(static_cast<size_t>(ndim), 0);
  for (const int64_t d : wrap_dims(*dim, ndim, op)) {
    if (ndim > 0) mask[static_cast<size_t>(d)] = 1;
  }
  return mask;
}

Dims reduced_sizes(IntArrayRef sizes, const Dims& mask, bool keepdim) {
  Dims result;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!mask[d])
      result.push_back(sizes[d]);
    else if (keepdim)
      result.push_back(1);
  }
  return result;
}

int64_t reduced_extent(IntArrayRef sizes, const Dims& mask) {
  int64_t n = 1;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (mask[d]) overflow |= __builtin_mul_overflow(n, sizes[d], &n);
  }
  if (!overflow) return n;
  Dims reduced;  // one of them may be 0
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (mask[d]) reduced.push_back(sizes[d]);
  }
  return checked_numel(reduced, "reduction");
}

}  // namespace tenon::ops
