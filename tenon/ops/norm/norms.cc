// Norms of layers, groups and batches, made of the row operators.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/norm/bodies.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/norm/checks.h"

namespace tenon::ops {

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

void check_groups(const Tensor& input, int64_t N, int64_t C, int64_t HxW, int64_t groups, const char* op) {
  const bool fits = input.dim() >= 2 && input.sizes()[0] == N && input.sizes()[1] == C &&
                    (N * C == 0 || input.numel() / (N * C) == HxW);
  TENON_CHECK(fits, Shape,
              fmt::format("{}: expected `input` of {} samples of {} channels of {} places, got {}", op, N, C,
                          HxW, to_string(input.sizes())));
  TENON_CHECK(
      groups > 0 && C % groups == 0, Value,
      fmt::format("{}: expected the number of channels of `input` to be divisible by `{}`, got {} channels "
                  "and {} groups",
                  op, std::string_view(op) == "group_norm" ? "num_groups" : "group", C, groups));
}

namespace {

/// `value`, which has no history, moving as `own`, which was computed again with one.
Tensor moving_as(const Tensor& value, const Tensor& own) {
  return tenon::add(value, tenon::sub(own, own.detach()).to(value.dtype()));
}

/// The channels of an input [N, C, ...].
int64_t channels_of(const Tensor& input, const char* op) {
  TENON_CHECK(input.dim() >= 2, Shape,
              fmt::format("{}: expected `input` to have a batch and a channel dimension, got {}", op,
                          to_string(input.sizes())));
  return input.sizes()[1];
}

/// Moves running statistics by `momentum` towards those of a batch of `n` elements a channel, if there are
/// any.
void update_running(const Tensor& running_mean, const Tensor& running_var, const Tensor& mean,
                    const Tensor& var, int64_t n, double momentum) {
  if (n == 0) return;
  const NoGradGuard no_grad;
  const auto approach = [&](const Tensor& running, const Tensor& seen) {
    if (!running.defined()) return;
    Tensor to = running;
    to.copy_(tenon::add(tenon::mul(to, Scalar(1 - momentum)), tenon::mul(seen, Scalar(momentum))));
  };
  approach(running_mean, mean.detach());
  if (running_var.defined())
    approach(running_var,
             tenon::mul(var.detach(), Scalar(static_cast<double>(n) / static_cast<double>(n - 1))));
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
  return std::get<0>(tenon::_rms_norm(input, normalized_shape, weight,
                                      eps.value_or(input.dtype() == DType::Float64 ? 0x1p-52 : 0x1p-23)));
}

namespace {

/// The norm of groups of channels and its statistics: [N, C, *], twice [N, groups, 1, 1].
std::tuple<Tensor, Tensor, Tensor> norm_of_groups(const Tensor& input, const Tensor& weight,
                                                  const Tensor& bias, int64_t places, int64_t groups,
                                                  double eps, const char* op) {
  const int64_t batch = input.sizes()[0], channels = input.sizes()[1];
  check_groups(input, batch, channels, places, groups, op);
  TENON_CHECK(channels > 0 && places > 0, Shape,
              fmt::format("{}: expected `input` to have channels, and elements in each of them, got {}", op,
                          to_string(input.sizes())));
  check_shaped(weight, IntArrayRef(channels), op, "weight");
  check_shaped(bias, IntArrayRef(channels), op, "bias");
  const int64_t each = channels / groups;
  const auto of_groups = [&](const Tensor& t) { return t.defined() ? t.reshape({groups, each, 1}) : t; };
  const auto [out, mean, rstd] = tenon::native_layer_norm(
      input.reshape({batch, groups, each, places}), {each, places}, of_groups(weight), of_groups(bias), eps);
  return {tenon::_unsafe_view(out, input.sizes()), mean, rstd};
}

}  // namespace

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias,
                  double eps, bool) {
  channels_of(input, "group_norm");
  int64_t places = 1;
  for (size_t d = 2; d < input.sizes().size(); ++d) places *= input.sizes()[d];
  return std::get<0>(norm_of_groups(input, weight, bias, places, num_groups, eps, "group_norm"));
}

std::tuple<Tensor, Tensor, Tensor> native_group_norm(const Tensor& input, const Tensor& weight,
                                                     const Tensor& bias, int64_t N, int64_t C, int64_t HxW,
                                                     int64_t group, double eps) {
  channels_of(input, "native_group_norm");
  check_groups(input, N, C, HxW, group, "native_group_norm");
  const auto [out, mean, rstd] = norm_of_groups(input, weight, bias, HxW, group, eps, "native_group_norm");
  const Tensor means = tenon::_unsafe_view(mean, {N, group}), rstds = tenon::_unsafe_view(rstd, {N, group});
  if (!thread_state.grad_enabled || !input.requires_grad()) return {out, means, rstds};
  // Unlike other norms' statistics, these have gradients in PyTorch.
  const Tensor groups = input.reshape({N, group, C / std::max<int64_t>(group, 1) * HxW});
  const Tensor d = tenon::sub(groups, tenon::mean(groups, IntArrayRef(-1), true));
  const Tensor own = tenon::rsqrt(tenon::add(tenon::mean(tenon::mul(d, d), IntArrayRef(-1)), Scalar(eps)));
  return {out, moving_as(means, tenon::mean(groups, IntArrayRef(-1))), moving_as(rstds, own)};
}

namespace {

void check_running(const Tensor& mean, const Tensor& var, const char* op) {
  TENON_CHECK(mean.defined() == var.defined(), Value,
              fmt::format("{}: expected both or neither of `running_mean` and `running_var`", op));
}

/// With the mean and 1 / deviation of each channel in training, otherwise two tensors of no elements.
std::tuple<Tensor, Tensor, Tensor> norm_of_batch(const Tensor& input, const Tensor& weight,
                                                 const Tensor& bias, const Tensor& running_mean,
                                                 const Tensor& running_var, bool training, double momentum,
                                                 double eps, const char* op) {
  // As in PyTorch, a vector of no elements has no channels.
  const bool none = input.dim() == 1 && input.numel() == 0;
  const int64_t channels = none ? 0 : channels_of(input, op);
  check_shaped(weight, IntArrayRef(channels), op, "weight");
  check_shaped(bias, IntArrayRef(channels), op, "bias");
  check_shaped(running_mean, IntArrayRef(channels), op, "running_mean");
  check_shaped(running_var, IntArrayRef(channels), op, "running_var");
  check_running(running_mean, running_var, op);
  if (training && none) {
    const Tensor statistics = tenon::empty({0}, input.options());
    return {input.clone(), statistics, statistics};
  }
  if (training) {
    // Statistics are float32 where an operand is: what the running ones keep must not be rounded to half
    // precision on the way.
    const bool half = input.dtype() == DType::Float16 || input.dtype() == DType::BFloat16;
    const bool wide = half && running_mean.defined() && running_mean.dtype() == DType::Float32;
    const Tensor own =
        wide && !weight.defined() ? tenon::ones({channels}, input.options().dtype(DType::Float32)) : weight;
    const auto [out, mean, rstd, var] = tenon::_batch_norm_training(input, own, bias, eps);
    if (channels > 0)
      update_running(running_mean, running_var, mean, var, input.numel() / channels, momentum);
    return {out, mean, rstd};
  }
  TENON_CHECK(
      running_mean.defined() && running_var.defined(), Value,
      fmt::format("{}: expected `running_mean` and `running_var` to be given when training is False", op));
  if (none) return {input.clone(), Tensor(), Tensor()};
  return {tenon::_batch_norm_inference(input, weight, bias, running_mean, running_var, eps), Tensor(),
          Tensor()};
}

std::tuple<Tensor, Tensor, Tensor> legit(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                         const Tensor& running_mean, const Tensor& running_var, bool training,
                                         double momentum, double eps, const char* op) {
  TENON_CHECK(
      !training || input.numel() > 0, Shape,
      fmt::format("{}: expected `input` with elements in training, got {}", op, to_string(input.sizes())));
  auto [out, mean, rstd] =
      norm_of_batch(input, weight, bias, running_mean, running_var, training, momentum, eps, op);
  if (!training) mean = tenon::empty({0}, input.options()), rstd = tenon::empty({0}, input.options());
  return {out, mean, rstd};
}

}  // namespace

Tensor batch_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, bool training, double momentum, double eps, bool) {
  return std::get<0>(
      norm_of_batch(input, weight, bias, running_mean, running_var, training, momentum, eps, "batch_norm"));
}

std::tuple<Tensor, Tensor, Tensor> native_batch_norm_legit(const Tensor& input, const Tensor& weight,
                                                           const Tensor& bias, Tensor& running_mean,
                                                           Tensor& running_var, bool training,
                                                           double momentum, double eps) {
  // The schema says that they are written, and history must not have saved what is.
  const Tensor mean = training ? running_mean : running_mean.clone(),
               var = training ? running_var : running_var.clone();
  return legit(input, weight, bias, mean, var, training, momentum, eps, "_native_batch_norm_legit");
}
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_legit_no_stats(const Tensor& input, const Tensor& weight,
                                                                    const Tensor& bias, bool training,
                                                                    double momentum, double eps) {
  return legit(input, weight, bias, {}, {}, training, momentum, eps, "_native_batch_norm_legit");
}
std::tuple<Tensor, Tensor, Tensor> native_batch_norm_legit_no_training(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  return legit(input, weight, bias, running_mean, running_var, false, momentum, eps,
               "_native_batch_norm_legit_no_training");
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
  check_running(running_mean, running_var, "instance_norm");
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
