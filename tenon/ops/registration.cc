#include "tenon/ops/registration.h"

#include "tenon/schema/schema.h"

namespace tenon::detail {

bool stubs_serve(const void* data, Backend backend) noexcept {
  if (backend == kMetaBackend) return true;
  const auto* stub = static_cast<const StubBase* const*>(data);
  while (*stub && (*stub)->has(backend)) ++stub;
  return *stub == nullptr;
}

void register_builtin(std::span<const BuiltinOperator> operators, std::span<OperatorEntry> entries,
                      std::span<const std::span<const BuiltinKernel>* const> kernels) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  for (size_t i = 0; i < operators.size(); ++i) {
    const BuiltinOperator& op = operators[i];
    dispatcher.adopt(entries[i]);
    dispatcher.define(schema::parse_schema(op.schema), {op.file, op.line});
  }
  for (const auto* part : kernels) {
    for (const BuiltinKernel& k : *part) {
      const OperatorEntry& entry = entries[k.op];
      dispatcher.implement(entry.name, entry.overload, k.key, k.make(k.data).serving(k.probe),
                           {operators[k.op].file, operators[k.op].line});
    }
  }
}

}  // namespace tenon::detail
