// Dropout: elements that are left out at random while training.
#pragma once

#include "tenon/generated/random/functions.h"
#include "tenon/nn/module.h"
#include "tenon/ops/print.h"

namespace tenon::nn {

/// Zeroes each element with probability p while training, and scales the others by 1 / (1 - p). Srivastava et
/// al. (2014), JMLR 15. In evaluation it returns its input.
class Dropout final : public Module {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Tensor forward(const Tensor& input) override { return dropout(input, p_, is_training()); }
  std::string extra_repr() const override { return "p=" + number_text(p_) + ", inplace=False"; }

 private:
  double p_;
};

}  // namespace tenon::nn
