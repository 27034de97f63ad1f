// How a row of constant data becomes an operator with registrations.
#include "tenon/dispatch/builtin.h"

#include "tenon/dispatch/state.h"

namespace tenon {
namespace {

constexpr std::string_view kNamespace = "aten::";

OperatorRegistrations& declare(Dispatcher::State& state, const detail::BuiltinFamily& family, size_t index) {
  const detail::BuiltinOperator& row = family.operators[index];
  OperatorEntry& entry = family.entries[index];
  auto owned = std::make_unique<OperatorRegistrations>();
  OperatorRegistrations& op = *owned;
  op.name = entry.name;
  op.overload = entry.overload;
  op.entries.push_back(&entry);
  op.builtin_schema = family.schemas + row.schema;
  op.definition = state.next_id++;
  op.defined_at = {family.file, row.line};
  state.owners[op.definition] = &op;
  const auto kernels = family.kernels.subspan(row.first_kernel, row.num_kernels);
  op.kernels.reserve(kernels.size());
  // Newest first, as for everybody else's.
  for (size_t i = kernels.size(); i-- > 0;) {
    const detail::BuiltinKernel& k = kernels[i];
    const detail::BuiltinCode& code = *family.codes[k.code];
    Kernel kernel = code.kernel;
    kernel.data = k.data;
    const uint64_t id = state.next_id++;
    op.kernels.push_back({id, k.key, CppFunction::from_parts(kernel, code.types).serving(family.probe_of(k)),
                          op.defined_at, kernel, nullptr});
    state.owners[id] = &op;
  }
  state.operators[op.full_name()] = std::move(owned);
  entry.registrations = &op;
  return op;
}

}  // namespace

const schema::FunctionSchema* OperatorRegistrations::declared_schema() {
  const auto* known = schema.load(std::memory_order_acquire);
  if (known || !builtin_schema || !definition) return known;
  schemas.push_back(std::make_unique<const schema::FunctionSchema>(schema::parse_schema(builtin_schema)));
  schema.store(schemas.back().get(), std::memory_order_release);
  return schemas.back().get();
}

OperatorRegistrations* Dispatcher::State::find_builtin(std::string_view name, std::string_view overload) {
  if (!name.starts_with(kNamespace)) return nullptr;
  for (const detail::BuiltinFamily* family : builtin) {
    for (size_t i = 0; i < family->entries.size(); ++i) {
      const OperatorEntry& entry = family->entries[i];
      if (entry.name != name || entry.overload != overload) continue;
      OperatorRegistrations* known = entry.registrations;
      return known ? known : &declare(*this, *family, i);
    }
  }
  return nullptr;
}

OperatorRegistrations* Dispatcher::State::of(const OperatorEntry& entry) {
  if (OperatorRegistrations* known = entry.registrations) return known;
  for (const detail::BuiltinFamily* family : builtin) {
    const OperatorEntry* first = family->entries.data();
    if (!std::less()(&entry, first) && std::less()(&entry, first + family->entries.size()))
      return &declare(*this, *family, static_cast<size_t>(&entry - first));
  }
  return nullptr;
}

void Dispatcher::State::declare_all() {
  for (const detail::BuiltinFamily* family : builtin) {
    for (const OperatorEntry& entry : family->entries) of(entry);
  }
}

void detail::register_builtin(std::span<const BuiltinFamily* const> families) {
  Dispatcher::State& state = Dispatcher::singleton().state();
  const std::lock_guard lock(state.mutex);
  state.builtin = families;
}

}  // namespace tenon
