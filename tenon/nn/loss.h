// Losses as objects: each calls the function of the same name with the options that it keeps.
#pragma once

#include "tenon/generated/softmax/functions.h"

namespace tenon::nn {

/// How a loss combines the values of a batch; the numbers are those of PyTorch's schemas.
enum class Reduction : uint8_t { None = 0, Mean = 1, Sum = 2 };

/// input [N, C] logits and target [N] class numbers.
struct CrossEntropyLoss {
  Reduction reduction = Reduction::Mean;
  int64_t ignore_index = -100;
  double label_smoothing = 0;

  Tensor operator()(const Tensor& input, const Tensor& target) const {
    return cross_entropy_loss(input, target, {}, static_cast<int64_t>(reduction), ignore_index,
                              label_smoothing);
  }
};

/// input [N, C] log-probabilities and target [N] class numbers.
struct NLLLoss {
  Reduction reduction = Reduction::Mean;
  int64_t ignore_index = -100;

  Tensor operator()(const Tensor& input, const Tensor& target) const {
    return nll_loss(input, target, {}, static_cast<int64_t>(reduction), ignore_index);
  }
};

/// (input - target)^2
struct MSELoss {
  Reduction reduction = Reduction::Mean;

  Tensor operator()(const Tensor& input, const Tensor& target) const {
    return mse_loss(input, target, static_cast<int64_t>(reduction));
  }
};

}  // namespace tenon::nn
