#include "tenon/nn/norm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/ops/print.h"

namespace tenon::nn {

LayerNorm::LayerNorm(Dims normalized_shape, LayerNormOptions options)
    : normalized_shape_(std::move(normalized_shape)), eps_(options.eps) {
  if (!options.elementwise_affine) return;
  weight = register_parameter("weight", ones(normalized_shape_, options.dtype));
  if (options.bias) bias = register_parameter("bias", zeros(normalized_shape_, options.dtype));
}

Tensor LayerNorm::forward(const Tensor& input) {
  return layer_norm(input, normalized_shape_, weight, bias, eps_);
}

std::string LayerNorm::extra_repr() const {
  const bool single = normalized_shape_.size() == 1;
  return fmt::format("({}{}), eps={}, elementwise_affine={}, bias={}", fmt::join(normalized_shape_, ", "),
                     single ? "," : "", number_text(eps_), number_text(weight.defined()),
                     number_text(bias.defined()));
}

BatchNorm2d::BatchNorm2d(int64_t num_features, BatchNorm2dOptions options)
    : num_features_(num_features), eps_(options.eps), momentum_(options.momentum) {
  if (options.affine) {
    weight = register_parameter("weight", ones({num_features}, options.dtype));
    bias = register_parameter("bias", zeros({num_features}, options.dtype));
  }
  if (!options.track_running_stats) return;
  running_mean = register_buffer("running_mean", zeros({num_features}, options.dtype));
  running_var = register_buffer("running_var", ones({num_features}, options.dtype));
  num_batches_tracked = register_buffer("num_batches_tracked", zeros({}, kInt64));
}

std::string BatchNorm2d::extra_repr() const {
  return fmt::format("{}, eps={}, momentum={}, affine={}, bias={}, track_running_stats={}", num_features_,
                     number_text(eps_), momentum_ ? number_text(*momentum_) : "None",
                     number_text(weight.defined()), number_text(bias.defined()),
                     number_text(running_mean.defined()));
}

Tensor BatchNorm2d::forward(const Tensor& input) {
  TENON_CHECK(input.dim() == 4, Shape,
              fmt::format("BatchNorm2d: expected input [N, C, H, W], got {}", summary(input)));
  const bool by_batch = is_training() || !running_mean.defined();
  TENON_CHECK(!by_batch || input.size(1) == 0 || input.numel() / input.size(1) > 1, Value,
              fmt::format("BatchNorm2d: training needs more than one value for each channel, got {}",
                          summary(input)));
  double momentum = momentum_.value_or(0);
  if (is_training() && num_batches_tracked.defined()) {
    num_batches_tracked.add_(1);
    if (!momentum_) momentum = 1 / static_cast<double>(num_batches_tracked.item<int64_t>());
  }
  return batch_norm(input, weight, bias, running_mean, running_var, by_batch, momentum, eps_, false);
}

}  // namespace tenon::nn
