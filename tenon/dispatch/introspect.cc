// Introspection of the dispatcher, and the error for a missing kernel.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "tenon/core/device.h"
#include "tenon/core/error.h"
#include "tenon/dispatch/state.h"
#include "tenon/schema/edit_distance.h"

namespace tenon {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

/// The registrations of a handle; the dispatcher's mutex is held.
OperatorRegistrations& registrations_of(OperatorHandle op) {
  OperatorRegistrations* const found = Dispatcher::singleton().state().of(op.entry());
  TENON_CHECK(found, NotImplemented, fmt::format("Operator '{}' has no declaration", op.full_name()));
  return *found;
}

/// Every runtime key of a table, as people read it: dense first, backend by backend, then rising.
std::vector<DispatchKey> table_keys() {
  std::vector<Backend> backends;
  for (Backend b = 0; b < live_backends(); ++b) {
    if (!backend_key(b).empty()) backends.push_back(b);  // not one that was given back
  }
  backends.push_back(kMetaBackend);
  std::vector<DispatchKey> keys;
  for (int i = 0; i < kNumFunctionalities; ++i) {
    const auto f = static_cast<Functionality>(i);
    if (!is_per_backend(f)) {
      keys.emplace_back(f);
      continue;
    }
    for (const Backend b : backends) keys.emplace_back(f, b);
  }
  return keys;
}

/// "CPU, Meta": the keys that an operator has kernels for, aliases last. Instead of CompositeDense, the
/// backends that it serves.
std::string kernels_exist_for(const OperatorRegistrations& op) {
  std::vector<std::string> keys, aliases;
  for (const KernelRecord& r : op.kernels) {
    if (r.function.is_fallthrough() || r.function.is_not_implemented()) continue;
    // Nor does what records calls.
    if (r.key.functionality == Functionality::Record) continue;
    if (r.key != kCompositeDense) {
      (is_alias_key(r.key) ? aliases : keys).push_back(key_name(r.key));
      continue;
    }
    for (const DispatchKey key : table_keys()) {
      const bool dense = is_per_backend(key.functionality) && key.functionality == Functionality::Dense;
      if (dense && r.function.serves(key.backend)) keys.push_back(key_name(key));
    }
  }
  // What is registered for Autograd alone computes nothing.
  if (!keys.empty()) std::erase(aliases, key_name(kAutogradAlias));
  std::string text;
  for (auto* names : {&keys, &aliases}) {
    std::sort(names->begin(), names->end());
    names->erase(std::unique(names->begin(), names->end()), names->end());
    for (const std::string& each : *names) text += (text.empty() ? "" : ", ") + each;
  }
  return text.empty() ? "no kernels exist" : "kernels exist for: " + text;
}

}  // namespace

std::string to_string(SourceLocation where) {
  return *where.file ? fmt::format("{}:{}", where.file, where.line) : "<unknown>";
}

std::string_view name(CellSource source) noexcept {
  switch (source) {
    case CellSource::Missing:
      return "missing";
    case CellSource::Kernel:
      return "kernel";
    case CellSource::CompositeExplicit:
      return "default backend kernel";
    case CellSource::CompositeImplicit:
      return "composite kernel";
    case CellSource::Fallback:
      return "fallback";
    case CellSource::Fallthrough:
      return "fallthrough";
  }
  return "";
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  const size_t allowed = std::max<size_t>(1, name.size() / 5);
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const std::string& candidate : names) {
    if (candidate.starts_with(name) && !name.ends_with("::") && candidate[name.size()] == '.') {
      near.emplace_back(0, candidate);  // an overload of this very name
      continue;
    }
    const size_t longer = std::max(candidate.size(), name.size());
    if (longer - std::min(candidate.size(), name.size()) > allowed) continue;
    const size_t distance = schema::edit_distance(name, candidate);
    if (distance <= allowed) near.emplace_back(distance, candidate);
  }
  if (near.empty()) return "";
  std::sort(near.begin(), near.end());
  if (near.size() > 3) near.resize(3);
  std::string text = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    if (i) text += i + 1 == near.size() ? " or " : ", ";
    text += fmt::format("'{}'", near[i].second);
  }
  return text + "?";
}

void detail::missing_kernel(const OperatorEntry& entry, DispatchKeySet keys) {
  Dispatcher::State& state = Dispatcher::singleton().state();
  const Lock lock(state.mutex);
  const std::string full = entry.full_name();
  const OperatorRegistrations* const registrations = state.of(entry);
  TENON_CHECK(registrations, NotImplemented, fmt::format("Operator '{}' has no declaration", full));
  const Functionality f = DispatchKeySet(keys.bits() & compute_column(entry, keys).mask).functionality();
  std::string what = f == Functionality::Dense
                         ? fmt::format("device {}", backend_name(keys.backend()))
                         : fmt::format("key {}", key_name(DispatchKey(f, keys.backend())));
  const bool has_layout =
      registrations->builtin_schema && std::strstr(registrations->builtin_schema, "Layout");
  if (f != Functionality::Dense && has_layout)
    what += ", as a non strided layout asks for: Non strided layout not supported";
  if (backend_name(keys.backend()).empty()) {
    const std::string unloaded = to_string(Device(keys.backend()));
    what = unloaded.empty() ? fmt::format("backend {}, which nobody registered", keys.backend())
                            : fmt::format("device {}", unloaded);
  }
  throw_error(ErrorKind::NotImplemented,
              fmt::format("Operator '{}' is not implemented for {}; {} (see `tenon table {}`)", full, what,
                          kernels_exist_for(*registrations), full));
}

