// custom_derivative: the Autograd kernel of an operator that is registered outside the tree. Used by authors
// of C++ operators. It runs the same code as generated derivatives.
//
//     using Sig = Tensor(const Tensor&, double);      // the operator's canonical C++ signature
//     void backward(const autograd::OpNode& node, std::span<const Tensor> grads, autograd::Gradients& out) {
//       const auto& call = static_cast<const autograd::SavedCall<Sig>&>(node);
//       if (out.wanted(0)) out.set(0, grads[0] * call.arg<0>().sign() * call.arg<1>());
//     }
//     constexpr autograd::ArgumentUse uses[] = {{.argument = 0, .saves = 1 << 0}};
//     autograd::DerivativeInfo info{.node_name = "ScaledAbsBackward0", .uses = uses, .backward = &backward};
//
//     TENON_LIBRARY_IMPL(myops, Autograd, m) {
//       m.impl("scaled_abs", autograd::custom_derivative<Sig>("myops::scaled_abs", info));
//     }
#pragma once

#include "tenon/core/require_cxx20.h"

#include "tenon/autograd/history.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::autograd {

/// `info` must live as long as the process; its `entry` is set here. Throws Error{NotImplemented} for an
/// operator that is not declared, and an Error{Type} that names the argument if the schema does not fit
/// `Sig`.
template <class Sig>
CppFunction custom_derivative(std::string_view full_name, DerivativeInfo& info) {
  const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full(full_name);
  const auto typed = op.typed<Sig>();
  using Canonical = typename decltype(typed)::Signature;
  info.entry = &typed.entry();
  return CppFunction::from_data<Canonical>(
      reinterpret_cast<tenon::detail::AnyFunction>(&HistoryCall<Canonical>::call), &info);
}

}  // namespace tenon::autograd
