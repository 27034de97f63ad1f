// Builder: an expression under construction. Operands have names only here. Used by the parser, the
// differentiator and everything that transforms expressions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/expr/expression.h"

namespace tenon::expr {

enum class SymbolKind : uint8_t {
  Tensor,       ///< A number per element.
  MaskTensor,   ///< A truth value per element; arrives as a number, true where not zero.
  IndexTensor,  ///< An int64 per element, whatever the call computes in.
  Scalar,       ///< One number for the whole call.
};

struct Symbol {
  std::string name = {};
  SymbolKind kind = SymbolKind::Tensor;
  Rank rank = Rank::Element;  ///< Of a tensor.
};

/// A constant. An integer literal becomes a float in floating compute types; 0.5 in an integer one is an
/// error.
struct Literal {
  bool integer = true;
  int64_t i = 0;
  double d = 0;
  double as_double() const noexcept { return integer ? static_cast<double>(i) : d; }
  bool operator==(const Literal&) const noexcept;  // bitwise: -0 differs from 0, a NaN equals itself
};

/// A hash-consed DAG: equal sub-expressions are one node. Nodes are only added, so that ids stay valid.
class Builder {
 public:
  size_t size() const noexcept { return nodes_.size(); }
  const Node& operator[](NodeId id) const noexcept { return nodes_[id]; }
  std::span<const NodeId> args(NodeId id) const noexcept { return {nodes_[id].args, nodes_[id].arity}; }
  std::span<const Node> nodes() const noexcept { return nodes_; }
  bool is_mask(NodeId id) const noexcept { return nodes_[id].type == Type::Mask; }
  /// Of an open literal.
  Literal literal_of(NodeId id) const noexcept;
  bool is_symbol(NodeId id) const noexcept {
    return nodes_[id].op == Op::Load || nodes_[id].op == Op::Number;
  }
  const Symbol& symbol_of(NodeId id) const noexcept { return symbols_[nodes_[id].bits]; }
  /// Of the `index`-th symbol that was made.
  const std::string& symbol_name(uint64_t index) const noexcept { return symbols_[index].name; }

  // Written nodes: types follow from the operands.

  NodeId literal(double value) { return literal(Literal{.integer = false, .d = value}); }
  NodeId literal(int64_t value) { return literal(Literal{.integer = true, .i = value}); }
  NodeId literal(int value) { return literal(int64_t{value}); }
  NodeId literal(const Literal& value);
  /// The node of a symbol, made if it is new. Throws Error{Value} if the name exists with another kind.
  NodeId symbol(std::string_view name, SymbolKind kind = SymbolKind::Tensor, Rank rank = Rank::Element);
  /// kNoNode if there is none.
  NodeId find_symbol(std::string_view name) const noexcept;
  /// A mask: whether the call passes the optional argument of that name.
  NodeId given(std::string_view name);
  /// A primitive. Masks used as numbers become 1 and 0; numbers used as masks are compared with 0. Throws
  /// Error{Type} for operands of two types.
  NodeId make(Op op, std::span<const NodeId> args);
  NodeId make(Op op, std::initializer_list<NodeId> args) {
    return make(op, std::span(args.begin(), args.size()));
  }
  /// A call of a function of function.h by name. Throws Error{Value} if there is none, or the count is wrong.
  NodeId call(std::string_view function, std::span<const NodeId> args);
  NodeId call(std::string_view function, std::initializer_list<NodeId> args) {
    return call(function, std::span(args.begin(), args.size()));
  }
  /// `value` converted to a type; itself if it has that type.
  NodeId cast(Type to, NodeId value);
  /// `value` rounded as if it were stored as the result, or as an operand of the call (a symbol).
  NodeId stored(NodeId value, NodeId as = kNoNode);

  // Of row expressions.

  /// One value of each row. An operand that is the same along the row counts as often as the row is long.
  NodeId reduce(ReduceKind kind, std::span<const NodeId> args);
  NodeId reduce(ReduceKind kind, std::initializer_list<NodeId> args) {
    return reduce(kind, std::span(args.begin(), args.size()));
  }
  /// How many places a row has, and the number of a place from 0 on: int64.
  NodeId length() { return add({.op = Op::Length, .type = Type::I64}); }
  NodeId position();
  /// `value`, which has no derivative.
  NodeId hold(NodeId value);

  /// The node `id` with other operands.
  NodeId make_like(NodeId id, std::span<const NodeId> args);

  NodeId as_number(NodeId id);
  NodeId as_mask(NodeId id);
  bool is_literal(NodeId id) const noexcept { return nodes_[id].op == Op::Literal; }
  /// Whether the node is an open literal equal to `value` (-0 is not 0).
  bool is_literal(NodeId id, double value) const noexcept;

  /// Adds a node of any level; its rank is computed from its operands.
  NodeId add(Node node);

  /// The written expression with these outputs over all symbols, in the order in which they were made.
  ExpressionPtr finish(std::span<const NodeId> outputs) const;
  ExpressionPtr finish(std::initializer_list<NodeId> outputs) const {
    return finish(std::span(outputs.begin(), outputs.size()));
  }
  /// An expression in canonical form: ids by depth-first post-order from output 0 on, without what no output
  /// needs. `parts` lists the slots; an output's node is one of this builder's.
  ExpressionPtr finish(ExpressionParts parts) const;

 private:
  Type common_type(Op op, std::span<const NodeId> args) const;
  Type result_type(Op op, std::span<const NodeId> args) const;

  std::vector<Node> nodes_;
  std::vector<Symbol> symbols_;
  std::vector<NodeId> table_;  // open addressing over nodes_
};

}  // namespace tenon::expr
