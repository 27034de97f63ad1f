// Module: parameters by name, modules inside modules, and a forward function.
// Used by every layer and by programs that define models. Knows nothing of optimizers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tenon/core/tensor.h"

namespace tenon::nn {

/// Base of layers and models. A copy of a module shares its parameters.
///
///     struct Net : nn::Module {
///       nn::Linear& hidden = register_module("hidden", nn::Linear(64, 128));
///       Tensor forward(const Tensor& x) override { return relu(hidden(x)); }
///     };
class Module {
 public:
  virtual ~Module() = default;

  virtual Tensor forward(const Tensor& input) = 0;
  Tensor operator()(const Tensor& input) { return forward(input); }

  /// All parameters in the order of registration, the module's own before those of the modules inside.
  std::vector<Tensor> parameters() const;
  /// All parameters with their names, such as "0.weight".
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  /// Clears the gradients of all parameters.
  void zero_grad();

  /// Whether the module is in training mode, in which some layers behave differently.
  bool is_training() const noexcept { return training_; }
  void train(bool on = true);
  void eval() { train(false); }

 protected:
  Module() = default;
  Module(const Module&) = default;
  Module(Module&&) = default;
  Module& operator=(const Module&) = default;
  Module& operator=(Module&&) = default;

  /// Makes `value` a parameter, which requires grad, and returns it. Throws Error{Value} for a name that is
  /// in use.
  Tensor register_parameter(std::string name, Tensor value);
  /// Adds a module and returns it. Throws Error{Value} for a name that is in use.
  template <class M>
  M& register_module(std::string name, M module) {
    auto owned = std::make_shared<M>(std::move(module));
    M& reference = *owned;
    add_module(std::move(name), std::move(owned));
    return reference;
  }
  void add_module(std::string name, std::shared_ptr<Module> module);

  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules() const noexcept {
    return modules_;
  }

 private:
  void check_free(const std::string& name) const;
  void collect(const std::string& prefix, std::vector<std::pair<std::string, Tensor>>& out) const;

  std::vector<std::pair<std::string, Tensor>> parameters_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules_;
  bool training_ = true;
};

}  // namespace tenon::nn
