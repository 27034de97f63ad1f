// Dispatcher: all operators, what is registered for each, and the tables computed from that. Used by
// registration, look-up and introspection. Calls do not use it; see operator.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/dispatch/key.h"
#include "tenon/dispatch/operator.h"
#include "tenon/dispatch/trace.h"

namespace tenon {

/// Where a registration was written. `file` points to text that lives for the whole process.
struct SourceLocation {
  const char* file = "";
  int line = 0;

  /// The location of the caller, when used as a default argument.
  static constexpr SourceLocation here(const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// One registered kernel.
struct KernelRegistration {
  uint64_t id = 0;
  DispatchKey key;
  CppFunction function;
  SourceLocation where;
};

/// How a cell of a computed table got its kernel.
enum class CellSource : uint8_t {
  Missing,
  Kernel,
  CompositeExplicit,  ///< Or CompositeDense.
  CompositeImplicit,
  Fallback,
  Fallthrough
};
std::string_view name(CellSource source) noexcept;

/// One cell of a computed table, as introspection shows it.
struct TableCell {
  DispatchKey key;
  CellSource source = CellSource::Missing;
  SourceLocation where;
};

class Dispatcher {
 public:
  static Dispatcher& singleton();

  /// Commits the TENON_LIBRARY blocks that are queued. Throws for a bad block, none of whose registrations
  /// then stay.
  void commit_pending();

  std::optional<OperatorHandle> find_op(std::string_view name, std::string_view overload = "");
  /// Throws Error{NotImplemented} for an operator that is not declared, and suggests similar names.
  OperatorHandle find_schema_or_throw(std::string_view name, std::string_view overload = "");
  /// As find_schema_or_throw, for a name written "ns::name.overload".
  OperatorHandle find_schema_or_throw_full(std::string_view full_name);
  /// Whether an operator was declared (Yes), or is derived from a declared one, as the derivative of a
  /// pointwise operator is at its first use (No).
  enum class Listed : uint8_t { No, Yes };
  /// The full names of all declared operators, sorted; with Listed::No those of derived operators too.
  std::vector<std::string> operator_names(Listed which = Listed::Yes);

  // Registration. Each function returns an id for `remove`. Keys, schemas and kernels are checked before
  // anything changes.

  uint64_t define(schema::FunctionSchema schema, SourceLocation where, Listed listed = Listed::Yes,
                  Tags tags = {});
  uint64_t implement(std::string_view name, std::string_view overload, DispatchKey key, CppFunction f,
                     SourceLocation where);
  /// Registers the kernel for `key` of every operator that has none of its own there.
  uint64_t fallback(DispatchKey key, CppFunction f, SourceLocation where);
  /// Removes a registration; the kernel that it replaced, if any, runs again.
  void remove(uint64_t id) noexcept;
  /// Has every table computed again, after a change that tables depend on, such as a stub that was filled in.
  void invalidate_tables();
  /// Gives an operator an entry that the generator made, so that calls to it need no look-up.
  void adopt(OperatorEntry& entry);

  // Introspection.

  /// Whether anything is registered for the operator.
  bool has_kernel(OperatorHandle op);
  /// Whether a kernel is registered for exactly this key; an alias does not count for the keys that it
  /// covers.
  bool has_kernel(OperatorHandle op, DispatchKey key);
  /// Whether a call that arrives at `key` finds a kernel, including composite kernels and fallbacks.
  bool has_kernel_for_key(OperatorHandle op, DispatchKey key);
  /// Whether a kernel is registered for one of the runtime keys in the set.
  bool has_kernel_for_any_key(OperatorHandle op, DispatchKeySet keys);
  /// Whether a kernel or a fallback is registered for a key of this backend.
  bool has_registrations(Backend backend);
  /// Whether calls on the host run code of this library alone: the operator, or the operation that it is the
  /// derivative of, is built in, and no user has registered a kernel for host tensors.
  bool runs_builtin_code(OperatorHandle op);
  /// Whether calls at `key` fall through to the next key.
  bool is_fallthrough(OperatorHandle op, DispatchKey key);
  /// Whether a fallback is registered for `key`, or for the alias Autograd if it covers the key.
  bool has_fallback(DispatchKey key);
  /// Registrations of an operator, newest first within each key.
  std::vector<KernelRegistration> registrations(OperatorHandle op);
  std::optional<SourceLocation> defined_at(OperatorHandle op);
  /// The computed table: a cell for each functionality and live backend.
  std::vector<TableCell> computed_table(OperatorHandle op);
  TableCell computed_cell(OperatorHandle op, DispatchKey key);
  std::string dump_registrations(OperatorHandle op);
  /// As text, without unused keys.
  std::string dump_table(OperatorHandle op);

  /// An operator that is declared, or that has a registered kernel; null for any other name.
  std::optional<OperatorHandle> find_registered(std::string_view full_name);
  /// Operators that have kernels and no declaration: a call cannot reach them. Sorted by name.
  std::vector<OperatorHandle> find_dangling_impls();
  /// Sorted names of the operators that have a kernel for `key`. One for the dense tensors of every backend
  /// counts for those that it serves; other aliases do not count for the keys that they cover.
  std::vector<std::string> operators_with_kernel(DispatchKey key);
  /// Every runtime key of a table, dense ones first.
  std::vector<DispatchKey> all_keys();
  /// Those among them that a call may arrive at: of a registered backend Dense and Autograd, BackendSelect,
  /// and keys with a registered kernel or fallback. The others have names and nothing more.
  std::vector<DispatchKey> used_keys();
  /// Throws Error{Internal}, naming what is wrong, if what is known of an operator does not agree with
  /// itself: its registrations, its schema, and the table that calls read.
  void check_invariants(OperatorHandle op);
  /// The same of all operators, and of fallbacks.
  void check_invariants();

  struct State;
  State& state() noexcept { return *state_; }

 private:
  Dispatcher();
  State* state_;
};

namespace detail {
/// Runs at Autograd for an operator with nothing registered there: with it, tenon/autograd notes that the
/// call has no derivative. Tables show the key as a fallthrough, because this kernel does nothing else.
/// Filled in before any call.
extern Kernel underived_kernel;
}  // namespace detail

}  // namespace tenon
