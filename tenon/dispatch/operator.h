// Operator: the path of a call. A call unites the keys of its arguments, picks a slot of the operator's
// table, and jumps. It takes no lock and allocates nothing. Used by generated operator functions and by
// callers that look an operator up. Tables are computed in tables.cc.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tenon/core/thread_state.h"
#include "tenon/dispatch/kernel.h"
#include "tenon/dispatch/traits.h"
#include "tenon/dispatch/writes.h"

namespace tenon {

/// One column of a table: the kernels of every functionality on one backend. A table is an array of columns
/// with a pointer to cpu's: backend b is b columns further on, and meta, the highest, comes just before cpu.
/// What a call on the CPU needs is in one cache line. A published table is never changed and never freed.
struct alignas(64) OperatorTable {
  uint64_t mask = 0;     ///< The keys whose slot is no fallthrough.
  int32_t backends = 0;  ///< How many columns there are, meta not counted; -1 in kNoTable.
  Kernel slots[kNumFunctionalities];

  /// The index of the column for a key set's backend; -1 for meta.
  static int32_t column_index(DispatchKeySet keys) noexcept { return ((keys.backend() + 1) & 31) - 1; }
  const Kernel& lookup(DispatchKeySet keys) const noexcept {
    return slots[static_cast<uint32_t>(DispatchKeySet(keys.bits() & mask).functionality())];
  }
};

struct OperatorRegistrations;

namespace detail {
/// The table of an operator before its first call, after a registration has changed, and while the trace is
/// on. It has no kernels, so that a call computes the table or prints the trace.
extern const OperatorTable kNoTable;
}  // namespace detail

/// An operator as calls see it: its name, its registrations and its current table. Lives as long as the
/// process.
struct OperatorEntry {
  std::string_view name;      ///< "aten::add"; points to text that lives for the whole process
  std::string_view overload;  ///< "Tensor"
  std::atomic<const OperatorTable*> table{&detail::kNoTable};
  /// Of a built-in operator, null until they are first needed.
  std::atomic<OperatorRegistrations*> registrations{nullptr};
  /// Bit i: the operator writes argument i, a tensor or a list of them.
  std::atomic<uint64_t> written{0};
  /// Of a built-in operator: its tensors may be on the host and on one device; on several devices, too.
  bool mixed_devices = false, crosses_devices = false;
  /// How many entries from this one its other forms are; 0 where there is none. See `functional` and `out`.
  int8_t to_functional = 0, to_out = 0;
  /// Null for none. Of an operator of a user they change with its declaration.
  std::atomic<const OperatorTraits*> traits{nullptr};
  /// What tenon/record knows of the operator; null until it is recorded, and whenever a registration changes.
  std::atomic<const void*> record_info{nullptr};
  /// How many times as many elements as a loop's a call may have to pass the recorder; 0 until that is known.
  std::atomic<uint8_t> record_scale{0};

  /// Of a built-in operator that writes its result: the form that gives a new tensor. Null for others.
  OperatorEntry* functional() noexcept { return to_functional != 0 ? this + to_functional : nullptr; }
  /// Of a built-in operator that gives new tensors: the form that writes them to `out` arguments after the
  /// same others. Null where there is none.
  OperatorEntry* out() noexcept { return to_out != 0 ? this + to_out : nullptr; }

