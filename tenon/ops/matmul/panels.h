// How _packed_product stores its right matrix. Used by shape functions, kernels and Inference.
#pragma once

#include "tenon/core/dtype.h"

namespace tenon::ops {

/// Whether products of packed matrices have this dtype.
constexpr bool has_panels(DType type) { return type == DType::Float32 || type == DType::Float64; }

/// Columns of a panel: 128 bytes, as many as two vectors of the widest instruction set hold.
constexpr int64_t panel_width(DType type) { return static_cast<int64_t>(128 / item_size(type)); }

/// Panels of so many columns.
constexpr int64_t panel_count(int64_t columns, DType type) {
  return (columns + panel_width(type) - 1) / panel_width(type);
}

}  // namespace tenon::ops
