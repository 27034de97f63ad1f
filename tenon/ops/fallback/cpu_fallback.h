// cpu_fallback: runs an operator that a device does not have on host copies of its tensors. A device whose
// library registers nothing has every operator by it. Registered as a boxed fallback for a device's key, for
// one operator, or called by a kernel that declines. Knows operators by their schemas only.
//
// 1. An operator that returns a view of what it does not write is refused: views never fall back. 2. Tensors
// on the device, in lists and optional ones too, become host copies (dispatch/host_copies.h), with one wait.
// 3. Device arguments become the host; generators stay, so that random numbers are those of the same stream.
// 4. The operator runs on the host. 5. What was written goes back into the device's tensors, which are what
// is returned for them; new results go to the device with the host's strides. 6. The call is counted and,
// with TENON_LOG_FALLBACK=1, logged (core/fallback_report.h).
#pragma once

#include "tenon/dispatch/fallback_policy.h"
#include "tenon/dispatch/kernel.h"

namespace tenon {

/// A BoxedFunction, below Autograd. Throws Error{NotImplemented} for a view and for an operator that the host
/// does not have either; Error{Device}, naming the arguments, for tensors of several devices, except for
/// 0-dim host tensors that are only read and operators that take tensors of any device (copy_, index_put_).
void cpu_fallback(const OperatorHandle& op, DispatchKeySet keys, Stack& stack);

/// Sets what of a backend's missing operators, stubs and expressions falls back, and registers cpu_fallback
/// for its dense key. A blocked operator throws the error of one without kernels, which names who has them.
void set_cpu_fallback(Backend backend, FallbackPolicy policy);
/// Takes that back: nothing of the backend falls back.
void remove_cpu_fallback(Backend backend);

}  // namespace tenon
