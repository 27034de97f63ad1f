#include "tenon/dispatch/dispatcher.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/device.h"
#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"
#include "tenon/core/recording.h"
#include "tenon/dispatch/changes.h"
#include "tenon/dispatch/state.h"

namespace tenon {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

std::string joined_name(std::string_view name, std::string_view overload) {
  std::string full(name);
  if (!overload.empty()) full.append(".").append(overload);
  return full;
}

/// Splits "ns::name.overload" before the overload.
std::pair<std::string_view, std::string_view> split_overload(std::string_view full_name) {
  const size_t scope = full_name.find("::");
  const size_t dot = full_name.find('.', scope == std::string_view::npos ? 0 : scope);
  if (dot == std::string_view::npos) return {full_name, {}};
  return {full_name.substr(0, dot), full_name.substr(dot + 1)};
}

KernelRecord make_record(uint64_t id, DispatchKey key, CppFunction f, SourceLocation where) {
  KernelRecord record{id, key, std::move(f), where, {}, nullptr};
  record.kernel = record.function.kernel();
  if (record.function.closure()) {
    record.slot = std::make_shared<detail::ClosureSlot>();
    record.slot->closure = record.function.closure();
    record.slot->entry = record.kernel.boxed;
    record.kernel = {nullptr, &detail::call_closure, record.slot.get()};
  }
  return record;
}

/// "(Tensor, int) -> Tensor"
std::string signature_text(const detail::SignatureTypes& types) {
  const auto list = [](const std::vector<detail::SignatureTypes::Value>& values) {
    std::string text;
    for (const auto& v : values) text += (text.empty() ? "" : ", ") + schema::to_string(v.type);
    return text;
  };
  const bool one = types.returns.size() == 1;
  return fmt::format("({}) -> {}{}{}", list(types.arguments), one ? "" : "(", list(types.returns),
                     one ? "" : ")");
}

void check_kernel(const schema::FunctionSchema& schema, const CppFunction& f, SourceLocation where) {
  if (!f.types()) return;
  try {
    check_signature(schema, f.types()());
  } catch (const Error& e) {
    throw_error(e.kind(),
                fmt::format("{} (kernel `{}` registered at {}; schema `{}`)", e.what(),
                            signature_text(f.types()()), to_string(where), schema::to_string(schema)));
  }
}

void check_written(const schema::FunctionSchema& schema, SourceLocation where) {
  for (size_t i = 64; i < schema.arguments.size(); ++i) {
    TENON_CHECK(
        !schema.arguments[i].is_write(), Value,
        fmt::format("define: '{}' writes its argument {}, `{}`; only the first 64 can be written (at {})",
                    schema.full_name(), i, schema.arguments[i].name, to_string(where)));
  }
}

void check_key(DispatchKey key, std::string_view what, SourceLocation where) {
  const bool crossed = key.kind == DispatchKey::Kind::Runtime && is_per_backend(key.functionality);
  TENON_CHECK(!crossed || key.backend == kMetaBackend || key.backend < live_backends(), Value,
              fmt::format("{}: no backend has number {}, {} are registered (at {})", what, key.backend,
                          live_backends(), to_string(where)));
}

}  // namespace

uint64_t detail::written_arguments(const schema::FunctionSchema* schema) {
  uint64_t written = 0;
  for (size_t i = 0; schema && i < schema->arguments.size(); ++i) {
    if (schema->arguments[i].is_write()) written |= uint64_t{1} << i;
  }
  return written;
}

void detail::call_closure(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  auto& slot = *static_cast<ClosureSlot*>(const_cast<void*>(kernel.data));
  std::shared_ptr<ClosureBase> closure;
  {
    const std::lock_guard lock(slot.mutex);
    closure = slot.closure;
  }
  // Removed since the call read its table: the table has changed as well.
  if (!closure) return op.redispatch_boxed(keys, stack);
  slot.entry({nullptr, slot.entry, closure.get()}, op, keys, stack);
}

uint64_t num_changed_registrations() noexcept {
  return g_changed_registrations.load(std::memory_order_acquire);
}

Dispatcher& Dispatcher::singleton() {
  // Never destroyed: operators may be called from static destructors.
  static Dispatcher& dispatcher = *new Dispatcher;
  return dispatcher;
}

Dispatcher::Dispatcher() : state_(new State) {
  detail::runtime_was_set.store(
      +[] { singleton().invalidate_tables(); }, std::memory_order_release);
}

OperatorRegistrations* Dispatcher::State::find(std::string_view name, std::string_view overload) {
  const auto it = operators.find(joined_name(name, overload));
  return it != operators.end() ? it->second.get() : find_builtin(name, overload);
}

