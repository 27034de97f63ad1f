#include "tenon/graph/engine/member_call.h"

#include "tenon/ops/elements/elements.h"

namespace tenon::graph {

namespace {
constexpr DispatchKeySet kKeys{Functionality::Dense, kCpuBackend};
}

MemberCall::MemberCall(const Graph& g, const Node& call) : op_(call.op), arguments_(g, call) {
  const size_t results = arguments_.num_results();
  if (results > 0 && arguments_.num_written() == 0 && g.defs(call).size() == results && op_.entry().out())
    out_ = OperatorHandle(*op_.entry().out());
}

void MemberCall::run(std::span<const Tensor> uses, std::span<const Tensor> defs,
                     std::span<const Scalar> numbers) const {
  Stack stack;
  arguments_.push(stack, uses, defs, numbers);
  if (out_) {
    for (size_t i = 0; i < arguments_.num_results(); ++i) stack.push(defs[i]);
    return out_->redispatch_boxed(kKeys, stack);
  }
  op_.redispatch_boxed(kKeys, stack);
  for (size_t i = 0, next = 0; i < stack.size() && next < defs.size(); ++i) {
    if (op_.schema().returns[i].alias) continue;
    const Tensor result = stack.take<Tensor>(i);
    if (result.defined()) ops::copy_elements(defs[next++], result, op_.name().data());
  }
}

}  // namespace tenon::graph
