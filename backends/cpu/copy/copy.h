// copy_strided: copies the elements of a host tensor to another of any strides and dtype. Used by copy_,
// contiguous, clone and to. Independent of autograd and dispatch.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::cpu {

/// Writes `src`, broadcast to the shape of `dst` and converted to its dtype as convert.h says, into `dst`.
/// Both are on the host. Errors name `op`. Throws Error{Shape} when `src` does not broadcast, Error{Runtime}
/// when the two overlap other than element for element or `dst` overlaps itself.
void copy_strided(const Tensor& dst, const Tensor& src, const char* op = "copy_");

}  // namespace tenon::cpu
