#include "tenon/ops/indexing/selection.h"

#include <fmt/core.h>

#include "tenon/iter/geometry.h"
#include "tenon/iter/result_shape.h"

namespace tenon::ops {

bool is_mask(HeaderRef index) { return index.dtype() == DType::Bool || index.dtype() == DType::UInt8; }

bool check_indices(IntArrayRef sizes, HeaderList indices, const char* op) {
  bool masks = false;
  size_t dims = 0;
  for (const HeaderRef& index : indices) {
    if (!index.defined()) {
      ++dims;
    } else if (is_mask(index)) {
      masks = true;
      for (size_t d = 0; d < index.sizes().size(); ++d, ++dims) {
        TENON_CHECK(
            dims < sizes.size() && sizes[dims] == index.sizes()[d], Index,
            fmt::format(
                "{}: the shape of the mask {} at index {} does not match the shape of the indexed tensor {}",
                op, to_string(index.sizes()), d, to_string(sizes)));
      }
      // A mask without dimensions is one position, or none, of a dimension.
      dims += index.sizes().empty();
    } else {
      TENON_CHECK(index.dtype() == DType::Int64 || index.dtype() == DType::Int32, Index,
                  fmt::format("{}: tensors used as indices must be int32, int64, uint8 or bool, got {}", op,
                              name(index.dtype())));
      ++dims;
    }
  }
  TENON_CHECK(
      dims <= sizes.size(), Index,
      fmt::format("{}: too many indices for tensor of dimension {} (got {})", op, sizes.size(), dims));
  return masks;
}

IndexGeometry index_geometry(IntArrayRef sizes, HeaderList indices, const char* op) {
  IndexGeometry g;
  size_t first = sizes.size(), last = 0, count = 0;
  const auto indexed = [&](size_t d) { return d < indices.size() && indices[d].defined(); };
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (!indexed(d)) continue;
    g.positions =
        count == 0 ? indices[d].sizes().to_dims() : broadcast_shapes(g.positions, indices[d].sizes(), op);
    first = std::min(first, d);
    last = d;
    ++count;
  }
  // Index tensors side by side leave their dimensions in place; apart, they come first.
  if (count > 0 && last - first + 1 == count) g.before = first;
  for (size_t d = 0; d < g.before; ++d) g.sizes.push_back(sizes[d]);
  for (const int64_t s : g.positions) g.sizes.push_back(s);
  for (size_t d = g.before; d < sizes.size(); ++d) {
    if (!indexed(d)) g.sizes.push_back(sizes[d]);
  }
  return g;
}

void check_selected_values(IntArrayRef values, IntArrayRef selected, const char* op) {
  TENON_CHECK(broadcasts(values, selected), Shape,
              fmt::format("{}: `values` {} does not broadcast to {}, which the indices select", op,
                          to_string(values), to_string(selected)));
}

void check_selected_gradient(IntArrayRef grad, IntArrayRef selected, const char* op) {
  TENON_CHECK(grad == selected, Shape,
              fmt::format("{}: the gradient has shape {}, expected {} as the indices select", op,
                          to_string(grad), to_string(selected)));
}

}  // namespace tenon::ops