bool Dispatcher::State::may_wait(std::string_view name, std::string_view overload) {
  const Lock lock(mutex);
  const OperatorRegistrations* const op = find(name, overload);
  return op && op->may_wait();
}

bool Dispatcher::State::may_wait(uint64_t id) {
  const Lock lock(mutex);
  const auto owner = owners.find(id);
  return owner != owners.end() && (!owner->second || owner->second->may_wait());
}

OperatorRegistrations& Dispatcher::State::find_or_create(std::string_view name, std::string_view overload) {
  if (OperatorRegistrations* known = find(name, overload)) return *known;
  auto& registrations = operators[joined_name(name, overload)];
  registrations = std::make_unique<OperatorRegistrations>();
  registrations->name = name;
  registrations->overload = overload;
  auto* entry = new OperatorEntry;
  entry->name = registrations->name;
  entry->overload = registrations->overload;
  entry->registrations = registrations.get();
  registrations->entries.push_back(entry);
  return *registrations;
}

std::optional<OperatorHandle> Dispatcher::find_op(std::string_view name, std::string_view overload) {
  commit_pending();
  const Lock lock(state_->mutex);
  const OperatorRegistrations* op = state_->find(name, overload);
  if (!op || !op->declared()) return std::nullopt;
  return OperatorHandle(*op->entries.back());
}

OperatorHandle Dispatcher::find_schema_or_throw(std::string_view name, std::string_view overload) {
  if (const auto found = find_op(name, overload)) return *found;
  const std::string full = joined_name(name, overload);
  {
    const Lock lock(state_->mutex);
    if (const OperatorRegistrations* op = state_->find(name, overload); op && !op->kernels.empty()) {
      throw_error(ErrorKind::NotImplemented,
                  fmt::format("Operator '{}' has a kernel ({}) but no declaration; declare it with m.def in "
                              "TENON_LIBRARY({}, m)",
                              full, to_string(op->kernels.front().where), full.substr(0, full.find("::"))));
    }
  }
  throw_error(ErrorKind::NotImplemented,
              fmt::format("Operator '{}' does not exist{}", full, did_you_mean(full, operator_names())));
}

OperatorHandle Dispatcher::find_schema_or_throw_full(std::string_view full_name) {
  const auto [name, overload] = split_overload(full_name);
  return find_schema_or_throw(name, overload);
}