bool Dispatcher::has_kernel(OperatorHandle op) {
  commit_pending();
  const Lock lock(state_->mutex);
  return !registrations_of(op).kernels.empty();
}

bool Dispatcher::has_kernel(OperatorHandle op, DispatchKey key) {
  commit_pending();
  const Lock lock(state_->mutex);
  const auto& kernels = registrations_of(op).kernels;
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelRecord& r) { return r.key == key; });
}

bool Dispatcher::has_kernel_for_key(OperatorHandle op, DispatchKey key) {
  return computed_cell(op, key).source != CellSource::Missing && !is_fallthrough(op, key);
}

bool Dispatcher::runs_builtin_code(OperatorHandle op) {
  commit_pending();
  const Lock lock(state_->mutex);
  const OperatorRegistrations& known = registrations_of(op);
  if (!known.listed) return true;
  const DispatchKey dense(Functionality::Dense, kCpuBackend);
  return known.builtin_schema && std::ranges::none_of(known.kernels, [&](const KernelRecord& r) {
           const bool serves = r.key == dense || r.key == kCompositeDense || r.key == kCompositeExplicit ||
                               r.key == kCompositeImplicit;
           return serves && !std::string_view(r.where.file).ends_with(".yaml");
         });
}

bool Dispatcher::has_kernel_for_any_key(OperatorHandle op, DispatchKeySet keys) {
  commit_pending();
  const Lock lock(state_->mutex);
  const auto& kernels = registrations_of(op).kernels;
  const auto wanted = keys_of(keys);
  return std::any_of(kernels.begin(), kernels.end(), [&](const KernelRecord& r) {
    return std::find(wanted.begin(), wanted.end(), r.key) != wanted.end();
  });
}

bool Dispatcher::has_registrations(Backend backend) {
  commit_pending();
  const Lock lock(state_->mutex);
  const auto serves = [&](const KernelRecord& r) {
    return r.key.kind == DispatchKey::Kind::Runtime && is_per_backend(r.key.functionality) &&
           r.key.backend == backend;
  };
  return std::any_of(state_->fallbacks.begin(), state_->fallbacks.end(), serves) ||
         std::any_of(state_->operators.begin(), state_->operators.end(), [&](const auto& op) {
           return std::any_of(op.second->kernels.begin(), op.second->kernels.end(), serves);
         });
}

bool Dispatcher::is_fallthrough(OperatorHandle op, DispatchKey key) {
  return computed_cell(op, key).source == CellSource::Fallthrough;
}

std::vector<KernelRegistration> Dispatcher::registrations(OperatorHandle op) {
  commit_pending();
  const Lock lock(state_->mutex);
  std::vector<KernelRegistration> all;
  for (const KernelRecord& r : registrations_of(op).kernels)
    all.push_back({r.id, r.key, r.function, r.where});
  // Grouped by key; the order within a key stays newest first.
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    const auto rank = [](DispatchKey k) { return std::tuple(k.kind, k.functionality, k.backend); };
    return rank(a.key) < rank(b.key);
  });
  return all;
}

std::optional<SourceLocation> Dispatcher::defined_at(OperatorHandle op) {
  commit_pending();
  const Lock lock(state_->mutex);
  const OperatorRegistrations& r = registrations_of(op);
  return r.definition ? std::optional(r.defined_at) : std::nullopt;
}

TableCell Dispatcher::computed_cell(OperatorHandle op, DispatchKey key) {
  TENON_CHECK(!is_alias_key(key), Value,
              fmt::format("computed_cell: {} stands for several keys; name one of them", key_name(key)));
  commit_pending();
  const Lock lock(state_->mutex);
  const ComputedCell cell = compute_cell(*state_, registrations_of(op), key);
  return {key, cell.source, cell.where};
}

bool Dispatcher::has_fallback(DispatchKey key) {
  commit_pending();
  const Lock lock(state_->mutex);
  return std::any_of(state_->fallbacks.begin(), state_->fallbacks.end(), [&](const KernelRecord& r) {
    return r.key == key || (r.key == kAutogradAlias && is_included_in_alias(key, kAutogradAlias));
  });
}

