#include "tenon/plugin/registrar.h"

#include "tenon/dispatch/dispatcher.h"
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

}  // namespace

void Registrations::commit(const TenonRegistrar& wanted, const PluginDevice& device) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  // Lives as long as the process, as the device does.
  backend_ = device.backend();
  const SourceLocation whole{device.path().c_str(), 0};
  try {
    for (const std::string& text : wanted.schemas) {
      schema::FunctionSchema schema = schema::parse_schema(text);
      // Another instance, or a copy of the file, has declared it already.
      const auto known = dispatcher.find_op(schema.ns + "::" + schema.name, schema.overload);
      if (known && known->schema() == schema) continue;
      ids_.push_back(dispatcher.define(std::move(schema), whole));
    }
    for (const auto& k : wanted.kernels) {
      const size_t dot = k.op.find('.', k.op.find("::") + 2);
      const std::string name = k.op.substr(0, dot),
                        overload = dot == std::string::npos ? "" : k.op.substr(dot + 1);
      ids_.push_back(dispatcher.implement(name, overload, key_of(k.key, device),
                                          kernel_of(device, k.kernel, k.data), {k.file, k.line}));
    }
    for (const auto& s : wanted.stubs) {
      set_stub(s.name, device, s.kernel, s.data);
      stubs_.push_back(s.name);
    }
  } catch (...) {
    clear();
    throw;
  }
}

void Registrations::clear() noexcept {
  for (const std::string& stub : stubs_) remove_stub(stub, backend_);
  stubs_.clear();
  while (!ids_.empty()) {
    Dispatcher::singleton().remove(ids_.back());
    ids_.pop_back();
  }
}

}  // namespace tenon::plugin