std::vector<std::string> Dispatcher::operator_names(Listed which) {
  commit_pending();
  const Lock lock(state_->mutex);
  state_->declare_all();
  std::vector<std::string> names;
  for (const auto& [name, op] : state_->operators) {
    if (op->declared() && (op->listed || which == Listed::No)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

uint64_t Dispatcher::define(schema::FunctionSchema schema, SourceLocation where, Listed listed, Tags tags) {
  TENON_CHECK(
      !schema.ns.empty() && !schema.name.empty(), Value,
      fmt::format("define: '{}' needs a namespace and a name (at {})", schema.full_name(), to_string(where)));
  check_written(schema, where);
  check_tags(tags, schema);
  commit_pending();  // an operator of Tenon's own is known by then
  auto owned = std::make_unique<const schema::FunctionSchema>(std::move(schema));
  const std::string name = owned->ns + "::" + owned->name;
  const Lock lock(state_->mutex);
  OperatorRegistrations& op = state_->find_or_create(name, owned->overload);
  TENON_CHECK(!op.definition, Value,
              fmt::format("Operator '{}' is declared twice: at {} and at {}", owned->full_name(),
                          to_string(op.defined_at), to_string(where)));
  for (const KernelRecord& record : op.kernels) check_kernel(*owned, record.function, record.where);
  const uint64_t id = state_->next_id++;
  state_->owners[id] = &op;
  // One that was declared before, by a plug-in that is loaded again say, has its schema still.
  auto known = std::ranges::find_if(op.schemas, [&](const auto& former) { return *former == *owned; });
  if (known == op.schemas.end()) known = op.schemas.insert(known, std::move(owned));
  op.schema.store(known->get(), std::memory_order_release);
  op.definition = id;
  op.listed = listed == Listed::Yes;
  op.defined_at = where;
  for (OperatorEntry* entry : op.entries) {
    entry->written = detail::written_arguments(op.schema);
    entry->traits = &traits_of(tags);
  }
  op.change();
  return id;
}

uint64_t Dispatcher::implement(std::string_view name, std::string_view overload, DispatchKey key,
                               CppFunction f, SourceLocation where) {
  const std::string full = joined_name(name, overload);
  check_key(key, full, where);
  TENON_CHECK(f.kernel().valid(), Value,
              fmt::format("{}: the kernel for {} is empty (at {})", full, key_name(key), to_string(where)));
  commit_pending();
  if (state_->may_wait(name, overload)) note_switch();
  uint64_t id = 0;
  std::string replaced;
  {
    const Lock lock(state_->mutex);
    OperatorRegistrations& op = state_->find_or_create(name, overload);
    if (const auto* schema = op.declared_schema()) check_kernel(*schema, f, where);
    const auto older =
        std::find_if(op.kernels.begin(), op.kernels.end(), [&](const auto& r) { return r.key == key; });
    if (older != op.kernels.end() && detail::dispatch_trace_enabled.load(std::memory_order_relaxed)) {
      replaced = to_string(older->where);
    }
    id = state_->next_id++;
    state_->owners[id] = &op;
    op.kernels.insert(op.kernels.begin(), make_record(id, key, std::move(f), where));
    op.change();
  }
  // Not under the lock: the sink may be anything.
  if (!replaced.empty()) {
    write_diagnostic(fmt::format("[override] op=[{}], key=[{}]: {} replaces {}", full, key_name(key),
                                 to_string(where), replaced));
  }
  return id;
}

uint64_t Dispatcher::fallback(DispatchKey key, CppFunction f, SourceLocation where) {
  check_key(key, "fallback", where);
  const bool composite = key == kCompositeImplicit || key == kCompositeExplicit || key == kCompositeDense;
  TENON_CHECK(!composite, Value,
              fmt::format("fallback: {} cannot have one, name the key that it serves (at {})", key_name(key),
                          to_string(where)));
  TENON_CHECK(
      !f.types(), Type,
      fmt::format("fallback: the kernel for {} must be boxed, since it serves every signature (at {})",
                  key_name(key), to_string(where)));
  note_switch();
  const Lock lock(state_->mutex);
  const uint64_t id = state_->next_id++;
  state_->fallbacks.insert(state_->fallbacks.begin(), make_record(id, key, std::move(f), where));
  state_->owners[id] = nullptr;
  state_->change_all();
  return id;
}

void Dispatcher::remove(uint64_t id) noexcept {
  // Closures die after the lock is released: their destructors may run anything.
  std::shared_ptr<detail::ClosureBase> dying;
  std::optional<CppFunction> dying_function;
  if (state_->may_wait(id)) note_switch();
  const Lock lock(state_->mutex);
  const auto owner = state_->owners.find(id);
  if (owner == state_->owners.end()) return;
  OperatorRegistrations* op = owner->second;
  state_->owners.erase(owner);
  if (op && op->definition == id) {
    op->definition = 0;
    op->schema.store(nullptr, std::memory_order_release);
    op->change();
    return;
  }
  auto& records = op ? op->kernels : state_->fallbacks;
  const auto record = std::find_if(records.begin(), records.end(), [&](const auto& r) { return r.id == id; });
  if (record == records.end()) return;
  dying_function = std::move(record->function);
  const std::shared_ptr<detail::ClosureSlot> slot = std::move(record->slot);
  records.erase(record);
  if (op)
    op->change();
  else
    state_->change_all();
  if (!slot) return;
  state_->kept.push_back(slot);
  const std::lock_guard slot_lock(slot->mutex);
  dying = std::move(slot->closure);
}

void Dispatcher::invalidate_tables() {
  const Lock lock(state_->mutex);
  state_->invalidate_all();
}

void Dispatcher::adopt(OperatorEntry& entry) {
  const Lock lock(state_->mutex);
  OperatorRegistrations* registrations = state_->find(entry.name, entry.overload);
  if (!registrations) {
    auto& owned = state_->operators[entry.full_name()];
    owned = std::make_unique<OperatorRegistrations>();
    owned->name = entry.name;
    owned->overload = entry.overload;
    registrations = owned.get();
  }
  auto& entries = registrations->entries;
  if (std::find(entries.begin(), entries.end(), &entry) != entries.end()) return;
  entry.registrations = registrations;
  entry.written = detail::written_arguments(registrations->declared_schema());
  if (!entries.empty()) {
    entry.mixed_devices = entries.front()->mixed_devices;
    entry.crosses_devices = entries.front()->crosses_devices;
    entry.traits = entries.front()->traits.load();
  }
  entries.push_back(&entry);
  entry.table.store(&detail::kNoTable, std::memory_order_release);
}

}  // namespace tenon
