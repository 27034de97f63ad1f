// Optimizer: holds the parameters that an algorithm updates, and clears their gradients. Base of the
// algorithms in this folder. Knows nothing of models.
#pragma once

#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::optim {

class Optimizer {
 public:
  /// Throws Error{Value} for an empty list and for a parameter that is not a leaf.
  explicit Optimizer(std::vector<Tensor> parameters);
  virtual ~Optimizer() = default;

  /// Updates every parameter that has a gradient.
  virtual void step() = 0;
  /// Clears all gradients; without `set_to_none`, fills them with zeros instead.
  void zero_grad(bool set_to_none = true);

  const std::vector<Tensor>& parameters() const noexcept { return parameters_; }

 protected:
  std::vector<Tensor> parameters_;
};

/// As Optimizer::zero_grad, for any parameters.
void zero_grad(TensorList parameters, bool set_to_none = true);

}  // namespace tenon::optim
