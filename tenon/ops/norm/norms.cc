// Norms of layers, groups and batches, made of the row operators.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/norm/bodies.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"

namespace tenon::ops {
namespace {

void check_shaped(const Tensor& t, IntArrayRef wanted, const char* op, const char* name) {
  if (!t.defined()) return;
  TENON_CHECK(t.sizes() == wanted, Shape,
              fmt::format("{}: expected `{}` of shape {}, got {}", op, name, to_string(wanted),
                          to_string(t.sizes())));
}

void check_normalized(const Tensor& input, IntArrayRef normalized_shape, const char* op) {
  TENON_CHECK(!normalized_shape.empty(), Shape, fmt::format("{}: `normalized_shape` must not be empty", op));
  const size_t ndim = input.sizes().size(), k = normalized_shape.size();
  TENON_CHECK(k <= ndim && IntArrayRef(input.sizes().subspan(ndim - k)) == normalized_shape, Shape,
              fmt::format("{}: given `normalized_shape` {}, expected `input` of shape [*, {}, got {}", op,
                          to_string(normalized_shape), to_string(normalized_shape).substr(1),
                          to_string(input.sizes())));
}

/// The channels of an input [N, C, ...].
int64_t channels_of(const Tensor& input, const char* op) {
  TENON_CHECK(input.dim() >= 2, Shape,
              fmt::format("{}: expected `input` to have a batch and a channel dimension, got {}", op,
                          to_string(input.sizes())));
  return input.sizes()[1];
}

/// Moves running statistics by `momentum` towards those of a batch of `n` elements a channel.
void follow(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean, const Tensor& var,
            int64_t n, double momentum) {
  const NoGradGuard no_grad;
  const auto move = [&](const Tensor& running, const Tensor& seen) {
    if (!running.defined()) return;
    Tensor to = running;
    to.copy_(tenon::add(tenon::mul(to, Scalar(1 - momentum)), tenon::mul(seen, Scalar(momentum))));
  };
  move(running_mean, mean.detach());
  if (running_var.defined())
    move(running_var, tenon::mul(var.detach(), Scalar(static_cast<double>(n) / static_cast<double>(n - 1))));
}

double machine_eps(DType dtype) {
  switch (dtype) {
    case DType::Float64:
      return 0x1p-52;
    case DType::Float16:
      return 0x1p-10;
    case DType::BFloat16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

}  // namespace

Tensor layer_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  check_normalized(input, normalized_shape, "layer_norm");
  check_shaped(weight, normalized_shape, "layer_norm", "weight");
  check_shaped(bias, normalized_shape, "layer_norm", "bias");
  return std::get<0>(tenon::native_layer_norm(input, normalized_shape, weight, bias, eps));
}

Tensor rms_norm(const Tensor& input, IntArrayRef normalized_shape, const Tensor& weight,
                std::optional<double> eps) {
  check_normalized(input, normalized_shape, "rms_norm");
  check_shaped(weight, normalized_shape, "rms_norm", "weight");
  return std::get<0>(
      tenon::_rms_norm(input, normalized_shape, weight, eps.value_or(machine_eps(input.dtype()))));
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  const int64_t channels = channels_of(input, "group_norm");
  TENON_CHECK(
      num_groups > 0 && channels % num_groups == 0, Value,
      fmt::format("group_norm: expected the number of channels of `input` to be divisible by `num_groups`, "
                  "got {} channels and {} groups",
                  channels, num_groups));
  check_shaped(weight, IntArrayRef(channels), "group_norm", "weight");
  check_shaped(bias, IntArrayRef(channels), "group_norm", "bias");
  const int64_t each = channels / num_groups, batch = input.sizes()[0];
  int64_t places = 1;
  for (size_t d = 2; d < input.sizes().size(); ++d) places *= input.sizes()[d];
  const auto of_groups = [&](const Tensor& t) { return t.defined() ? t.reshape({num_groups, each, 1}) : t; };
  const Tensor groups = input.reshape({batch, num_groups, each, places});
  const Tensor out =
      std::get<0>(tenon::native_layer_norm(groups, {each, places}, of_groups(weight), of_groups(bias), eps));
  return tenon::_unsafe_view(out, input.sizes());
}

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps, bool) {
  const int64_t channels = channels_of(input, "batch_norm");
  check_shaped(weight, IntArrayRef(channels), "batch_norm", "weight");
  check_shaped(bias, IntArrayRef(channels), "batch_norm", "bias");
  check_shaped(running_mean, IntArrayRef(channels), "batch_norm", "running_mean");
  check_shaped(running_var, IntArrayRef(channels), "batch_norm", "running_var");
  if (training) {
    const auto [out, mean, rstd, var] = tenon::_batch_norm_training(input, weight, bias, eps);
    if (channels > 0) follow(running_mean, running_var, mean, var, input.numel() / channels, momentum);
    return out;
  }
  TENON_CHECK(running_mean.defined() && running_var.defined(), Value,
              "batch_norm: expected `running_mean` and `running_var` to be given when training is False");
  return tenon::_batch_norm_inference(input, weight, bias, running_mean, running_var, eps);
}

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const Tensor& running_mean, const Tensor& running_var, bool use_input_stats,
                     double momentum, double eps, bool cudnn) {
  const int64_t channels = channels_of(input, "instance_norm"), batch = input.sizes()[0];
  TENON_CHECK(
      use_input_stats || (running_mean.defined() && running_var.defined()), Value,
      "instance_norm: expected `running_mean` and `running_var` to be given when use_input_stats is False");
  check_shaped(weight, IntArrayRef(channels), "instance_norm", "weight");
  check_shaped(bias, IntArrayRef(channels), "instance_norm", "bias");
  check_shaped(running_mean, IntArrayRef(channels), "instance_norm", "running_mean");
  check_shaped(running_var, IntArrayRef(channels), "instance_norm", "running_var");
  // Every channel of every sample is a channel of its own.
  const auto repeated = [&](const Tensor& t) {
    return t.defined() ? t.unsqueeze(0).expand({batch, channels}).reshape({batch * channels}) : t;
  };
  Dims sizes = input.sizes().to_dims();
  sizes[0] = 1;
  sizes[1] = batch * channels;
  const Tensor mean = repeated(running_mean), var = repeated(running_var);
  const auto own = [](const Tensor& t) { return t.defined() ? t.clone() : t; };
  const Tensor moved_mean = own(mean), moved_var = own(var);
  const Tensor out = ops::batch_norm(input.reshape(sizes), repeated(weight), repeated(bias), moved_mean,
                                     moved_var, use_input_stats, momentum, eps, cudnn);
  if (use_input_stats) {
    const NoGradGuard no_grad;
    const auto average = [&](const Tensor& running, const Tensor& moved) {
      if (!running.defined()) return;
      Tensor to = running;
      to.copy_(tenon::mean(moved.reshape({batch, channels}), IntArrayRef(0), false));
    };
    average(running_mean, moved_mean);
    average(running_var, moved_var);
  }
  return tenon::_unsafe_view(out, input.sizes());
}

}  // namespace tenon::ops
