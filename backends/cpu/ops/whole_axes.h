// Sums over axes that end in one place, as in pooling to 1 x 1: they are plain reductions, whose walk reads
// memory in order. Used by window.cc. Knows axes, no windows that overlap.
#pragma once

#include <span>

#include "tenon/core/tensor.h"
#include "tenon/ops/window/axis.h"

namespace tenon::cpu {

/// Sums or means of `self` over its last dimensions, where each of `axes` has one output that takes every
/// input; otherwise returns false, with nothing done. The order of additions is that of reduce.h.
bool sum_whole_axes(const Tensor& self, std::span<const Axis> axes, Tensor& out);

}  // namespace tenon::cpu
