#include "tenon/graph/ir/call_arguments.h"

namespace tenon::graph {

using Kind = Argument::Kind;

CallArguments::CallArguments(const Graph& g, const Node& call) {
  const schema::FunctionSchema& schema = call.op.schema();
  for (const schema::Return& r : schema.returns) num_results_ += !r.alias;
  num_written_ = num_written(g, call);
  uint32_t uses = 0, def = static_cast<uint32_t>(g.defs(call).size()) - num_written_;
  const std::span<const Argument> arguments = g.arguments(call);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument& a = arguments[i];
    Source& source = sources_.emplace_back(Source{.kind = a.kind, .type = schema.arguments[i].type.base});
    if (a.kind == Kind::Use || a.kind == Kind::Uses) {
      source.first = uses;
      source.count = static_cast<uint32_t>(g.uses(a).size());
      uses += source.count;
      if (a.kind == Kind::Use && schema.arguments[i].is_write()) source.def = def++;
    } else if (a.kind == Kind::Number) {
      source.first = g.numbers_of(a)[0];
    } else if (a.kind == Kind::Attribute) {
      source.first = static_cast<uint32_t>(attributes_.size());
      attributes_.push_copy(g.attributes(), a.range.first);
    }
  }
}

uint32_t CallArguments::num_written(const Graph& g, const Node& call) {
  const schema::FunctionSchema& schema = call.op.schema();
  const std::span<const Argument> arguments = g.arguments(call);
  uint32_t count = 0;
  for (size_t i = 0; i < arguments.size(); ++i)
    count += arguments[i].kind == Kind::Use && schema.arguments[i].is_write();
  return count;
}

void CallArguments::push(Stack& stack, std::span<const Tensor> uses, std::span<const Tensor> defs,
                         std::span<const Scalar> numbers) const {
  for (const Source& from : sources_) push(stack, from, uses, defs, numbers);
}

void CallArguments::push(Stack& stack, const Source& from, std::span<const Tensor> uses,
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

}  // namespace tenon::graph
