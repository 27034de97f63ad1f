#include "tenon/graph/call_step.h"

#include <fmt/format.h>

#include "tenon/core/error.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/ops/copy/elements.h"

namespace tenon::graph {
namespace {

/// The form of an operator that writes its results to arguments behind those of the call.
std::optional<OperatorHandle> out_form(OperatorHandle op, size_t results) {
  const schema::FunctionSchema& own = op.schema();
  const std::string overload(own.overload);
  const auto fits = [&](const schema::FunctionSchema& form) {
    if (form.arguments.size() != own.arguments.size() + results) return false;
    for (size_t i = 0; i < form.arguments.size(); ++i) {
      const schema::Argument& a = form.arguments[i];
      if (i >= own.arguments.size()) {
        if (!a.is_out) return false;
        continue;
      }
      const schema::Argument& same = own.arguments[i];
      if (a.name != same.name || a.type.base != same.type.base || a.type.list != same.type.list) return false;
    }
    return true;
  };
  std::vector<std::string> names = {"out", overload + "_out"};
  if (const size_t at = overload.find('_'); at != std::string::npos)
    names.push_back(overload.substr(at + 1) + "_out");
  for (const std::string& name : names) {
    const auto form = Dispatcher::singleton().find_op(op.name(), name);
    if (form && fits(form->schema())) return form;
  }
  return std::nullopt;
}

}  // namespace

CallStep::CallStep(const Graph& g, const Node& call)
    : op_(call.op), keys_(Functionality::Dense, g.device(call).backend), arguments_(g, call) {
  const size_t results = arguments_.num_results();
  if (results > 0 && arguments_.num_written() == 0 && g.defs(call).size() == results)
    out_ = out_form(op_, results);
  if (keys_.backend() != kCpuBackend) (void)detail::find_kernel((out_ ? *out_ : op_).entry(), keys_);
}

void CallStep::run(std::span<const Tensor> uses, std::span<const Tensor> defs,
                   std::span<const Scalar> numbers) const {
  Stack stack;
  arguments_.push(stack, uses, defs, numbers);
  if (out_) {
    for (size_t i = 0; i < arguments_.num_results(); ++i) stack.push(defs[i]);
    return out_->redispatch_boxed(keys_, stack);
  }
  op_.redispatch_boxed(keys_, stack);
  for (size_t i = 0, next = 0; i < stack.size() && next < defs.size(); ++i) {
    if (op_.schema().returns[i].alias) continue;
    const Tensor result = stack.take<Tensor>(i);
    if (result.defined()) ops::copy_elements(defs[next++], result, op_.name().data());
  }
}

}  // namespace tenon::graph
