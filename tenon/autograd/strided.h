// Views as linear maps between the elements of a base and those of a view, told by geometry alone: how a view
// gets its history back after an in-place write, and how a write through a view becomes history of the base.
// Used by AutogradMeta and by recording.
#pragma once

#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// A node "AsStridedBackward0" that leads from the gradient of `view` to that of `base`, whose elements it
/// shares.
IntrusivePtr<Node> make_strided_view_node(const Tensor& base, const Tensor& view);

/// A node "CopySlices" that leads from the gradient of `base` after an in-place write to its view `view`,
/// past `write` (the node of that call, whose edge 0 is the view's old self), to the gradients of everything
/// involved.
IntrusivePtr<Node> make_copy_slices_node(const Tensor& base, const Tensor& view, IntrusivePtr<Node> write);

/// A node that leads from the gradient of the view that was written to that CopySlices node: the history of
/// what the write saved of its own result.
IntrusivePtr<Node> make_written_view_node(Node& copy_slices);

}  // namespace tenon::autograd
