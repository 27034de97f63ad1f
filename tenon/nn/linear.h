// Linear: an affine map of the last dimension.
#pragma once

#include "tenon/nn/module.h"

namespace tenon::nn {

struct LinearOptions {
  bool bias = true;
  DType dtype = default_dtype();
};

/// input [..., in_features] -> input @ weight.T + bias, [..., out_features]. Weights start as
/// kaiming_uniform_ with a = sqrt(5), the bias uniform within 1 / sqrt(in_features), as in PyTorch.
class Linear final : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, LinearOptions options = {});

  Tensor forward(const Tensor& input) override;
  void reset_parameters();
  std::string extra_repr() const override;

  Tensor weight;  ///< [out_features, in_features]
  Tensor bias;    ///< [out_features], or undefined
};

}  // namespace tenon::nn
