// RecordCall: the kernel at the key Record of operators with typed code. It lets small calls pass, as they
// cost less than recording them, and boxes the others for the recorder. Used by generated registrations.
// Includes nothing of what records.
#pragma once

#include <type_traits>

#include "tenon/dispatch/operator.h"

namespace tenon::record {

/// What calls look at first. Of the thread's open scope.
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
bool passes(const std::remove_reference_t<A>& value) noexcept {
  using T = std::remove_cvref_t<A>;
  if constexpr (std::is_same_v<T, Tensor>) {
    if (!value.defined()) return true;
    const TensorImpl& t = *value.impl();
    // What is written, recorded calls may still have to read.
    const bool waits = std::is_same_v<A, Tensor&> ? t.storage()->is_recorded() : t.storage()->is_pending();
    return t.numel() <= gate.threshold && !waits;
  } else if constexpr (std::is_same_v<T, TensorList>) {
    for (const Tensor& t : value) {
      if (!passes<const Tensor&>(t)) return false;
    }
  }
  return true;
}

template <class Sig>
struct RecordCall;
template <class R, class... A>
struct RecordCall<R(A...)> {
  static R call(const Kernel& kernel, DispatchKeySet keys, A... args) {
    const TypedOperator<R(A...)> op(*static_cast<OperatorEntry*>(const_cast<void*>(kernel.data)));
    if (gate.threshold > 0 && (passes<A>(args) && ...)) {
      ++gate.num_passed;
      const ExcludeDispatchKeyGuard below{DispatchKeySet(Functionality::Record)};
      return op.redispatch(keys.below(Functionality::Record), std::forward<A>(args)...);
    }
    return detail::call_boxed<R, A...>(kRecordKernel, op, keys, __builtin_frame_address(0),
                                       std::forward<A>(args)...);
  }
};

}  // namespace tenon::record
