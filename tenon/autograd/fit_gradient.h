// fit_gradient: gives a gradient the shape, dtype and device of what it is the gradient of.
// Used by the engine between nodes, and by nodes that run others.
#pragma once

#include "tenon/autograd/node.h"

namespace tenon::autograd {

[[nodiscard]] Tensor fit_gradient_slow(Tensor grad, const TensorMeta& meta, const Node& from, size_t output);

/// Sums `grad` (result `output` of node `from`) over dimensions that the forward call broadcast, and converts
/// its dtype. Throws Error{Runtime} when its shape cannot come from broadcasting `meta`'s, Error{Device} when
/// its device is another.
[[nodiscard]] inline Tensor fit_gradient(Tensor grad, const TensorMeta& meta, const Node& from,
                                         size_t output) {
  if (grad.sizes() == meta.sizes() && grad.dtype() == meta.dtype() && grad.device() == meta.device())
      [[likely]]
    return grad;
  return fit_gradient_slow(std::move(grad), meta, from, output);
}

}  // namespace tenon::autograd
