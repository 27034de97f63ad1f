// SGD: stochastic gradient descent, optionally with momentum.
#pragma once

#include <span>

#include "tenon/optim/optimizer.h"

namespace tenon {
class Value;
}

namespace tenon::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  /// The fraction of a new gradient that is left out when it is added to the momentum.
  double dampening = 0;
  /// Adds weight_decay * parameter to the gradient.
  double weight_decay = 0;
  /// Nesterov's momentum, as in Sutskever et al. (2013).
  bool nesterov = false;
  /// Ascends instead of descending.
  bool maximize = false;
};

/// Throws Error{Value} for a negative rate, momentum or decay, and for Nesterov's without momentum.
void check(const SGDOptions& options);

/// Updates every parameter that has a gradient. `momentum[i]` is the momentum of parameter i, undefined
/// before its first step and unused without momentum. Both the C++ and the Python class call this function.
void sgd_step(TensorList parameters, std::span<Tensor> momentum, const SGDOptions& options);

class SGD final : public Optimizer {
 public:
  SGD(std::vector<Tensor> parameters, SGDOptions options);
  void step() override { sgd_step(parameters_, momentum_, options_); }
  /// As Adam::load_state_dict, of an SGD.
  void load_state_dict(const Value& state);

  /// May be changed between steps.
  SGDOptions& options() noexcept { return options_; }

 private:
  SGDOptions options_;
  std::vector<Tensor> momentum_;
};

}  // namespace tenon::optim
