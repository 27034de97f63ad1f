#include "tenon/ops/reduction/gradients.h"

#include <fmt/core.h>

#include "tenon/ops/forms/reduced_dims.h"

namespace tenon::ops {

void check_reduced(const Tensor& t, IntArrayRef sizes, const Dims& mask, bool keepdim, const char* op,
                   const char* what) {
  const IntArrayRef given = t.sizes();
  size_t next = 0;
  bool same = true;
  for (size_t d = 0; d < mask.size(); ++d) {
    if (mask[d] && !keepdim) continue;
    same &= next < given.size() && given[next] == (mask[d] ? 1 : sizes[d]);
    ++next;
  }
  TENON_CHECK(same && next == given.size(), Shape,
              fmt::format("{}: {} has shape {}, expected {} as the result", op, what, to_string(given),
                          to_string(reduced_sizes(sizes, mask, keepdim))));
}

Tensor with_kept_dims(const Tensor& reduced, const Dims& mask, bool keepdim) {
  if (keepdim) return reduced;
  Tensor t = reduced;
  for (size_t d = 0; d < mask.size(); ++d) {
    if (mask[d]) t = t.unsqueeze(static_cast<int64_t>(d));
  }
  return t;
}

}  // namespace tenon::ops
