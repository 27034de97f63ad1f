#include "tenon/nn/module.h"

#include <fmt/format.h>

namespace tenon::nn {

void Module::check_free(const std::string& name) const {
  TENON_CHECK(!name.empty() && name.find('.') == std::string::npos, Value,
              fmt::format("module: '{}' is no name for a part; it must be non-empty and without dots", name));
  bool taken = false;
  for (const auto& [known, value] : parameters_) taken |= known == name;
  for (const auto& [known, value] : modules_) taken |= known == name;
  TENON_CHECK(!taken, Value, fmt::format("module: the name '{}' is taken", name));
}

Tensor Module::register_parameter(std::string name, Tensor value) {
  check_free(name);
  if (value.defined()) {
    value.requires_grad_();
    parameters_.emplace_back(std::move(name), value);
  }
  return value;
}

void Module::add_module(std::string name, std::shared_ptr<Module> module) {
  check_free(name);
  modules_.emplace_back(std::move(name), std::move(module));
}

void Module::collect(const std::string& prefix, std::vector<std::pair<std::string, Tensor>>& out) const {
  for (const auto& [name, value] : parameters_) out.emplace_back(prefix + name, value);
  for (const auto& [name, module] : modules_) module->collect(prefix + name + ".", out);
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() const {
  std::vector<std::pair<std::string, Tensor>> out;
  collect("", out);
  return out;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> out;
  for (auto& [name, value] : named_parameters()) out.push_back(std::move(value));
  return out;
}

void Module::zero_grad() {
  for (Tensor& parameter : parameters()) parameter.set_grad({});
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, module] : modules_) module->train(on);
}

}  // namespace tenon::nn
