// What the operators over spatial axes share: lists of one number for each axis, the order of dimensions in
// memory, and the checks of ranks and sizes. Used by tenon/ops/window. Knows no elements.
#pragma once

#include <string>

#include "tenon/core/tensor.h"
#include "tenon/core/tensor_header.h"
#include "tenon/ops/forms/output_spec.h"

namespace tenon::ops {

/// "avg_pool2d" of "avg_pool" and 2.
std::string with_rank(const char* name, size_t rank);

/// One number for each axis: a list of one applies to all. Throws Error{Value} naming `op` and `argument` for
/// another length.
Dims per_axis(IntArrayRef values, size_t rank, const char* op, const char* argument);

/// Throws Error{Shape} unless `self` is [C, axes..] or [N, C, axes..], where only N may be 0. `batched`: N
/// must be there. `no_channels`: C may be 0 too.
void check_spatial(IntArrayRef sizes, size_t rank, const char* op, bool batched = false,
                   bool no_channels = false);

/// The last `rank` sizes.
inline IntArrayRef spatial_sizes(IntArrayRef sizes, size_t rank) { return sizes.last(rank); }

/// `sizes` with the last ones replaced.
Dims with_spatial(IntArrayRef sizes, IntArrayRef last);

/// Sets output `i` to these sizes, in channels-last order where `like` is.
void set_spatial(OutputSpecs& out, size_t i, HeaderRef like, IntArrayRef sizes, DType dtype);

/// Throws Error{Shape} unless the gradient has these sizes.
void check_gradient_sizes(HeaderRef grad, IntArrayRef expected, const char* op);

/// Throws Error{Type} or Error{Device} unless a gradient has the dtype and device of `self`.
void check_gradient_of(HeaderRef grad, HeaderRef self, const char* op);

/// Throws Error{NotImplemented} for what is neither floating nor, with `complex`, complex.
void check_inexact(DType dtype, bool complex, const char* op);

}  // namespace tenon::ops
