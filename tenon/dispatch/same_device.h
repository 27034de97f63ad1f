// Which devices the tensors of a boxed call may be on, by the operator's schema. Used where a call's
// arguments go to a device's kernel, or to host copies, before anything else has looked at them.
#pragma once

#include <string>

#include "tenon/dispatch/operator.h"
#include "tenon/dispatch/stack.h"
#include "tenon/schema/schema.h"

namespace tenon {

/// Calls f(tensor, argument, i) for every tensor among the arguments of a call, which are on the stack from
/// `first` on. The tensor is the i-th of a list, or i is -1.
template <class F>
void each_tensor(const schema::FunctionSchema& schema, Stack& stack, size_t first, F&& f) {
  for (size_t a = 0; a < schema.arguments.size(); ++a) {
    const CellTag tag = stack.tag(first + a);
    if (tag == CellTag::Tensor) f(stack.at<Tensor>(first + a), schema.arguments[a], -1);
    if (tag == CellTag::TensorList) {
      int64_t i = 0;
      for (Tensor& t : stack.at<std::vector<Tensor>>(first + a)) f(t, schema.arguments[a], i++);
    }
  }
}

/// Whether a tensor of the host may be passed with those of a device as a number: it has no dimensions, and
/// is only read.
inline bool is_host_number(const Tensor& t, const schema::Argument& argument) noexcept {
  return t.defined() && t.device().is_cpu() && t.dim() == 0 && !argument.is_write();
}

/// The first tensor that is not on the host, null if there is none. Throws Error{Device}, naming the
/// arguments, for tensors of other devices. Those of the host may be numbers, and any for an operator that
/// takes them
/// (`mixed_devices`).
const Tensor* check_same_device(const OperatorEntry& op, const schema::FunctionSchema& schema, Stack& stack,
                                size_t first);

}  // namespace tenon
