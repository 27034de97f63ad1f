// The kernel of a dense key whose backend has a kernel for Autograd and none below it. Used by tables.cc.
#pragma once

#include "tenon/dispatch/state.h"

namespace tenon::detail {

/// Calls the operator's kernel for Autograd, as PyTorch does whether a tensor requires gradients or not:
/// there the Autograd key is on every tensor. Where that key is excluded, or its kernel has redispatched the
/// call below it, the backend's fallback runs; without one the call throws Error{NotImplemented}.
extern const Kernel kAutogradAlone;

/// What a backend registered for Autograd, if its tensors find nothing else: a kernel for its own key, or for
/// all of an operator that has no other kernels. Null if there is none.
const KernelRecord* autograd_alone(const OperatorRegistrations& op, Backend backend);

/// The fallback of a backend's key for the operator; null if it has none, or does not take the operator.
const KernelRecord* fallback_for(const Dispatcher::State& state, const OperatorRegistrations& op,
                                 DispatchKey key);

}  // namespace tenon::detail
