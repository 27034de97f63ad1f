#include "tenon/ops/norm/gradients.h"

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"

namespace tenon::ops {
namespace {

Dims last_dims(int64_t count) {
  Dims dims;
  for (int64_t d = -count; d < 0; ++d) dims.push_back(d);
  return dims;
}
Dims all_but_channels(int64_t ndim) {
  Dims dims;
  for (int64_t d = 0; d < ndim; ++d) {
    if (d != 1) dims.push_back(d);
  }
  return dims;
}
Tensor of_channels(const Tensor& t, int64_t ndim) {
  Dims sizes(static_cast<size_t>(ndim), 1);
  sizes[1] = t.numel();
  return t.reshape(sizes);
}

Tensor reciprocal_deviation(const Tensor& variance, double eps) {
  return tenon::reciprocal(tenon::sqrt(tenon::add(variance, Scalar(eps))));
}

/// 1 / root mean square of rows in float32, where the one that was saved has lost half of its digits.
Tensor reciprocal_length(const Tensor& input, const Tensor& saved, const Dims& dims, double eps) {
  if (saved.dtype() != DType::Float16 && saved.dtype() != DType::BFloat16) return saved;
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(input.size(d));
  const Tensor length = tenon::linalg_vector_norm(input, 2, dims, true, DType::Float32);
  return tenon::rsqrt(tenon::add(tenon::div(tenon::mul(length, length), Scalar(count)), Scalar(eps)));
}

bool differentiated() { return thread_state.grad_enabled; }

}  // namespace

Normal::Normal(const Tensor& input, const Dims& dims, double eps, bool centered) {
  const Tensor d = centered ? tenon::sub(input, tenon::mean(input, IntArrayRef(dims), true)) : input;
  rstd = reciprocal_deviation(tenon::mean(tenon::mul(d, d), IntArrayRef(dims), true), eps);
  x = tenon::mul(d, rstd);
}

Normal::Normal(const Tensor& input, const Dims& dims, const Tensor& mean, const Tensor& rstd) : rstd(rstd) {
  Tensor mu = mean;
  if (input.requires_grad() && differentiated()) {
    // The values that are given, moving as those of the input do.
    const Tensor own = tenon::mean(input, IntArrayRef(dims), true);
    mu = tenon::add(own, tenon::sub(mean, own).detach());
    const Tensor d = tenon::sub(input, mu);
    const Tensor variance = tenon::mean(tenon::mul(d, d), IntArrayRef(dims), true);
    const Tensor given = tenon::reciprocal(tenon::mul(rstd, rstd));
    this->rstd = tenon::rsqrt(tenon::add(variance, tenon::sub(given, variance).detach()));
  }
  x = tenon::mul(tenon::sub(input, mu), this->rstd);
}

Tensor input_gradient(const Tensor& grad, const Normal& n, const Tensor& weight, const Dims& dims,
                      bool centered) {
  const Tensor g = weight.defined() ? tenon::mul(grad, weight) : grad;
  const auto mean = [&](const Tensor& t) { return tenon::mean(t, IntArrayRef(dims), true); };
  Tensor slope = tenon::sub(g, tenon::mul(n.x, mean(tenon::mul(g, n.x))));
  if (centered) slope = tenon::sub(slope, mean(g));
  return tenon::mul(n.rstd, slope);
}

Tensor layer_norm_input_gradient(const Tensor& grad, const Tensor& input, const Tensor& mu,
                                 const Tensor& rstd, const Tensor& weight, IntArrayRef normalized_shape,
                                 double eps) {
  if (!differentiated()) return tenon::_layer_norm_backward(grad, input, mu, rstd, weight, normalized_shape);
  const Dims dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
  return input_gradient(grad, Normal(input, dims, eps, true), weight, dims, true);
}

Tensor layer_norm_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& mu,
                                  const Tensor& rstd, const Tensor& weight, IntArrayRef normalized_shape,
                                  double eps) {
  if (!differentiated() && weight.sizes() == normalized_shape)
    return tenon::_layer_norm_backward_weight(grad, input, mu, rstd, normalized_shape);
  if (!differentiated() && weight.numel() > 1) {
    // Dimensions along which the weight is the same, the places of a norm over groups, lead as the batch
    // does.
    const auto leading = static_cast<size_t>(input.dim()) - weight.sizes().size();
    Dims order, varied;
    for (size_t d = 0; d < input.sizes().size(); ++d) {
      if (d < leading || weight.sizes()[d - leading] == 1) order.push_back(static_cast<int64_t>(d));
    }
    for (size_t d = leading; d < input.sizes().size(); ++d) {
      if (weight.sizes()[d - leading] == 1) continue;
      order.push_back(static_cast<int64_t>(d));
      varied.push_back(input.sizes()[d]);
    }
    const auto ordered = [&](const Tensor& t) { return t.permute(order); };
    return tenon::_layer_norm_backward_weight(ordered(grad), ordered(input), ordered(mu), ordered(rstd),
                                              varied)
        .reshape(weight.sizes());
  }
  const Dims dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
  const Normal n = differentiated() ? Normal(input, dims, eps, true) : Normal(input, dims, mu, rstd);
  return tenon::sum_to_size(tenon::mul(grad, n.x), weight.sizes());
}

