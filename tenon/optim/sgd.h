// SGD: stochastic gradient descent, with momentum where asked for.
#pragma once

#include <span>

#include "tenon/optim/optimizer.h"

namespace tenon::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  /// Takes this part of a new gradient away before it enters the momentum.
  double dampening = 0;
  /// Adds weight_decay * parameter to the gradient.
  double weight_decay = 0;
  /// Sutskever et al. (2013): looks ahead along the momentum.
  bool nesterov = false;
  /// Climbs instead of descending.
  bool maximize = false;
};

/// Throws Error{Value} for a negative rate, momentum or decay, and for Nesterov's without momentum.
void check(const SGDOptions& options);

/// One step for every parameter that has a gradient. `momentum[i]` is parameter i's momentum, undefined
/// before its first step; unused without momentum. Both languages' SGD is this function.
void sgd_step(TensorList parameters, std::span<Tensor> momentum, const SGDOptions& options);

class SGD final : public Optimizer {
 public:
  SGD(std::vector<Tensor> parameters, SGDOptions options);
  void step() override { sgd_step(parameters_, momentum_, options_); }

  /// May be changed between steps.
  SGDOptions& options() noexcept { return options_; }

 private:
  SGDOptions options_;
  std::vector<Tensor> momentum_;
};

}  // namespace tenon::optim