std::optional<OperatorHandle> Dispatcher::find_registered(std::string_view full_name) {
  commit_pending();
  const Lock lock(state_->mutex);
  const size_t scope = full_name.find("::");
  const size_t dot = full_name.find('.', scope == full_name.npos ? 0 : scope);
  const OperatorRegistrations* op = state_->find(
      full_name.substr(0, dot), dot == full_name.npos ? std::string_view() : full_name.substr(dot + 1));
  if (!op || (!op->declared() && op->kernels.empty())) return std::nullopt;
  return OperatorHandle(*op->entries.back());
}

std::vector<OperatorHandle> Dispatcher::find_dangling_impls() {
  commit_pending();
  const Lock lock(state_->mutex);
  std::vector<OperatorHandle> found;  // built-in operators are declared
  for (const auto& [name, op] : state_->operators) {
    if (!op->declared() && !op->kernels.empty()) found.emplace_back(*op->entries.back());
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.full_name() < b.full_name(); });
  return found;
}

std::vector<std::string> Dispatcher::operators_with_kernel(DispatchKey key) {
  commit_pending();
  const Lock lock(state_->mutex);
  state_->declare_all();
  std::vector<std::string> names;
  const bool dense = !is_alias_key(key) && key.functionality == Functionality::Dense;
  for (const auto& [name, op] : state_->operators) {
    const bool has = std::any_of(op->kernels.begin(), op->kernels.end(), [&](const KernelRecord& r) {
      return r.key == key || (dense && r.key == kCompositeDense && r.function.serves(key.backend));
    });
    if (has) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<DispatchKey> Dispatcher::all_keys() { return table_keys(); }

std::vector<DispatchKey> Dispatcher::used_keys() {
  commit_pending();
  const Lock lock(state_->mutex);
  std::vector<DispatchKey> registered;
  for (const detail::BuiltinFamily* family : state_->builtin) {
    for (const detail::BuiltinKernel& k : family->kernels) registered.push_back(k.key);
  }
  for (const auto& [name, op] : state_->operators) {
    for (const KernelRecord& r : op->kernels) registered.push_back(r.key);
  }
  for (const KernelRecord& r : state_->fallbacks) registered.push_back(r.key);
  std::vector<DispatchKey> keys = table_keys();
  std::erase_if(keys, [&](DispatchKey key) {
    const bool always = key.functionality == Functionality::Dense ||
                        key.functionality == Functionality::Autograd ||
                        key.functionality == Functionality::BackendSelect;
    return !always && std::find(registered.begin(), registered.end(), key) == registered.end();
  });
  return keys;
}

std::vector<TableCell> Dispatcher::computed_table(OperatorHandle op) {
  commit_pending();
  const Lock lock(state_->mutex);
  std::vector<TableCell> cells;
  for (const DispatchKey key : table_keys()) cells.push_back(computed_cell(op, key));
  return cells;
}

std::string Dispatcher::dump_registrations(OperatorHandle op) {
  const auto all = registrations(op);
  std::string text = fmt::format("name: {}\n", op.full_name());
  if (const auto where = defined_at(op)) {
    text += fmt::format("schema: {}\ndeclared at: {}\n", schema::to_string(op.schema()), to_string(*where));
  } else {
    text += "schema: none\n";
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const KernelRegistration& r = all[i];
    const bool head = i == 0 || all[i - 1].key != r.key;
    const bool overrides = head && i + 1 < all.size() && all[i + 1].key == r.key;
    text +=
        fmt::format("{}: {}{}{}", key_name(r.key), to_string(r.where), r.function.types() ? "" : " [boxed]",
                    r.function.is_fallthrough() ? " [fallthrough]" : "");
    if (r.function.is_not_implemented()) text += " [not implemented]";
    if (overrides) text += fmt::format(" (overrides {})", to_string(all[i + 1].where));
    if (!head) text += " (inactive)";
    text += '\n';
  }
  return text;
}

std::string Dispatcher::dump_table(OperatorHandle op) {
  const std::vector<DispatchKey> used = used_keys();
  std::string text = fmt::format("table of {}\n", op.full_name()), unused;
  for (const TableCell& cell : computed_table(op)) {
    if (std::find(used.begin(), used.end(), cell.key) == used.end()) {
      unused += (unused.empty() ? "" : ", ") + key_name(cell.key);
      continue;
    }
    text += fmt::format("{}: [{}]", key_name(cell.key), name(cell.source));
    if (*cell.where.file) text += " " + to_string(cell.where);
    text += '\n';
  }
  if (!unused.empty()) text += fmt::format("nobody has registered anything for {}\n", unused);
  return text;
}

detail::ServesProbe detail::probe_of(const OperatorEntry& entry, const Kernel& kernel) {
  Dispatcher::State& state = Dispatcher::singleton().state();
  const Lock lock(state.mutex);
  const OperatorRegistrations* op = state.of(entry);
  if (!op) return {};
  for (const KernelRecord& r : op->kernels) {
    if (r.kernel.boxed == kernel.boxed && r.kernel.unboxed == kernel.unboxed && r.kernel.data == kernel.data)
      return r.function.probe();
  }
  return {};
}

}  // namespace tenon
