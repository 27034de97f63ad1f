#include "tenon/optim/adam.h"

#include <fmt/format.h>

#include <cmath>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/optimizer/functions.h"
#include "tenon/optim/saved_state.h"

namespace tenon::optim {

void check(const AdamOptions& o) {
  TENON_CHECK(o.lr >= 0, Value, fmt::format("Adam: lr must not be negative, got {}", o.lr));
  TENON_CHECK(o.eps >= 0, Value, fmt::format("Adam: eps must not be negative, got {}", o.eps));
  TENON_CHECK(o.weight_decay >= 0, Value,
              fmt::format("Adam: weight_decay must not be negative, got {}", o.weight_decay));
  for (const double beta : {o.beta1, o.beta2}) {
    TENON_CHECK(beta >= 0 && beta < 1, Value, fmt::format("Adam: betas must be in [0, 1), got {}", beta));
  }
}

AdamNumbers numbers_of(const AdamOptions& o, int64_t step) noexcept {
  const double correction1 = 1 - std::pow(o.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(o.beta2, static_cast<double>(step));
  return {.step = -o.lr / correction1, .root = std::sqrt(correction2), .shrink = 1 - o.lr * o.weight_decay};
}

namespace {

/// One step of a real parameter, whose state exists.
void update(Tensor& parameter, Tensor grad, AdamState& s, const AdamOptions& o) {
  const AdamNumbers numbers = numbers_of(o, s.step);
  if (o.weight_decay != 0) {
    if (o.decoupled_weight_decay)
      parameter.mul_(numbers.shrink);
    else
      grad = add(grad, parameter, o.weight_decay);
  }
  Tensor none;
  _adam_step_(parameter, grad, s.exp_avg, s.exp_avg_sq, o.amsgrad ? s.max_exp_avg_sq : none, o.beta1,
              1 - o.beta1, o.beta2, 1 - o.beta2, numbers.root, o.eps, numbers.step);
}

void step_one(Tensor& parameter, Tensor grad, AdamState& s, const AdamOptions& o) {
  if (o.maximize) grad = grad.neg();
  if (!s.exp_avg.defined()) s.exp_avg = zeros_like(parameter);
  if (!s.exp_avg_sq.defined()) s.exp_avg_sq = zeros_like(parameter);
  if (o.amsgrad && !s.max_exp_avg_sq.defined()) s.max_exp_avg_sq = zeros_like(parameter);
  ++s.step;
  if (!is_complex(parameter.dtype())) return update(parameter, grad, s, o);
  // Each part of a complex number is a parameter of its own.
  Tensor parts = view_as_real(parameter);
  AdamState state{s.step, view_as_real(s.exp_avg), view_as_real(s.exp_avg_sq)};
  if (o.amsgrad) state.max_exp_avg_sq = view_as_real(s.max_exp_avg_sq);
  update(parts, view_as_real(grad), state, o);
  if (o.amsgrad) view_as_real(s.max_exp_avg_sq).copy_(state.max_exp_avg_sq);
}

}  // namespace

void adam_step(TensorList parameters, std::span<AdamState> states, const AdamOptions& options) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor parameter = parameters[i];
    const Tensor grad = parameter.grad();
    if (grad.defined()) step_one(parameter, grad, states[i], options);
  }
}

Adam::Adam(std::vector<Tensor> parameters, AdamOptions options)
    : Optimizer(std::move(parameters)), options_(options), states_(parameters_.size()) {
  check(options_);
}

void Adam::load_state_dict(const Value& state) {
  const SavedState saved("Adam", state, parameters_);
  AdamOptions options{
      .lr = saved.number("lr", options_.lr),
      .beta1 = saved.beta(0, options_.beta1),
      .beta2 = saved.beta(1, options_.beta2),
      .eps = saved.number("eps", options_.eps),
      .weight_decay = saved.number("weight_decay", options_.weight_decay),
      .decoupled_weight_decay = saved.flag("decoupled_weight_decay", options_.decoupled_weight_decay),
      .amsgrad = saved.flag("amsgrad", options_.amsgrad),
      .maximize = saved.flag("maximize", options_.maximize)};
  check(options);
  std::vector<AdamState> states;
  for (size_t i = 0; i < parameters_.size(); ++i)
    states.push_back({saved.step(i), saved.tensor(i, "exp_avg"), saved.tensor(i, "exp_avg_sq"),
                      saved.tensor(i, "max_exp_avg_sq")});
  options_ = options;
  states_ = std::move(states);
}

}  // namespace tenon::optim
