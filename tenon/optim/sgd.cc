#include "tenon/optim/sgd.h"

#include <fmt/format.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/optimizer/functions.h"
#include "tenon/optim/saved_state.h"

namespace tenon::optim {

void check(const SGDOptions& o) {
  TENON_CHECK(o.lr >= 0, Value, fmt::format("SGD: lr must not be negative, got {}", o.lr));
  TENON_CHECK(o.momentum >= 0, Value, fmt::format("SGD: momentum must not be negative, got {}", o.momentum));
  TENON_CHECK(o.weight_decay >= 0, Value,
              fmt::format("SGD: weight_decay must not be negative, got {}", o.weight_decay));
  TENON_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), Value,
              "SGD: nesterov needs a momentum and no dampening");
}

void sgd_step(TensorList parameters, std::span<Tensor> momentum, const SGDOptions& o) {
  const NoGradGuard no_grad;
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor parameter = parameters[i];
    Tensor direction = parameter.grad();
    if (!direction.defined()) continue;
    if (o.maximize) direction = direction.neg();
    if (o.weight_decay != 0) direction = add(direction, parameter, o.weight_decay);
    if (o.momentum != 0) {
      Tensor& velocity = momentum[i];
      if (velocity.defined()) {
        _sgd_step_(parameter, direction, velocity, o.momentum, 1 - o.dampening, -o.lr, o.nesterov);
        continue;
      }
      velocity = direction.clone();
      direction = o.nesterov ? add(direction, velocity, o.momentum) : velocity;
    }
    parameter.add_(direction, -o.lr);
  }
}

SGD::SGD(std::vector<Tensor> parameters, SGDOptions options)
    : Optimizer(std::move(parameters)), options_(options), momentum_(parameters_.size()) {
  check(options_);
}

void SGD::load_state_dict(const Value& state) {
  const SavedState saved("SGD", state, parameters_);
  SGDOptions options{.lr = saved.number("lr", options_.lr),
                     .momentum = saved.number("momentum", options_.momentum),
                     .dampening = saved.number("dampening", options_.dampening),
                     .weight_decay = saved.number("weight_decay", options_.weight_decay),
                     .nesterov = saved.flag("nesterov", options_.nesterov),
                     .maximize = saved.flag("maximize", options_.maximize)};
  check(options);
  std::vector<Tensor> momentum;
  for (size_t i = 0; i < parameters_.size(); ++i) momentum.push_back(saved.tensor(i, "momentum_buffer"));
  options_ = options;
  momentum_ = std::move(momentum);
}

}  // namespace tenon::optim
