// RecordCall: the kernel at the key Record of operators with typed code. Small calls pass, as they cost less
// than recording them; calls that were recorded in the same place before are recorded again as they are; all
// others are boxed for the recorder. Used by generated registrations. Includes nothing of what records.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>

#include "tenon/dispatch/operator.h"

namespace tenon::graph {
struct OperatorInfo;
}

namespace tenon::record {

using graph::OperatorInfo;

/// The open scope's limit, by which small calls skip the recorder.
struct Gate {
  int64_t threshold = 0;    ///< Calls on at most that many elements pass if nothing is still to be computed.
  uint64_t num_passed = 0;  ///< How many have.
};
extern thread_local constinit Gate gate TENON_FAST_TLS;

/// The recorder's kernel for boxed calls.
void record_boxed(const Kernel& kernel, const OperatorHandle& op, DispatchKeySet keys, Stack& stack);
inline constexpr Kernel kRecordKernel{nullptr, &record_boxed, nullptr};

/// Whether a call may pass as far as this argument goes. `A` is the argument's type in the signature.
template <class A>
bool passes(const std::remove_reference_t<A>& value, int64_t limit) noexcept {
  using T = std::remove_cvref_t<A>;
  if constexpr (std::is_same_v<T, Tensor>) {
    if (!value.defined()) return true;
    const TensorImpl& t = *value.impl();
    // Recorded calls may still have to read the tensor that this call writes.
    const bool waits = std::is_same_v<A, Tensor&> ? t.storage()->is_recorded() : t.storage()->is_pending();
    return t.numel() <= limit && !waits;
  } else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : value) {
      if (!passes<const Tensor&>(t, limit)) return false;
    }
  }
  return true;
}

class Recorder;
struct TrieNode;

/// The words by which a call is found among those that were recorded before, and its numbers. A word for each
/// argument's kind, then what its kind has.
class CallKey {
 public:
  CallKey(const OperatorInfo& info, Recorder& recorder);

  void none() { word(static_cast<uint64_t>(CellTag::None)); }
  void tensor(const Tensor& t);
  void tensors(std::span<const Tensor> list);
  void scalar(const Scalar& s, size_t argument);
  void real(double value, size_t argument);
  void integer(int64_t value, size_t argument);
  void boolean(bool value) { small(CellTag::Bool, value); }
  void integers(std::span<const int64_t> list);
  /// A value that lies in its cell, with zeros above.
  void small(CellTag tag, uint64_t bits) {
    word(static_cast<uint64_t>(tag));
    word(bits);
  }
  /// Any boxed value.
  void boxed(const Stack& stack, size_t at, size_t argument);
  /// Ends the key, after the last argument.
  void end();
  /// Whether a tensor cannot be recorded, or has to be computed by another thread first.
  bool refused() const noexcept { return refused_; }

 private:
  void word(uint64_t w);
  bool is_number(size_t argument) const noexcept {
    return argument < 64 && ((numbers_ >> argument) & 1u) != 0;
  }

  Recorder& recorder_;
  std::span<const double> special_;  // of OperatorInfo, as numbers_
  uint64_t numbers_;
  bool refused_ = false;
};

/// A typed call while it is recorded.
class TypedCall {
 public:
  explicit TypedCall(OperatorEntry& entry);
  ~TypedCall();
  TypedCall(const TypedCall&) = delete;
  TypedCall& operator=(const TypedCall&) = delete;

  /// Null if calls of the operator have to be boxed.
  CallKey* key() noexcept { return key_ ? &*key_ : nullptr; }
  /// Records the call if it was recorded here before; its new tensors are results. False: nothing has
  /// happened.
  bool record(void* frame, std::span<Tensor> results);

 private:
  Recorder& recorder_;
  bool locked_;
  std::optional<CallKey> key_;
};

