#include "tenon/expr/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "tenon/expr/hash.h"

namespace tenon::expr {

std::string to_string(const Key& key) { return fmt::format("{:016x}{:016x}", key.high, key.low); }

void ExpressionDeleter::operator()(const Expression* e) const noexcept {
  ::operator delete(const_cast<Expression*>(e));
}

ExpressionPtr make_expression(const ExpressionParts& p) {
  const size_t num_slots = p.inputs.size() + p.numbers.size() + p.outputs.size();
  const Key key = key_of(p);  // throws for calls of what has no such type: before there is memory
  void* const block =
      ::operator new(sizeof(Expression) + num_slots * sizeof(Slot) + p.nodes.size() * sizeof(Node));
  auto* const e = new (block) Expression{.key = key,
                                         .level = p.level,
                                         .relaxed = p.relaxed,
                                         .num_inputs = static_cast<uint16_t>(p.inputs.size()),
                                         .num_numbers = static_cast<uint16_t>(p.numbers.size()),
                                         .num_outputs = static_cast<uint16_t>(p.outputs.size()),
                                         .num_nodes = static_cast<uint32_t>(p.nodes.size())};
  auto* slot = reinterpret_cast<Slot*>(e + 1);
  for (const auto* list : {&p.inputs, &p.numbers, &p.outputs}) {
    slot = std::uninitialized_copy(list->begin(), list->end(), slot);
  }
  std::uninitialized_copy(p.nodes.begin(), p.nodes.end(), reinterpret_cast<Node*>(slot));
  return ExpressionPtr(e);
}

ExpressionParts parts_of(const Expression& e) {
  const auto copy = [](auto span) { return std::vector(span.begin(), span.end()); };
  return {.level = e.level,
          .relaxed = e.relaxed,
          .inputs = copy(e.inputs()),
          .numbers = copy(e.numbers()),
          .outputs = copy(e.outputs()),
          .nodes = copy(e.nodes())};
}

bool operator==(const Expression& a, const Expression& b) noexcept {
  const auto same = [](auto x, auto y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
  return a.key == b.key && a.level == b.level && a.relaxed == b.relaxed && same(a.inputs(), b.inputs()) &&
         same(a.numbers(), b.numbers()) && same(a.outputs(), b.outputs()) && same(a.nodes(), b.nodes());
}

}  // namespace tenon::expr
