#include "tenon/graph/call_step.h"

#include <fmt/format.h>

#include "tenon/core/error.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/ops/copy/elements.h"

namespace tenon::graph {
namespace {

using Kind = Argument::Kind;

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
    : op_(call.op), keys_(Functionality::Dense, g.device(call).backend) {
  const schema::FunctionSchema& schema = op_.schema();
  for (const schema::Return& r : schema.returns) num_results_ += !r.alias;
  uint32_t uses = 0;
  auto written = static_cast<uint32_t>(num_results_);
  const std::span<const Argument> arguments = g.arguments(call);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    Source& source = sources_.emplace_back(Source{.kind = a.kind, .type = schema.arguments[i].type.base});
    if (a.kind == Kind::Use || a.kind == Kind::Uses) {
      source.first = uses;
      source.count = static_cast<uint32_t>(g.uses(a).size());
      uses += source.count;
      if (a.kind == Kind::Use && schema.arguments[i].is_write()) source.def = written++;
    } else if (a.kind == Kind::Number) {
      source.first = g.numbers_of(a)[0];
    } else if (a.kind == Kind::Attribute) {
      source.first = static_cast<uint32_t>(attributes_.size());
      attributes_.push_copy(g.attributes(), a.range.first);
    }
  }
  const bool all_results = num_results_ > 0 && written == num_results_ && g.defs(call).size() == num_results_;
  if (all_results) out_ = out_form(op_, num_results_);
  if (keys_.backend() != kCpuBackend) (void)detail::find_kernel((out_ ? *out_ : op_).entry(), keys_);
}

void CallStep::push(Stack& stack, const Source& from, std::span<const Tensor> uses,
                    std::span<const Tensor> defs, std::span<const Scalar> numbers) const {
  switch (from.kind) {
    case Kind::None:
    case Kind::Numbers:
      return stack.push_none();
    case Kind::Use:
      return stack.push(from.def != kNone ? defs[from.def] : uses[from.first]);
    case Kind::Uses: {
      const std::span<const Tensor> list = uses.subspan(from.first, from.count);
      return stack.push(std::vector<Tensor>(list.begin(), list.end()));
    }
    case Kind::Number:
      if (from.type == schema::BaseType::Float) return stack.push(numbers[from.first].to_double());
      if (from.type == schema::BaseType::Int) return stack.push(numbers[from.first].to_int());
      return stack.push(numbers[from.first]);
    case Kind::Attribute:
      return stack.push_copy(attributes_, from.first);
  }
}

void CallStep::run(std::span<const Tensor> uses, std::span<const Tensor> defs,
                   std::span<const Scalar> numbers) const {
  Stack stack;
  for (const Source& from : sources_) push(stack, from, uses, defs, numbers);
  if (out_) {
    for (size_t i = 0; i < num_results_; ++i) stack.push(defs[i]);
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
