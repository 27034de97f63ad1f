// fit_gradient: gives a gradient the shape and dtype of the tensor that it is the gradient of. Used by the
// engine between nodes, and by nodes that run other nodes.
#pragma once

#include "tenon/autograd/node.h"

namespace tenon::autograd {

[[nodiscard]] Tensor fit_gradient_slow(Tensor grad, const TensorMeta& meta, const Node& from, size_t output);

/// Sums `grad` (result `output` of node `from`) over dimensions that the forward call broadcast, and converts
/// its dtype. Throws Error{Runtime} if `meta`'s shape does not broadcast to its shape, and Error{Device} if
/// it is on another device.
[[nodiscard]] inline Tensor fit_gradient(Tensor grad, const TensorMeta& meta, const Node& from,
                                         size_t output) {
  if (grad.sizes() == meta.sizes() && grad.dtype() == meta.dtype() && grad.device() == meta.device())
      [[likely]]
    return grad;
  return fit_gradient_slow(std::move(grad), meta, from, output);
}

}  // namespace tenon::autograd
