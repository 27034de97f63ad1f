// What norms check of their arguments. Used by norms and by their gradients as operators.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

/// Throws Error{Shape} unless `t` is absent or has the shape `wanted`.
void check_shaped(const Tensor& t, IntArrayRef wanted, const char* op, const char* name);
/// Throws Error{Shape} unless `normalized_shape` has dimensions and `input` ends in them.
void check_normalized(const Tensor& input, IntArrayRef normalized_shape, const char* op);
/// Throws Error{Shape} or Error{Value} unless `input` [N, C, *] has N * C * HxW elements, and C divides into
/// groups.
void check_groups(const Tensor& input, int64_t N, int64_t C, int64_t HxW, int64_t groups, const char* op);

}  // namespace tenon::ops
