// What must hold between an operator's registrations, its schema and the table that calls read.
#include <fmt/core.h>

#include "tenon/core/device.h"
#include "tenon/core/error.h"
#include "tenon/dispatch/state.h"

namespace tenon {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

void require(bool holds, const OperatorRegistrations& op, std::string_view what) {
  TENON_CHECK(holds, Internal, fmt::format("check_invariants: {}: {}", op.full_name(), what));
}

void check_kernels(const Dispatcher::State& state, OperatorRegistrations& op) {
  const schema::FunctionSchema* const schema = op.declared_schema();
  for (size_t i = 0; i < op.kernels.size(); ++i) {
    const KernelRecord& r = op.kernels[i];
    const std::string what = fmt::format("the kernel for {} ({})", key_name(r.key), to_string(r.where));
    const auto owner = state.owners.find(r.id);
    require(owner != state.owners.end() && owner->second == &op, op, what + " cannot be removed by its id");
    require(r.kernel.valid(), op, what + " is empty");
    require(!r.slot || r.slot->closure == r.function.closure(), op, what + " has another's closure");
    for (size_t j = i + 1; j < op.kernels.size(); ++j) {
      require(op.kernels[j].key != r.key || op.kernels[j].id < r.id, op, what + " hides a newer one");
    }
    if (schema && r.function.types()) check_signature(*schema, r.function.types()());
  }
}

void check_declaration(const Dispatcher::State& state, OperatorRegistrations& op) {
  if (!op.declared()) {
    require(!op.schema.load(), op, "it has a schema and no declaration");
    return;
  }
  const auto owner = state.owners.find(op.definition);
  require(owner != state.owners.end() && owner->second == &op, op, "its declaration cannot be removed");
  const schema::FunctionSchema* const schema = op.declared_schema();
  require(schema && schema->full_name() == op.full_name(), op, "its schema has another name");
  for (const OperatorEntry* entry : op.entries) {
    // A built-in entry that was not called yet learns it from its first call.
    const uint64_t written = entry->written;
    require(written == detail::written_arguments(schema) || op.builtin_schema, op,
            "calls count other written arguments than its schema has");
  }
}

bool same(const Kernel& a, const Kernel* b) {
  const Kernel none{};
  const Kernel& other = b ? *b : none;
  return a.unboxed == other.unboxed && a.boxed == other.boxed && a.data == other.data;
}

/// Whether a column of the published table is what the registrations give now.
void check_column(const Dispatcher::State& state, OperatorRegistrations& op, Backend backend,
                  const OperatorTable& column) {
  for (int i = 0; i < kNumFunctionalities; ++i) {
    const auto f = static_cast<Functionality>(i);
    const DispatchKey key = is_per_backend(f) ? DispatchKey(f, backend) : DispatchKey(f);
    const ComputedCell cell = compute_cell(state, op, key);
    const bool stops = cell.source != CellSource::Fallthrough || cell.kernel;
    require(stops == ((column.mask & DispatchKeySet(f).bits()) != 0) && same(column.slots[i], cell.kernel),
            op, fmt::format("calls find another kernel for {} than is registered", key_name(key)));
  }
}

void check_table(const Dispatcher::State& state, OperatorRegistrations& op) {
  for (const OperatorEntry* entry : op.entries) {
    const OperatorRegistrations* const known = entry->registrations;
    require(!known || known == &op, op, "an entry belongs to another operator");
    const OperatorTable* const table = entry->table;
    if (table == &detail::kNoTable) continue;
    require(table == op.computed && op.computed_is_current, op, "calls read an old table");
    check_column(state, op, kMetaBackend, table[-1]);
    for (int b = 0; b < table->backends; ++b) check_column(state, op, static_cast<Backend>(b), table[b]);
  }
}

void check(const Dispatcher::State& state, OperatorRegistrations& op) {
  check_declaration(state, op);
  check_kernels(state, op);
  check_table(state, op);
}

}  // namespace

void Dispatcher::check_invariants(OperatorHandle op) {
  commit_pending();
  const Lock lock(state_->mutex);
  if (OperatorRegistrations* found = state_->of(op.entry())) check(*state_, *found);
}

void Dispatcher::check_invariants() {
  commit_pending();
  const Lock lock(state_->mutex);
  state_->declare_all();
  for (const auto& [name, op] : state_->operators) {
    require(name == op->full_name(), *op, fmt::format("it is known as {}", name));
    check(*state_, *op);
  }
  for (const KernelRecord& r : state_->fallbacks) {
    const auto owner = state_->owners.find(r.id);
    TENON_CHECK(
        owner != state_->owners.end() && !owner->second && !r.function.types(), Internal,
        fmt::format("check_invariants: the fallback for {} ({}) is no boxed kernel, or cannot be removed",
                    key_name(r.key), to_string(r.where)));
  }
}

}  // namespace tenon