namespace detail {

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

/// Whether add_argument takes arguments of a type.
template <class T>
constexpr bool has_key() {
  if constexpr (kIsOptional<T>)
    return has_key<typename T::value_type>();
  else
    return std::is_same_v<T, Tensor> || std::is_same_v<T, TensorList> || std::is_same_v<T, Scalar> ||
           std::is_arithmetic_v<T> || std::is_same_v<T, IntArrayRef> || std::is_same_v<T, DType>;
}

template <class T>
void add_argument(CallKey& key, const T& value, size_t i) {
  if constexpr (kIsOptional<T>) {
    if (value)
      add_argument(key, *value, i);
    else
      key.none();
  } else if constexpr (std::is_same_v<T, Tensor>) {
    key.tensor(value);
  } else if constexpr (std::is_same_v<T, TensorList>) {
    key.tensors(value);
  } else if constexpr (std::is_same_v<T, Scalar>) {
    key.scalar(value, i);
  } else if constexpr (std::is_same_v<T, bool>) {
    key.boolean(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    key.real(value, i);
  } else if constexpr (std::is_integral_v<T>) {
    key.integer(value, i);
  } else if constexpr (std::is_same_v<T, IntArrayRef>) {
    key.integers(value);
  } else if constexpr (std::is_same_v<T, DType>) {
    key.small(CellTag::DType, static_cast<uint64_t>(value));
  }
}

/// How many new tensors a call returns; -1: what it returns has to be boxed.
template <class R>
inline constexpr int kNewTensors = std::is_void_v<R> || std::is_same_v<R, Tensor&> ? 0 : -1;
template <>
inline constexpr int kNewTensors<Tensor> = 1;
template <std::same_as<Tensor>... T>
inline constexpr int kNewTensors<std::tuple<T...>> = static_cast<int>(sizeof...(T));
template <std::same_as<Tensor&>... T>
inline constexpr int kNewTensors<std::tuple<Tensor&, T...>> = 0;

}  // namespace detail

template <class Sig>
struct RecordCall;
template <class R, class... A>
struct RecordCall<R(A...)> {
  static R call(const Kernel& kernel, DispatchKeySet keys, A... args) {
    auto& entry = *static_cast<OperatorEntry*>(const_cast<void*>(kernel.data));
    const TypedOperator<R(A...)> op(entry);
    const int64_t limit = gate.threshold * entry.record_scale.load(std::memory_order_relaxed);
    if (limit > 0 && (passes<A>(args, limit) && ...)) {
      ++gate.num_passed;
      const ExcludeDispatchKeyGuard below{DispatchKeySet(Functionality::Record)};
      return op.redispatch(keys.below(Functionality::Record), std::forward<A>(args)...);
    }
    constexpr int kNew = detail::kNewTensors<R>;
    if constexpr (kNew >= 0 && (detail::has_key<std::remove_cvref_t<A>>() && ...)) {
      std::array<Tensor, static_cast<size_t>(kNew)> results;
      if (recorded(entry, results, args...)) {
        if constexpr (std::is_void_v<R>)
          return;
        else if constexpr (std::is_same_v<R, Tensor>)
          return std::move(results[0]);
        else if constexpr (kNew > 0)
          return std::tuple_cat(std::move(results));
        else
          return tenon::detail::written_arguments<R>(std::forward<A>(args)...);
      }
    }
    const tenon::detail::Argument each[] = {{}, tenon::detail::argument<A>(args)...};
    return tenon::detail::call_boxed<R, A...>(kRecordKernel, op, keys, __builtin_frame_address(0),
                                              {each + 1, sizeof...(A)}, std::forward<A>(args)...);
  }

 private:
  [[gnu::always_inline]] static bool recorded(OperatorEntry& entry, std::span<Tensor> results,
                                              const std::remove_reference_t<A>&... args) {
    TypedCall call(entry);
    CallKey* const key = call.key();
    if (!key) return false;
    size_t i = 0;
    (detail::add_argument(*key, args, i++), ...);
    return call.record(__builtin_frame_address(0), results);
  }
};

}  // namespace tenon::record