  std::string full_name() const {
    std::string text(name);
    if (!overload.empty()) text.append(".").append(overload);
    return text;
  }
};

namespace detail {

extern std::atomic<bool> dispatch_trace_enabled;

/// The column for keys of other backends than cpu; kNoTable where the table does not have it.
const OperatorTable& column_of_device(const OperatorTable* table, DispatchKeySet keys) noexcept;
/// The column for `keys`, computed first if necessary; commits waiting registrations. Throws what a bad
/// registration throws, and Error{Device} for keys of two accelerators.
const OperatorTable& compute_column(const OperatorEntry& entry, DispatchKeySet keys);
/// The kernel for `keys` when the table has no unboxed one: the kernel may be boxed only, or the table not
/// computed yet. Throws as compute_column and missing_kernel do.
const Kernel& find_kernel(const OperatorEntry& entry, DispatchKeySet keys);
/// The probe that a kernel of the operator's table was registered with; none for fallbacks and for kernels
/// that serve every backend. It tells built-in kernels of one kind from others.
ServesProbe probe_of(const OperatorEntry& entry, const Kernel& kernel);
/// Throws an Error{NotImplemented} that names the operator, the key, and the keys that do have a kernel.
[[noreturn]] void missing_kernel(const OperatorEntry& entry, DispatchKeySet keys);

/// What the trace sees of one argument.
struct TracedArgument {
  DispatchKeySet keys;
  std::span<const Tensor> tensors = {};
};

/// A call while the trace is on, from its start to its end: a line, or an event of recordings; see trace.h.
/// While it is off, nothing.
class TraceScope {
 public:
  TraceScope(const OperatorEntry& entry, DispatchKeySet keys, bool redispatch,
             std::span<const TracedArgument> arguments);
  TraceScope(const OperatorEntry& entry, DispatchKeySet keys, bool redispatch,
             std::span<const Argument> arguments);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  void begin(const OperatorEntry& entry, DispatchKeySet keys, bool redispatch,
             std::span<const TracedArgument> arguments);

  struct Open;
  std::unique_ptr<Open> open_;  ///< Null if the call's end is not asked for.
  bool traced_ = false;
};

/// The column of the operator's table that serves `keys`.
inline const OperatorTable& column_of(const OperatorEntry& entry, DispatchKeySet keys) noexcept {
  const OperatorTable* table = entry.table.load(std::memory_order_acquire);
  if (static_cast<uint32_t>(keys.bits()) > 1) [[unlikely]]
    return column_of_device(table, keys);
  return *table;
}

/// The keys that one argument adds to a call.
template <class A>
DispatchKeySet argument_keys(const std::remove_reference_t<A>& value) noexcept {
  return ArgTraits<A>::keys(value);
}

inline DispatchKeySet with_thread_keys(DispatchKeySet keys) noexcept {
  // `excluded` holds functionalities only.
  return DispatchKeySet((keys | thread_state.included).bits() & ~thread_state.excluded.bits());
}

}  // namespace detail

/// A named operator, callable on boxed values. Cheap to copy; valid as long as the process runs.
class OperatorHandle {
 public:
  explicit constexpr OperatorHandle(OperatorEntry& entry) noexcept : entry_(&entry) {}

  std::string_view name() const noexcept { return entry_->name; }
  std::string_view overload() const noexcept { return entry_->overload; }
  std::string full_name() const { return entry_->full_name(); }
  /// Throws Error{NotImplemented} if the operator has kernels but is not declared.
  const schema::FunctionSchema& schema() const;
  OperatorEntry& entry() const noexcept { return *entry_; }
  const OperatorTraits& traits() const noexcept {
    const OperatorTraits* const own = entry_->traits.load(std::memory_order_acquire);
    return own ? *own : kNoTraits;
  }

  /// Calls the operator on the arguments at the top of the stack, and replaces them by the results. Counts
  /// the versions of written arguments.
  void call_boxed(Stack& stack) const;
  void redispatch_boxed(DispatchKeySet keys, Stack& stack) const;

  /// The operator with C++ types. Throws an Error{Type} that names the first argument that does not fit.
  template <class Sig>
  auto typed() const;

  friend bool operator==(OperatorHandle, OperatorHandle) = default;

 protected:
  OperatorEntry* entry_;
};

template <class Sig>
class TypedOperator;

template <class R, class... A>
class TypedOperator<R(A...)> : public OperatorHandle {
 public:
  using OperatorHandle::OperatorHandle;
  using Signature = R(A...);
  using Unboxed = R (*)(const Kernel&, DispatchKeySet, A...);
  /// How many arguments are written tensors, according to their types.
  static constexpr size_t kWrites = (size_t{0} + ... + std::is_same_v<A, Tensor&>);
  /// Bit i: argument i is a list of tensors, which the operator may write.
  static constexpr uint64_t kLists = [] {
    uint64_t mask = 0, bit = 1;
    ((mask |= std::is_same_v<A, TensorList> ? bit : 0, bit <<= 1), ...);
    return mask;
  }();

