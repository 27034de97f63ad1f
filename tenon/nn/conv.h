// Conv2d: filters over images.
#pragma once

#include "tenon/nn/module.h"
#include "tenon/nn/size2d.h"

namespace tenon::nn {

struct Conv2dOptions {
  Size2d stride = 1;
  Size2d padding = 0;
  Size2d dilation = 1;
  int64_t groups = 1;
  bool bias = true;
  DType dtype = default_dtype();
};

/// Cross-correlation of input [N, C, H, W] or [C, H, W] with each filter, plus a bias: [N, out_channels,
/// ...]. Weights start as those of Linear do.
///
///     nn::Conv2d stem(3, 64, 7, {.stride = 2, .padding = 3, .bias = false});
class Conv2d final : public Module {
 public:
  Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size, Conv2dOptions options = {});

  Tensor forward(const Tensor& input) override;
  void reset_parameters();
  std::string extra_repr() const override;

  Tensor weight;  ///< [out_channels, in_channels / groups, kernel height, kernel width]
  Tensor bias;    ///< [out_channels], or undefined

 private:
  Conv2dOptions options_;
};

}  // namespace tenon::nn
