#include "tenon/optim/saved_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/copy/functions.h"

namespace tenon::optim {
namespace {

double number_of(const Value& value) {
  return value.kind() == Value::Kind::Tensor ? value.to_tensor().item<double>() : value.to_double();
}

}  // namespace

void SavedState::refuse(const std::string& what) const {
  throw_error(ErrorKind::Value, fmt::format("{}.load_state_dict: {}", optimizer_, what));
}

SavedState::SavedState(const char* optimizer, const Value& state, TensorList parameters)
    : optimizer_(optimizer), parameters_(parameters), states_(parameters.size()) {
  if (state.kind() != Value::Kind::Dict || !state.contains("state") || !state.contains("param_groups"))
    refuse(fmt::format("expected the state_dict() of an optimizer, with `state` and `param_groups`, got {}",
                       state.kind_name()));
  const Value groups = state["param_groups"];
  if (groups.size() != 1)
    refuse(fmt::format("the state has {} groups of parameters, and this optimizer has one", groups.size()));
  group_ = groups[0];
  const Value numbers = (*group_)["params"];
  if (numbers.size() != parameters.size())
    refuse(fmt::format("the state is of {} parameters, and this optimizer has {}", numbers.size(),
                       parameters.size()));
  const auto items = state["state"].items();
  for (size_t i = 0; i < states_.size(); ++i) {
    const int64_t number = numbers[i].to_int();
    for (const auto& [key, value] : items)
      if (key.kind() == Value::Kind::Int && key.to_int() == number) states_[i] = value;
  }
}

std::optional<Value> SavedState::option(std::string_view name) const {
  return group_->contains(name) ? std::optional((*group_)[name]) : std::nullopt;
}
double SavedState::number(std::string_view name, double otherwise) const {
  const std::optional<Value> value = option(name);
  return value ? number_of(*value) : otherwise;
}
bool SavedState::flag(std::string_view name, bool otherwise) const {
  const std::optional<Value> value = option(name);
  return value && value->kind() == Value::Kind::Bool ? value->to_bool() : otherwise;
}
double SavedState::beta(size_t i, double otherwise) const {
  const std::optional<Value> value = option("betas");
  return value ? number_of((*value)[i]) : otherwise;
}

std::optional<Value> SavedState::of_parameter(size_t parameter, std::string_view name) const {
  const std::optional<Value>& state = states_[parameter];
  if (!state || !state->contains(name)) return std::nullopt;
  const Value value = (*state)[name];
  return value.kind() == Value::Kind::None ? std::nullopt : std::optional(value);
}
Tensor SavedState::tensor(size_t parameter, std::string_view name) const {
  const std::optional<Value> value = of_parameter(parameter, name);
  if (!value) return {};
  const Tensor saved = value->to_tensor(), own = parameters_[parameter];
  if (saved.dtype() != own.dtype() || !std::ranges::equal(saved.sizes(), own.sizes()))
    refuse(fmt::format("`{}` of parameter {} is {} of shape {}, and the parameter is {} of shape {}", name,
                       parameter, tenon::name(saved.dtype()), to_string(saved.sizes()),
                       tenon::name(own.dtype()), to_string(own.sizes())));
  const NoGradGuard no_grad;
  return clone(saved);
}
int64_t SavedState::step(size_t parameter) const {
  const std::optional<Value> value = of_parameter(parameter, "step");
  return value ? static_cast<int64_t>(number_of(*value)) : 0;
}

}  // namespace tenon::optim