  R call(A... args) const {
    if constexpr (kLists != 0) {
      if (entry_->written.load(std::memory_order_relaxed) & kLists) [[unlikely]]
        return call_writing_lists(std::forward<A>(args)...);
    }
    return call_counted(std::forward<A>(args)...);
  }

  R operator()(A... args) const { return call(std::forward<A>(args)...); }

  /// Continues a call below the key of the calling kernel, which passes its own `keys.below(...)`.
  R redispatch(DispatchKeySet keys, A... args) const {
    return dispatch(keys, true, std::forward<A>(args)...);
  }

 private:
  static DispatchKeySet all_keys(const std::remove_reference_t<A>&... args) noexcept {
    return (DispatchKeySet() | ... | detail::argument_keys<A>(args));
  }

  /// Calls the operator, and counts the versions of written arguments.
  R call_counted(A... args) const {
    const DispatchKeySet keys = detail::with_thread_keys(all_keys(args...));
    if constexpr (kWrites == 0) {
      return dispatch(keys, false, std::forward<A>(args)...);
    } else {
      detail::Writes<kWrites> writes(*entry_);
      size_t i = 0;
      (add_tensor<A>(writes, args, i++), ...);
      return writes.around([&]() -> R { return dispatch(keys, false, std::forward<A>(args)...); });
    }
  }
  template <class T>
  static void add_tensor(detail::Writes<kWrites>& writes, const std::remove_reference_t<T>& value, size_t i) {
    if constexpr (std::is_same_v<T, Tensor&>) writes.add(value, i);
  }

  [[gnu::noinline]] R call_writing_lists(A... args) const {
    detail::Writes<detail::kAnyNumber> writes(*entry_);
    const uint64_t written = entry_->written.load(std::memory_order_relaxed);
    size_t i = 0;
    (add_list<A>(writes, written, args, i++), ...);
    return writes.around([&]() -> R { return call_counted(std::forward<A>(args)...); });
  }
  template <class T>
  static void add_list(detail::Writes<detail::kAnyNumber>& writes, uint64_t written,
                       const std::remove_reference_t<T>& value, size_t i) {
    if constexpr (std::is_same_v<T, TensorList>) {
      if ((written >> i) & 1) writes.add(value, i);
    }
  }

  R dispatch(DispatchKeySet keys, bool redispatched, A... args) const {
    const Kernel* kernel = &detail::column_of(*entry_, keys).lookup(keys);
    if (!kernel->unboxed) [[unlikely]] {
      kernel = &detail::find_kernel(*entry_, keys);
      if (!kernel->unboxed || detail::dispatch_trace_enabled.load(std::memory_order_relaxed))
        return dispatch_slowly(*kernel, keys, redispatched, std::forward<A>(args)...);
    }
    return reinterpret_cast<Unboxed>(kernel->unboxed)(*kernel, keys, std::forward<A>(args)...);
  }

  /// Calls a boxed kernel, or any kernel while the trace is on. Compiled for size, because every signature
  /// has one.
  [[gnu::noinline, gnu::cold]] R dispatch_slowly(const Kernel& kernel, DispatchKeySet keys, bool redispatched,
                                                 A... args) const {
    const detail::Argument each[] = {{}, detail::argument<A>(args)...};
    const std::span<const detail::Argument> arguments(each + 1, sizeof...(A));
    const detail::TraceScope scope(*entry_, keys, redispatched, arguments);
    if (kernel.unboxed)
      return reinterpret_cast<Unboxed>(kernel.unboxed)(kernel, keys, std::forward<A>(args)...);
    return detail::call_boxed<R, A...>(kernel, *this, keys, __builtin_frame_address(0), arguments,
                                       std::forward<A>(args)...);
  }
};

template <class Sig>
auto OperatorHandle::typed() const {
  using Canonical = typename detail::FunctionTraits<Sig>::CanonicalSignature;
  check_signature(schema(), detail::SignatureOf<Canonical>::types());
  return TypedOperator<Canonical>(*entry_);
}

}  // namespace tenon
