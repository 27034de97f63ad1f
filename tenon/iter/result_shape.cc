#include "tenon/iter/result_shape.h"

#include <fmt/core.h>

namespace tenon {

void broadcast_to(Dims& shape, IntArrayRef other, const char* op) {
  const IntArrayRef before = shape;
  if (before == other) return;
  const size_t ndim = std::max(shape.size(), other.size());
  Dims both(ndim);
  for (size_t d = 0; d < ndim; ++d) {
    // Shapes are aligned at their ends; a missing dimension counts as 1.
    const size_t lead_a = ndim - shape.size(), lead_b = ndim - other.size();
    const int64_t a = d < lead_a ? 1 : shape[d - lead_a], b = d < lead_b ? 1 : other[d - lead_b];
    TENON_CHECK(a == b || a == 1 || b == 1, Shape,
                fmt::format("{}: shapes {} and {} do not broadcast at dimension {} ({} vs {})", op,
                            to_string(IntArrayRef(shape)), to_string(other), d, a, b));
    both[d] = a == 1 ? b : a;
  }
  shape = std::move(both);
}

Dims broadcast_shapes(IntArrayRef a, IntArrayRef b, const char* op) {
  Dims shape = a.to_dims();
  broadcast_to(shape, b, op);
  return shape;
}

void resize_output(const Tensor& out, IntArrayRef sizes, IntArrayRef strides) {
  const Extent e = extent(sizes, strides, "resize");
  int64_t bytes = 0;
  const auto item = static_cast<int64_t>(out.itemsize());
  TENON_CHECK(!__builtin_mul_overflow(out.storage_offset() + e.high, item, &bytes), Shape,
              fmt::format("resize: sizes {} have more bytes than int64 can count", to_string(sizes)));
  Storage storage = out.storage();
  if (static_cast<int64_t>(storage.nbytes()) < bytes) storage.resize(static_cast<size_t>(bytes));
  out.impl()->set_geometry(sizes, strides, out.storage_offset());
}

}  // namespace tenon
