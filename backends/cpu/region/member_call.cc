#include "backends/cpu/region/member_call.h"

#include <algorithm>

namespace tenon::cpu {

using Kind = graph::Argument::Kind;

MemberCall::MemberCall(const graph::Graph& g, const graph::Node& call) : op_(call.op) {
  uint32_t tensors = 0;
  const std::span<const graph::Argument> arguments = g.arguments(call);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const graph::Argument& a = arguments[i];
    Source& source = sources_.emplace_back(a.kind, 0, 1, op_.schema().arguments[i].type.base);
    if (a.kind == Kind::Use || a.kind == Kind::Uses) {
      source.first = tensors;
      source.count = static_cast<uint32_t>(g.uses(a).size());
      tensors += source.count;
    } else if (a.kind == Kind::Number) {
      source.first = g.numbers_of(a)[0];
    } else if (a.kind == Kind::Attribute) {
      source.first = static_cast<uint32_t>(attributes_.size());
      attributes_.push_copy(g.attributes(), a.range.first);
    }
  }
}

bool MemberCall::takes_numbers_one_by_one(const graph::Graph& g, const graph::Node& call) {
  const std::span<const graph::Argument> arguments = g.arguments(call);
  return std::none_of(arguments.begin(), arguments.end(),
                      [](const graph::Argument& a) { return a.kind == Kind::Numbers; });
}

Tensor MemberCall::operator()(std::span<const Tensor> tensors, std::span<const Scalar> numbers) const {
  Stack stack;
  for (const Source& from : sources_) {
    switch (from.kind) {
      case Kind::None:
      case Kind::Numbers:
        stack.push_none();
        break;
      case Kind::Use:
        stack.push(tensors[from.first]);
        break;
      case Kind::Uses:
        stack.push(
            std::vector<Tensor>(tensors.begin() + from.first, tensors.begin() + from.first + from.count));
        break;
      case Kind::Number: {
        const Scalar& value = numbers[from.first];
        if (from.type == schema::BaseType::Float)
          stack.push(value.to_double());
        else if (from.type == schema::BaseType::Int)
          stack.push(value.to_int());
        else
          stack.push(value);
        break;
      }
      case Kind::Attribute:
        stack.push_copy(attributes_, from.first);
        break;
    }
  }
  op_.redispatch_boxed(DispatchKeySet(Functionality::Dense, kCpuBackend), stack);
  return stack.take<Tensor>(0);
}

}  // namespace tenon::cpu
