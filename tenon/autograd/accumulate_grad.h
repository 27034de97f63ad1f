// AccumulateGrad: the last node of each path through the graph, which adds the gradient of a leaf to the
// leaf's `.grad`. It shares the gradient's slot with the leaf and keeps nothing else of it alive.
#pragma once

#include "tenon/autograd/hooks.h"
#include "tenon/autograd/node.h"

namespace tenon::autograd {

IntrusivePtr<Node> make_accumulate_grad(const Tensor& leaf, IntrusivePtr<GradSlot> slot);

/// Adds `grad` to the gradient in `slot`. The first gradient is stored as it is, or copied if its elements
/// are shared. Later gradients are added in place, or out of place in grad mode, so that the sum can be
/// differentiated.
void accumulate(GradSlot& slot, Tensor grad);
/// The same for the gradient of a tensor that is no leaf, which goes on to the tensor's node: it is always
/// copied, and later ones are added out of place.
void keep_copy(GradSlot& slot, const Tensor& grad);

}  // namespace tenon::autograd
