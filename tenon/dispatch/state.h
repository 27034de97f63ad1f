// Dispatcher::State: the dispatcher's data: operators, their kernels with the newest first, fallbacks, blocks
// to commit. Used by the files of this folder only. Calls do not read it; see operator.h.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tenon/dispatch/builtin.h"
#include "tenon/dispatch/closure.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/library.h"

namespace tenon {

/// See changes.h.
inline constinit std::atomic<uint64_t> g_changed_registrations{0};

struct KernelRecord {
  uint64_t id = 0;
  DispatchKey key;
  CppFunction function;
  SourceLocation where;
  Kernel kernel;  ///< What tables hold: `function`'s own, or an entry that goes through `slot`.
  std::shared_ptr<detail::ClosureSlot> slot;
};

/// Everything that is registered for one operator name.
struct OperatorRegistrations {
  std::string name, overload;
  /// The operator's entries: usually one; two if a generated entry was adopted when the name was already
  /// known.
  std::vector<OperatorEntry*> entries;
  /// The text of a built-in operator's schema, which is parsed when it is first needed.
  const char* builtin_schema = nullptr;
  /// Null if there is none or it was not needed yet. Replaced schemas are kept, because handles return
  /// references to them.
  std::atomic<const schema::FunctionSchema*> schema{nullptr};
  std::vector<std::unique_ptr<const schema::FunctionSchema>> schemas;
  uint64_t definition = 0;
  bool listed = true;
  SourceLocation defined_at;
  std::vector<KernelRecord> kernels;  ///< Newest first.
  /// The last computed table; it is published again if the next computation gives the same.
  OperatorTable* computed = nullptr;
  bool computed_is_current = false;

  std::string full_name() const { return overload.empty() ? name : name + "." + overload; }
  bool declared() const noexcept { return definition != 0; }
  /// Whether calls may wait that were recorded with these registrations.
  bool may_wait() const noexcept {
    return std::ranges::any_of(
        entries, [](const auto* e) { return e->record_info.load(std::memory_order_acquire) != nullptr; });
  }
  /// The schema, or null if the operator is not declared. The dispatcher's mutex is held.
  const schema::FunctionSchema* declared_schema();
  /// Makes the next call compute the table.
  void invalidate() noexcept {
    computed_is_current = false;
    for (OperatorEntry* entry : entries) {
      entry->table.store(&detail::kNoTable, std::memory_order_release);
      entry->record_info.store(nullptr, std::memory_order_release);
      entry->record_scale.store(0, std::memory_order_release);
    }
  }
  /// Invalidates it, as its registrations have changed.
  void change() noexcept {
    invalidate();
    if (computed) ++g_changed_registrations;
  }
};

struct Dispatcher::State {
  /// Guards the members below. Held for bookkeeping only: no foreign kernel, block or destructor runs while
  /// it is held, nor does anything that takes the loader's lock.
  std::recursive_mutex mutex;
  std::unordered_map<std::string, std::unique_ptr<OperatorRegistrations>> operators;
  /// The operator that a registration's id belongs to; null for a fallback.
  std::unordered_map<uint64_t, OperatorRegistrations*> owners;
  std::vector<KernelRecord> fallbacks;                         ///< Newest first.
  std::unordered_map<std::string, SourceLocation> namespaces;  ///< With their Def blocks.
  uint64_t next_id = 1;
  /// What published tables may still refer to: earlier tables and emptied closure slots.
  std::vector<std::shared_ptr<const void>> kept;

  /// Held while blocks are committed, taken before `mutex`. Recursive: a block may load a library.
  std::recursive_mutex commit_mutex;
  /// The thread that commits blocks.
  std::atomic<std::thread::id> committer{};
  struct CommitLock {
    explicit CommitLock(State& state)
        : state(state),
          lock(state.commit_mutex),
          outer(state.committer.exchange(std::this_thread::get_id())) {}
    ~CommitLock() { state.committer = outer; }
    State& state;
    std::lock_guard<std::recursive_mutex> lock;
    std::thread::id outer;
  };

  std::span<const detail::BuiltinFamily* const> builtin;  ///< `operators` has those that were asked for.

  OperatorRegistrations* find(std::string_view name, std::string_view overload);
  /// A built-in operator; null where there is none of that name.
  OperatorRegistrations* find_builtin(std::string_view name, std::string_view overload);
  /// The registrations of an entry; null if it belongs to no operator.
  OperatorRegistrations* of(const OperatorEntry& entry);
  /// Adds all built-in operators to `operators`.
  void declare_all();
  /// Whether calls may wait that a change of an operator's registrations, or of the one with that id, would
  /// reach. They are computed before, without the mutex.
  bool may_wait(std::string_view name, std::string_view overload);
  bool may_wait(uint64_t id);
  OperatorRegistrations& find_or_create(std::string_view name, std::string_view overload);
  void invalidate_all() noexcept {
    for (auto& [name, registrations] : operators) registrations->invalidate();
  }
  void change_all() noexcept {
    for (auto& [name, registrations] : operators) registrations->change();
  }
};

/// A cell of a table, computed from the registrations.
struct ComputedCell {
  CellSource source = CellSource::Missing;
  /// Null for a missing or fallthrough cell, save the one that `underived_kernel` is for.
  const Kernel* kernel = nullptr;
  SourceLocation where;
};
/// The rules by which registrations become a table. The dispatcher's mutex is held.
ComputedCell compute_cell(const Dispatcher::State& state, OperatorRegistrations& op, DispatchKey key);

namespace detail {
/// Bit i: the operator writes argument i.
uint64_t written_arguments(const schema::FunctionSchema* schema);
}  // namespace detail

/// "file.cc:12".
std::string to_string(SourceLocation where);
/// Up to three of `names` that are spelled almost like `name`: "; did you mean 'a' or 'b'?", or nothing.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

}  // namespace tenon
