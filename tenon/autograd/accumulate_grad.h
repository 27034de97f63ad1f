// AccumulateGrad: the end of every path: adds the gradient of a leaf to its `.grad`.
// Made with the leaf; it shares the slot with the leaf and keeps nothing else of it alive.
#pragma once

#include "tenon/autograd/hooks.h"
#include "tenon/autograd/node.h"

namespace tenon::autograd {

IntrusivePtr<Node> make_accumulate_grad(const Tensor& leaf, IntrusivePtr<GradSlot> slot);

/// Adds `grad` to what `slot` holds: the first one is taken over, or copied where others see its elements;
/// later ones are added in place, or out of place where the sum itself is to be differentiated (grad mode).
void accumulate(GradSlot& slot, Tensor grad);

}  // namespace tenon::autograd
