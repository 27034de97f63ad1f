// What custom functions share, whatever language they are written in: PyTorch's rules for their results. Used
// by function.h and by bindings.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/autograd/node.h"
#include "tenon/core/tensor.h"

namespace tenon::autograd {

/// One call of a custom function.
struct CustomCall {
  /// Null if nothing is recorded. Its edges are set already.
  IntrusivePtr<Node> node;
  std::span<const Tensor> inputs;
  /// The arguments and results that forward has marked.
  std::span<const Tensor> dirty;
  std::span<const Tensor> non_differentiable;
};

/// Gives `results` the history of the call, and adds an input to its node for each. A result that is also an
/// argument is replaced by another tensor over the same elements, unless it was marked dirty: then it, and
/// its base, get the call's history. Results that are views must not be written in place later. Throws
/// Error{Runtime} for what PyTorch refuses: a dirty leaf that requires grad, a dirty tensor that is not
/// returned, and a dirty view with other results.
void finish_custom_call(const CustomCall& call, std::span<Tensor> results);

/// Whether a call with `inputs` is recorded.
bool records(std::span<const Tensor> inputs) noexcept;

/// Copies of `tensors`, with history that leads to them, whose backward throws Error{Runtime} with `message`.
std::vector<Tensor> delayed_error(std::string message, std::span<const Tensor> tensors);

}  // namespace tenon::autograd
