#include "tenon/optim/optimizer.h"

#include <fmt/format.h>

#include "tenon/core/thread_state.h"

namespace tenon::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
  TENON_CHECK(!parameters_.empty(), Value, "optimizer: got an empty parameter list");
  for (const Tensor& p : parameters_) {
    TENON_CHECK(p.defined() && p.is_leaf(), Value,
                fmt::format("optimizer: a parameter must be a leaf tensor, got {}", summary(p)));
  }
}

void Optimizer::zero_grad(bool set_to_none) { optim::zero_grad(parameters_, set_to_none); }

void zero_grad(TensorList parameters, bool set_to_none) {
  const NoGradGuard no_grad;
  for (const Tensor& p : parameters) {
    // A handle of its own, because `set_grad` and `zero_` change what it points to and not the caller's.
    Tensor parameter = p;
    if (set_to_none) {
      parameter.set_grad({});
    } else if (Tensor grad = parameter.grad(); grad.defined()) {
      Tensor zeroed = grad.detach();
      zeroed.zero_();
      parameter.set_grad(zeroed);
    }
  }
}

}  // namespace tenon::optim
