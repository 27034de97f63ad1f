// The gradients of norms. Where nothing differentiates them again they are row operators over the saved
// statistics; otherwise they are made of operators from the input on, so that they have derivatives of any
// order. Used by formulas of derivatives.
#pragma once

#include <tuple>

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
/// By input, weight and bias.
std::tuple<Tensor, Tensor, Tensor> batch_norm_gradients(const Tensor& grad, const Tensor& input,
                                                        const Tensor& mu, const Tensor& rstd,
                                                        const Tensor& weight, double eps);
Tensor batch_norm_inference_gradient(const Tensor& grad, const Tensor& weight, const Tensor& running_var,
                                     double eps);
Tensor batch_norm_inference_weight_gradient(const Tensor& grad, const Tensor& input,
                                            const Tensor& running_mean, const Tensor& running_var,
                                            double eps);
/// `x`: elements of mean 0 and deviation 1 along the row (of root mean square 1, unless `centered`), and
/// `rstd` what they were multiplied by.
struct Normal {
  Tensor x, rstd;
  Normal(const Tensor& input, const Dims& dims, double eps, bool centered);
  /// By statistics that are given. Their derivatives are those of the statistics of `input`, where it has
  /// any.
  Normal(const Tensor& input, const Dims& dims, const Tensor& mean, const Tensor& rstd);
};
/// The gradient of a norm over `dims` by its input, of operators that have derivatives.
Tensor input_gradient(const Tensor& grad, const Normal& n, const Tensor& weight, const Dims& dims,
                      bool centered);

/// Over all dimensions but that of channels.
Tensor sum_to_channels(const Tensor& t);

}  // namespace tenon::ops
