#include "tenon/nn/module.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "tenon/core/thread_state.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::nn {
namespace {

std::vector<Tensor> values(std::vector<std::pair<std::string, Tensor>> named) {
  std::vector<Tensor> out;
  for (auto& [name, value] : named) out.push_back(std::move(value));
  return out;
}

std::string quoted(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += fmt::format("{}\"{}\"", out.empty() ? "" : ", ", name);
  return out;
}

/// Why copy_ would refuse the value's device or dtype, as it says; empty if it would not. Tried with one
/// element.
std::string why_not_copied(const Tensor& part, const Tensor& value) {
  if (part.device() == value.device() && part.dtype() == value.dtype()) return {};
  const auto empty_of = [](const Tensor& t) {
    return empty({1}, TensorOptions(t.dtype()).device(t.device()));
  };
  try {
    empty_of(part).copy_(empty_of(value));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string while_copying(std::string_view name, std::string_view why) {
  return fmt::format("While copying \"{}\": {}", name, why);
}

}  // namespace

void Module::check_name(const std::string& name) const {
  TENON_CHECK(!name.empty() && name.find('.') == std::string::npos, Value,
              fmt::format("module: '{}' is no name for a part; it must be non-empty and without dots", name));
  check_free(name);
}
void Module::check_free(const std::string& name) const {
  bool taken = false;
  for (const auto& [known, value] : parameters_) taken |= known == name;
  for (const Buffer& buffer : buffers_) taken |= buffer.name == name;
  for (const auto& [known, value] : modules_) taken |= known == name;
  TENON_CHECK(!taken, Value, fmt::format("module: the name '{}' is taken", name));
}

void Module::add_parameter(std::string name, Tensor value) {
  check_free(name);
  value.requires_grad_();
  parameters_.emplace_back(std::move(name), std::move(value));
}
void Module::add_buffer(std::string name, Tensor value) {
  check_free(name);
  buffers_.push_back({std::move(name), std::move(value), true});
}

Tensor Module::register_parameter(std::string name, Tensor value) {
  check_name(name);
  if (value.defined()) add_parameter(std::move(name), value);
  return value;
}

Tensor Module::register_buffer(std::string name, Tensor value, bool persistent) {
  check_name(name);
  if (value.defined()) buffers_.push_back({std::move(name), value, persistent});
  return value;
}

void Module::add_module(std::string name, std::shared_ptr<Module> module, std::string_view class_name) {
  check_name(name);
  if (module && module->class_name_.empty()) module->class_name_ = class_name;
  modules_.emplace_back(std::move(name), std::move(module));
}

template <class Own>
void Module::collect(const std::string& prefix, Named& out, const Own& own) const {
  own(*this, prefix, out);
  for (const auto& [name, module] : modules_) module->collect(prefix + name + ".", out, own);
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() const {
  Named out;
  collect("", out, [](const Module& module, const std::string& prefix, Named& to) {
    for (const auto& [name, value] : module.parameters_) to.emplace_back(prefix + name, value);
  });
  return out;
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers() const {
  Named out;
  collect("", out, [](const Module& module, const std::string& prefix, Named& to) {
    for (const Buffer& buffer : module.buffers_) to.emplace_back(prefix + buffer.name, buffer.value);
  });
  return out;
}

Module::Named Module::state() const {
  Named out;
  collect("", out, [](const Module& module, const std::string& prefix, Named& to) {
    for (const auto& [name, value] : module.parameters_) to.emplace_back(prefix + name, value);
    for (const Buffer& buffer : module.buffers_)
      if (buffer.persistent) to.emplace_back(prefix + buffer.name, buffer.value);
  });
  return out;
}

std::vector<Tensor> Module::parameters() const { return values(named_parameters()); }
std::vector<Tensor> Module::buffers() const { return values(named_buffers()); }

StateDict Module::state_dict() const {
  StateDict out;
  for (auto& [name, value] : state()) out.set(name, value.detach());
  return out;
}

IncompatibleKeys Module::load_state_dict(const StateDict& from, bool strict) {
  IncompatibleKeys keys;
  std::vector<std::string> problems;
  struct Copy {
    std::string name;
    Tensor part, value;
  };
  std::vector<Copy> copies;
  StateDict known;
  for (auto& [name, part] : state()) {
    known.set(name, part);
    const Tensor* const value = from.find(name);
    if (!value || !value->defined())
      keys.missing_keys.push_back(name);
    else if (value->sizes() != part.sizes())
      problems.push_back(
          fmt::format("size mismatch for {}: a shape of [{}] in the state_dict, [{}] in the module.", name,
                      fmt::join(value->sizes(), ", "), fmt::join(part.sizes(), ", ")));
    else if (const std::string why = why_not_copied(part, *value); !why.empty())
      problems.push_back(while_copying(name, why));
    else
      copies.push_back({name, part, *value});
  }
  for (const auto& [name, value] : from)
    if (!known.contains(name)) keys.unexpected_keys.push_back(name);
  if (strict) {
    if (!keys.unexpected_keys.empty())
      problems.insert(problems.begin(),
                      fmt::format("Unexpected key(s) in state_dict: {}.", quoted(keys.unexpected_keys)));
    if (!keys.missing_keys.empty())
      problems.insert(problems.begin(),
                      fmt::format("Missing key(s) in state_dict: {}.", quoted(keys.missing_keys)));
  }
  TENON_CHECK(
      problems.empty(), Runtime,
      fmt::format("load_state_dict: the state does not fit the module:\n\t{}", fmt::join(problems, "\n\t")));
  const NoGradGuard no_grad;
  for (Copy& copy : copies) {
    try {
      copy.part.copy_(copy.value);
    } catch (const FileError& error) {  // a mapped file that was cut short
      throw FileError(fmt::format("load_state_dict: {}", while_copying(copy.name, error.what())));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("load_state_dict: {}", while_copying(copy.name, error.what())));
    }
  }
  return keys;
}

std::string_view detail::class_name(std::string_view function) noexcept {
  constexpr std::string_view kBefore = "T = ";
  std::string_view name = function.substr(std::min(function.find(kBefore), function.size() - kBefore.size()));
  name.remove_prefix(kBefore.size());
  name = name.substr(0, name.find_first_of(";]"));
  const size_t scope = name.substr(0, name.find('<')).rfind("::");
  return scope == std::string_view::npos ? name : name.substr(scope + 2);
}

std::ostream& detail::print(std::ostream& out, const Module& module, std::string_view class_name) {
  return out << module.repr(class_name);
}

std::string Module::repr(std::string_view class_name) const {
  const std::string_view called = class_name_.empty() ? class_name : class_name_;
  const std::string extra = extra_repr();
  if (modules_.empty() && extra.find('\n') == std::string::npos) return fmt::format("{}({})", called, extra);
  std::string lines = extra;
  for (const auto& [name, module] : modules_)
    lines += fmt::format("{}({}): {}", lines.empty() ? "" : "\n", name, module->repr());
  std::string out = fmt::format("{}(\n  ", called);
  for (const char c : lines) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out + "\n)";
}

void Module::zero_grad() {
  for (Tensor& parameter : parameters()) parameter.set_grad({});
}

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, module] : modules_) module->train(on);
}

}  // namespace tenon::nn
