// Sequential: modules one after another.
#pragma once

#include "tenon/nn/module.h"

namespace tenon::nn {

/// `Sequential model{Linear(64, 128), ReLU(), Linear(128, 10)}`: each module gets the result of the one
/// before. The modules are named "0", "1", ... Use braces: C++ evaluates arguments in parentheses in any
/// order, and each layer draws random weights.
class Sequential final : public Module {
 public:
  template <class... M>
  requires(std::is_base_of_v<Module, std::remove_cvref_t<M>>&&...) explicit Sequential(M&&... modules) {
    (push_back(std::forward<M>(modules)), ...);
  }

  template <class M>
  void push_back(M&& module) {
    using Type = std::remove_cvref_t<M>;
    add_module(std::to_string(size()), std::make_shared<Type>(std::forward<M>(module)),
               detail::class_name<Type>());
  }

  Tensor forward(const Tensor& input) override {
    Tensor value = input;
    for (const auto& [name, module] : modules()) value = module->forward(value);
    return value;
  }

  size_t size() const noexcept { return modules().size(); }
  Module& operator[](size_t i) const { return *modules().at(i).second; }
};

}  // namespace tenon::nn
