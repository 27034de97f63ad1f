#include "backends/cpu/region/member_call.h"

#include <algorithm>

namespace tenon::cpu {

bool MemberCall::takes_numbers_one_by_one(const graph::Graph& g, const graph::Node& call) {
  const std::span<const graph::Argument> arguments = g.arguments(call);
  return std::none_of(arguments.begin(), arguments.end(),
                      [](const graph::Argument& a) { return a.kind == graph::Argument::Kind::Numbers; });
}

Tensor MemberCall::operator()(std::span<const Tensor> tensors, std::span<const Scalar> numbers) const {
  Stack stack;
  arguments_.push(stack, tensors, {}, numbers);
  op_.redispatch_boxed(DispatchKeySet(Functionality::Dense, kCpuBackend), stack);
  return stack.take<Tensor>(0);
}

}  // namespace tenon::cpu
