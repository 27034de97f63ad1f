// Module: parameters and buffers by name, modules inside modules, a forward function, and the state as a
// whole. Used by every layer and by programs that define models. Independent of optimizers.
#pragma once

#include <concepts>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/io/state_dict.h"

namespace tenon::nn {

namespace detail {
/// "Net" of "... [with T = main()::Net; ...]", which compilers print for a function template's T.
std::string_view class_name(std::string_view function) noexcept;
/// The name of a class without its namespaces. Needs no RTTI, which programs may compile without.
template <class T>
std::string_view class_name() noexcept {
  return class_name(__PRETTY_FUNCTION__);
}
}  // namespace detail

/// What load_state_dict did not find, and what it found no place for.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys, unexpected_keys;
};

class Module;
namespace detail {
std::ostream& print(std::ostream& out, const Module& module, std::string_view class_name);
}

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
  /// All buffers, in the same order.
  std::vector<Tensor> buffers() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;

  /// The parameters and persistent buffers by name, detached; they share memory with the module.
  ///
  ///     tenon::save(net.state_dict(), "net.safetensors");
  ///     net.load_state_dict(tenon::load("net.safetensors"));
  StateDict state_dict() const;
  /// Copies the values of a state into the parameters and buffers of the same names; dtypes may differ.
  /// Throws Error{Runtime}, and changes nothing, if a shape does not fit, if a value has no elements to copy
  /// (on meta) or a dtype that the parameter's cannot take, or, with `strict`, if names are missing or
  /// unknown: the message lists all that is wrong. Returns the missing and the unknown names.
  IncompatibleKeys load_state_dict(const StateDict& state, bool strict = true);

  /// What is printed between the parentheses after the class's name: "in_features=64, out_features=128".
  virtual std::string extra_repr() const { return ""; }
  /// The module and those inside it, as Python's repr prints them:
  ///
  ///     Sequential(
  ///       (0): Linear(in_features=64, out_features=128, bias=True)
  ///       (1): ReLU()
  ///     )
  ///
  /// `class_name` is what a module is called that was not registered in another one.
  std::string repr(std::string_view class_name = "Module") const;

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
  /// Makes `value` a buffer, which belongs to the state but is not trained, and returns it. A buffer that is
  /// not persistent is left out of state_dict. Throws Error{Value} for a name that is in use.
  Tensor register_buffer(std::string name, Tensor value, bool persistent = true);
  /// The same with a name that a file gives, which may have dots.
  void add_parameter(std::string name, Tensor value);
  void add_buffer(std::string name, Tensor value);
  /// Adds a module and returns it. Throws Error{Value} for a name that is in use.
  template <class M>
  M& register_module(std::string name, M module) {
    auto owned = std::make_shared<M>(std::move(module));
    M& reference = *owned;
    add_module(std::move(name), std::move(owned), detail::class_name<M>());
    return reference;
  }
  /// `class_name` is what the module is called in print.
  void add_module(std::string name, std::shared_ptr<Module> module, std::string_view class_name = "Module");

  const std::vector<std::pair<std::string, std::shared_ptr<Module>>>& modules() const noexcept {
    return modules_;
  }

 private:
  struct Buffer {
    std::string name;
    Tensor value;
    bool persistent;
  };
  using Named = std::vector<std::pair<std::string, Tensor>>;

  void check_free(const std::string& name) const;
  void check_name(const std::string& name) const;
  /// Adds what `own` adds of each module to `out`, with the path of the module.
  template <class Own>
  void collect(const std::string& prefix, Named& out, const Own& own) const;
  Named state() const;

  Named parameters_;
  std::vector<Buffer> buffers_;
  std::vector<std::pair<std::string, std::shared_ptr<Module>>> modules_;
  std::string_view class_name_;  // static; empty until another module registers this one
  bool training_ = true;
};

/// Prints module.repr().
template <std::derived_from<Module> M>
std::ostream& operator<<(std::ostream& out, const M& module) {
  return detail::print(out, module, detail::class_name<M>());
}

}  // namespace tenon::nn
