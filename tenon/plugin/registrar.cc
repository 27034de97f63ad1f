#include "tenon/plugin/registrar.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tenon/dispatch/builtin.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/stub.h"
#include "tenon/plugin/call.h"

namespace tenon::plugin {
namespace {

/// A key as the plug-in spells it: PrivateUse1 is its own device.
DispatchKey key_of(std::string key, const PluginDevice& device) {
  constexpr std::string_view kOwn = "PrivateUse1";
  if (key.empty()) return kCompositeImplicit;
  if (const size_t at = key.find(kOwn); at != std::string::npos)
    key.replace(at, kOwn.size(), backend_key(device.backend()));
  return key_parse(key);
}

/// Texts that live as long as the process: the library that they come from may go.
const char* kept_text(const char* text) {
  static std::mutex mutex;
  static auto& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

/// The operators that plug-ins have declared, each for all instances and copies that do: it goes with the
/// last of them. Under the lock of loading.
struct Declaration {
  uint64_t id = 0;
  int users = 0;
};
std::map<std::string, Declaration>& declarations() {
  static auto& all = *new std::map<std::string, Declaration>;
  return all;
}

/// Throws for what a policy of host copies names and there is not: a misspelt name would change nothing.
void check_fallbacks(const TenonRegistrar& wanted) {
  if (wanted.fallbacks.empty()) return;
  const std::vector<std::string> operators = Dispatcher::singleton().operator_names(Dispatcher::Listed::No);
  for (const auto& [entry, on] : wanted.fallbacks) {
    const bool known = std::ranges::any_of(operators, [&](std::string_view op) {
      return op.starts_with(entry) && (op.size() == entry.size() || op[entry.size()] == '.');
    });
    if (known) continue;
    // Parts of operators are named as well.
    const bool is_part = std::ranges::any_of(StubBase::all(), [&](const StubBase* stub) {
      return entry == fmt::format("{}::{}", detail::kBuiltinNamespace, stub->name());
    });
    if (is_part) continue;
    throw_error(ErrorKind::Value, fmt::format("register_fallback: there is no operator '{}'", entry));
  }
}

using Types = std::vector<std::string>;

/// A type as it is compared: without aliases and names, and with one spelling for what is one type in C++.
std::string type_in(std::string_view text) {
  const detail::StubType t = detail::parse_stub_type(text);
  return fmt::format("{}{}{}", t.base, t.list ? "[]" : "", t.optional ? "?" : "");
}

/// The types in "(Tensor self, int dim)", or in "Tensor".
Types types_in(std::string_view list) {
  list = detail::trimmed(list);
  if (list.starts_with('(') && list.ends_with(')')) list = list.substr(1, list.size() - 2);
  Types types;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    types.push_back(type_in(list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return types;
}

/// Throws unless a typed kernel takes and returns what its operator's schema says.
void check_types(const schema::FunctionSchema& schema, const TenonRegistrar::Kernel& kernel) {
  if (kernel.signature.empty()) return;
  const auto promised = [](const auto& values) {
    Types types;
    for (const auto& value : values) types.push_back(type_in(schema::to_string(value.type)));
    return types;
  };
  const std::string_view text = kernel.signature;
  const size_t arrow = text.rfind("->");
  TENON_CHECK(arrow != std::string_view::npos, Value,
              fmt::format("register_kernel: '{}' is no signature of a kernel of {} (at {}:{})", text,
                          kernel.op, kernel.file, kernel.line));
  TENON_CHECK(types_in(text.substr(0, arrow)) == promised(schema.arguments) &&
                  types_in(text.substr(arrow + 2)) == promised(schema.returns),
              Type,
              fmt::format("register_kernel: the kernel of {} at {}:{} is a function `{}`, and the operator's "
                          "schema is `{}`",
                          schema.full_name(), kernel.file, kernel.line, text, schema::to_string(schema)));
}

}  // namespace

void Registrations::declare(const std::string& text, Tags tags, const SourceLocation& where) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  schema::FunctionSchema schema = schema::parse_schema(text);
  const std::string name = schema.full_name();
  const auto ours = declarations().find(name);
  const auto known = dispatcher.find_op(schema.ns + "::" + schema.name, schema.overload);
  if (known && known->schema() == schema) {
    if (ours == declarations().end()) return;  // a library's, which stays
    ++ours->second.users;
  } else {
    const uint64_t id = dispatcher.define(std::move(schema), where, Dispatcher::Listed::Yes, tags);
    declarations()[name] = {id, 1};
  }
  declared_.push_back(name);
}

void Registrations::commit(const TenonRegistrar& wanted, const PluginDevice& device) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  // Lives as long as the process, as the device does.
  backend_ = device.backend();
  const SourceLocation whole{device.path().c_str(), 0};
  try {
    for (const auto& [text, tags] : wanted.operators) declare(text, tags, whole);
    check_fallbacks(wanted);
    std::map<std::pair<std::string, std::string>, const TenonRegistrar::Kernel*> kernels;
    for (const auto& k : wanted.kernels) {
      const auto [first, is_first] = kernels.emplace(std::pair(k.op, k.key), &k);
      TENON_CHECK(is_first, Value,
                  fmt::format("register_kernel: '{}' has two kernels for the key {}, at {}:{} and {}:{}",
                              k.op, k.key, first->second->file, first->second->line, k.file, k.line));
      const size_t dot = k.op.find('.', k.op.find("::") + 2);
      const std::string name = k.op.substr(0, dot),
                        overload = dot == std::string::npos ? "" : k.op.substr(dot + 1);
      const OperatorHandle op =
          dispatcher.find_schema_or_throw(name, overload);  // of none, it would never run
      check_types(op.schema(), k);
      ids_.push_back(dispatcher.implement(name, overload, key_of(k.key, device),
                                          kernel_of(device, k.kernel, k.data), {kept_text(k.file), k.line}));
    }
    for (const auto& s : wanted.stubs) {
      TENON_CHECK(std::ranges::find(stubs_, s.name) == stubs_.end(), Value,
                  fmt::format("register_stub: the stub '{}' has two functions", s.name));
      set_stub(s.name, s.signature, device, s.kernel, s.data);
      stubs_.push_back(s.name);
    }
  } catch (...) {
    clear();
    throw;
  }
}

void Registrations::clear() noexcept {
  for (const std::string& stub : stubs_) remove_stub(stub, backend_);
  stubs_ = {};
  while (!ids_.empty()) {
    Dispatcher::singleton().remove(ids_.back());
    ids_.pop_back();
  }
  ids_.shrink_to_fit();  // what is left of the device lives as long as the process
  for (const std::string& name : declared_) {
    const auto declaration = declarations().find(name);
    if (--declaration->second.users > 0) continue;
    Dispatcher::singleton().remove(declaration->second.id);
    declarations().erase(declaration);
  }
  declared_ = {};
}

}  // namespace tenon::plugin
