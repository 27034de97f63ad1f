// Gradients through views by sizes and strides alone, as linear maps between the elements of a base and those
// of a view: how a view gets its history back after an in-place write, and how a write through a view becomes
// history of the base. Used by AutogradMeta and by recording.
#pragma once

#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// Makes a node "AsStridedBackward0", which takes the gradient of `view` to that of `base`, whose elements it
/// shares.
IntrusivePtr<Node> make_strided_view_node(const Tensor& base, const Tensor& view);

/// Makes a node "CopySlices" for an in-place write to `view`, a view of `base`. It takes the gradient of the
/// base after the write through `write` (the node of the writing call, whose edge 0 is the view before the
/// write) to the gradients of the base before the write and of the call's other arguments.
IntrusivePtr<Node> make_copy_slices_node(const Tensor& base, const Tensor& view, IntrusivePtr<Node> write);

/// Makes a node that takes the gradient of the written view to that CopySlices node: the history of a result
/// that the write itself has saved.
IntrusivePtr<Node> make_written_view_node(Node& copy_slices);

}  // namespace tenon::autograd
