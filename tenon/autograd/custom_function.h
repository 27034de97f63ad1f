// CustomNode and its kin: what functions with a backward of their own share, whichever language they are
// written in: PyTorch's rules for their results. Used by function.h and by bindings.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// One call of a custom function.
struct CustomCall {
  /// Null where nothing is recorded. Has its edges already.
  IntrusivePtr<Node> node;
  std::span<const Tensor> inputs;
  /// What forward said of its arguments and results.
  std::span<const Tensor> dirty;
  std::span<const Tensor> non_differentiable;
};

/// Makes `results` those of the call, adding an input to its node for each. A result that is an argument
/// becomes another tensor over its elements, unless it was marked dirty: then it gets the call's history, and
/// so does its base. Results that are views may not be written in place later. Throws Error{Runtime} for what
/// PyTorch refuses: a dirty leaf that requires grad, a dirty tensor that is not returned, a dirty view beside
/// other results.
void finish_custom_call(const CustomCall& call, std::span<Tensor> results);

/// Whether a call on `inputs` is recorded.
bool records(std::span<const Tensor> inputs) noexcept;

/// Copies of `tensors` whose backward throws Error{Runtime} with `message`. They lead to `tensors`.
std::vector<Tensor> delayed_error(std::string message, std::span<const Tensor> tensors);

}  // namespace tenon::autograd
