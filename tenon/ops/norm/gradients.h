// The gradients of norms. Where nothing differentiates them again they are row operators over the saved
// statistics; otherwise they are made of operators from the input on, so that they have derivatives of any
// order. Used by formulas of derivatives.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::ops {

Tensor layer_norm_input_gradient(const Tensor& grad, const Tensor& input, const Tensor& mu,
                                 const Tensor& rstd, const Tensor& weight, IntArrayRef normalized_shape,
                                 double eps);
Tensor layer_norm_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& mu,
                                  const Tensor& rstd, const Tensor& weight, IntArrayRef normalized_shape,
                                  double eps);
Tensor rms_norm_input_gradient(const Tensor& grad, const Tensor& input, const Tensor& rstd,
                               const Tensor& weight, IntArrayRef normalized_shape, double eps);
Tensor rms_norm_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& rstd,
                                const Tensor& weight, IntArrayRef normalized_shape, double eps);
Tensor batch_norm_input_gradient(const Tensor& grad, const Tensor& input, const Tensor& mu,
                                 const Tensor& rstd, const Tensor& weight, double eps);
Tensor batch_norm_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& mu,
                                  const Tensor& rstd, const Tensor& weight, double eps);
Tensor batch_norm_inference_gradient(const Tensor& grad, const Tensor& weight, const Tensor& running_var,
                                     double eps);
Tensor batch_norm_inference_weight_gradient(const Tensor& grad, const Tensor& input,
                                            const Tensor& running_mean, const Tensor& running_var,
                                            double eps);
/// Over all dimensions but that of channels.
Tensor sum_to_channels(const Tensor& t);

}  // namespace tenon::ops
