// Dispatcher: every operator there is, who registered what for it, and the tables that follow from that.
// Used by registration, look-up and introspection. Calls never come here; see operator.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/dispatch/key.h"
#include "tenon/dispatch/operator.h"

namespace tenon {

/// Where a registration was written. `file` points to text that lives for the whole process.
struct SourceLocation {
  const char* file = "";
  int line = 0;

  /// The caller's place, as a default argument.
  static constexpr SourceLocation here(const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) noexcept {
    return {file, line};
  }
};

/// One kernel that somebody registered.
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

/// One cell of a computed table, for people.
struct TableCell {
  DispatchKey key;
  CellSource source = CellSource::Missing;
  SourceLocation where;
};

class Dispatcher {
 public:
  static Dispatcher& singleton();

  /// Commits what TENON_LIBRARY blocks have queued. A bad block throws, and leaves nothing of itself behind.
  void commit_pending();

  std::optional<OperatorHandle> find_op(std::string_view name, std::string_view overload = "");
  /// Throws Error{NotImplemented} for an operator that nobody declared; suggests near names.
  OperatorHandle find_schema_or_throw(std::string_view name, std::string_view overload = "");
  /// By "ns::name.overload".
  OperatorHandle find_schema_or_throw_full(std::string_view full_name);
  /// Whether an operator is among those that somebody declared, or follows from one of them (the derivative
  /// of a pointwise operator, made at its first use).
  enum class Listed : uint8_t { No, Yes };
  /// Full names of all declared operators, sorted; with Listed::No also of those that follow from them.
  std::vector<std::string> operator_names(Listed which = Listed::Yes);

  // Registration; each returns an id for `remove`. Keys, schemas and kernels are checked before anything
  // changes.

  uint64_t define(schema::FunctionSchema schema, SourceLocation where, Listed listed = Listed::Yes);
  uint64_t implement(std::string_view name, std::string_view overload, DispatchKey key, CppFunction f,
                     SourceLocation where);
  /// The kernel for `key` of every operator that has none of its own.
  uint64_t fallback(DispatchKey key, CppFunction f, SourceLocation where);
  /// Takes a registration back; an older kernel for the same slot runs again.
  void remove(uint64_t id) noexcept;
  /// Has every table computed anew, because something changed which kernels ask about: a stub was filled in.
  void invalidate_tables();
  /// Gives an operator a fixed entry made by the generator, so that calls to it need no look-up.
  void adopt(OperatorEntry& entry);

  // Introspection.

  /// Whether anything is registered for it at all.
  bool has_kernel(OperatorHandle op);
  /// Whether somebody registered a kernel for exactly this key, an alias counting for itself.
  bool has_kernel(OperatorHandle op, DispatchKey key);
  /// Whether a call that arrives at `key` finds a kernel, be it a composite one or a fallback.
  bool has_kernel_for_key(OperatorHandle op, DispatchKey key);
  /// Whether somebody registered a kernel for one of the runtime keys.
  bool has_kernel_for_any_key(OperatorHandle op, DispatchKeySet keys);
  /// Whether `key` steps aside for the next one.
  bool is_fallthrough(OperatorHandle op, DispatchKey key);
  /// Registrations of an operator, newest first within each key.
  std::vector<KernelRegistration> registrations(OperatorHandle op);
  std::optional<SourceLocation> defined_at(OperatorHandle op);
  /// The computed table: a cell for each functionality and live backend.
  std::vector<TableCell> computed_table(OperatorHandle op);
  TableCell computed_cell(OperatorHandle op, DispatchKey key);
  std::string dump_registrations(OperatorHandle op);
  std::string dump_table(OperatorHandle op);

  struct State;
  State& state() noexcept { return *state_; }

 private:
  Dispatcher();
  State* state_;
};

namespace detail {
/// Runs at Autograd for an operator that nobody registered anything for there: the room autograd notes that
/// such a call has no derivative. Tables say that the key steps aside, because it does nothing else.
/// Filled in before any call.
extern Kernel underived_kernel;
}  // namespace detail

/// Switches the dispatch trace on or off; TENON_SHOW_DISPATCH_TRACE=1 does so from the start.
void set_dispatch_trace(bool on) noexcept;
/// Where diagnostics that a user switched on go; standard error unless replaced.
using DiagnosticSink = void (*)(std::string_view line);
void set_diagnostic_sink(DiagnosticSink sink) noexcept;
void write_diagnostic(std::string_view line);

}  // namespace tenon