Tensor rms_norm_input_gradient(const Tensor& grad, const Tensor& input, const Tensor& rstd,
                               const Tensor& weight, IntArrayRef normalized_shape, double eps) {
  const Dims dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
  if (!differentiated()) {
    const Tensor exact = reciprocal_length(input, rstd, dims, eps);
    return tenon::_rms_norm_backward(grad, input, exact, weight, normalized_shape).to(input.dtype());
  }
  return input_gradient(grad, Normal(input, dims, eps, false), weight, dims, false);
}

Tensor rms_norm_weight_gradient(const Tensor& grad, const Tensor& input, const Tensor& rstd,
                                const Tensor& weight, IntArrayRef normalized_shape, double eps) {
  const Dims dims = last_dims(static_cast<int64_t>(normalized_shape.size()));
  if (!differentiated() && weight.sizes() == normalized_shape) {
    const Tensor exact = reciprocal_length(input, rstd, dims, eps);
    return tenon::_rms_norm_backward_weight(grad, input, exact, normalized_shape).to(weight.dtype());
  }
  const Normal n(input, dims, eps, false);
  return tenon::sum_to_size(tenon::mul(grad, n.x), weight.sizes());
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_gradients(const Tensor& grad, const Tensor& input,
                                                        const Tensor& mu, const Tensor& rstd,
                                                        const Tensor& weight, double eps) {
  if (!differentiated()) return tenon::_batch_norm_backward(grad, input, mu, rstd, weight);
  const Tensor w = weight.defined() ? of_channels(weight, input.dim()) : weight;
  const Dims dims = all_but_channels(input.dim());
  const Normal n(input, dims, eps, true);
  return {input_gradient(grad, n, w, dims, true), sum_to_channels(tenon::mul(grad, n.x)),
          sum_to_channels(grad)};
}

Tensor batch_norm_inference_gradient(const Tensor& grad, const Tensor& weight, const Tensor& running_var,
                                     double eps) {
  const Tensor r = reciprocal_deviation(running_var, eps);
  return tenon::mul(grad, of_channels(weight.defined() ? tenon::mul(weight, r) : r, grad.dim()));
}

Tensor batch_norm_inference_weight_gradient(const Tensor& grad, const Tensor& input,
                                            const Tensor& running_mean, const Tensor& running_var,
                                            double eps) {
  const Tensor d = tenon::sub(input, of_channels(running_mean, input.dim()));
  return tenon::mul(sum_to_channels(tenon::mul(grad, d)), reciprocal_deviation(running_var, eps));
}

Tensor sum_to_channels(const Tensor& t) {
  const Dims dims = all_but_channels(t.dim());
  return tenon::sum(t, IntArrayRef(dims));
}

}  // namespace tenon::ops
