// Expressions: text of pointwise maths -> DAG -> derivative, types, kernels. The public face of this room.
// Used by opgen at build, and at run time for user-written pointwise operators and fused regions.
// Knows no tensors, schemas or threads: a caller names its symbols, and gets text or an expression back.
//
//   Builder g;
//   const Symbol symbols[] = {{"self", SymbolKind::Tensor}, {"alpha", SymbolKind::Scalar}};
//   const NodeId elu = parse(g, "where(self > 0, self, alpha * expm1(self))", symbols);
//   check(g, elu, Type::F32);  // throws Error{Type} if it cannot run so
//
//   const ExpressionPtr typed = instantiate(*g.finish({elu}), {.compute = Type::F32});  // instantiate.h
//   const float x[] = {-1, 0, 2}, numbers[] = {0.5f, 0};  // a number takes 8 bytes
//   float y[3];
//   void* ptrs[] = {y, const_cast<float*>(x)};
//   cpu::Program(*typed).run(ptrs, 3, numbers);  // backends/cpu/pointwise/interpreter.h
//   const PrintedKernel printed[] = {{"elu_f32", typed.get()}};
//   const std::string file = print_simd_file(printed, "elu_kernels", "elu.cc");  // print_simd.h
//
//   const NodeId self = g.find_symbol("self"), grad = g.symbol("grad"), result = g.symbol("result");
//   const NodeId slope = derivative(g, elu, self, {.grad = grad, .result = result});
//   const std::string backward = to_string(g, simplify(g, slope));  // text of the same language
//   const bool saves_result = uses(g, slope, result);
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/expr/builder.h"
#include "tenon/expr/expression.h"

namespace tenon::expr {

/// Parses an expression over the given symbols into `g`. Throws Error{Value} with the text and a caret under
/// the column; "did you mean" names near misses.
///
/// Language: + - * / (true division) and ** (power), unary - and ~ and !, == != < <= > >=, & ^ | (bits of
/// integers, logic of masks), calls of the functions of function.h and of the ops by name, where(mask, a, b),
/// literals (1, 0.5, 1e-3, 0x1p-3, inf, nan, pi), and leading definitions `let t = exp(self); t / (1 + t)`.
/// Precedence, from the tightest: power; unary; products; sums; comparisons; &; ^; |. Comparisons do not
/// chain.
NodeId parse(Builder& g, std::string_view text, std::span<const Symbol> symbols);

/// As `parse`, of an expression over rows: sum(x), prod, mean, max, min, any, all, argmax, argmin of one
/// operand are one value of each row; first(m, x) is x where m is first true, at(x, t) is x at place t,
/// `length` and `position` are int64, hold(x) is x without a derivative.
NodeId parse_rows(Builder& g, std::string_view text, std::span<const Symbol> symbols);

/// What `derivative` may use.
struct DerivativeOptions {
  NodeId grad = kNoNode;    ///< Multiplied in, where given.
  NodeId result = kNoNode;  ///< The root's value, which rules such as exp's then reuse.
};

/// The derivative of `root` by the symbol `wrt`, times `grad`; kNoNode if `root` does not depend on it.
/// Under `where`, only the branch taken counts, also when the other one's derivative is NaN or Inf. At kinks:
/// abs'(0) = 0, max and min share equally between equal operands, rounding has derivative 0.
NodeId derivative(Builder& g, NodeId root, NodeId wrt, const DerivativeOptions& options = {});

/// The same value, bit for bit (NaN payload excepted), with less work: folds constants, drops x*1, x/1, --x
/// ... Never x*0 -> 0 or x+0 -> x, which IEEE arithmetic does not allow.
NodeId simplify(Builder& g, NodeId root);

/// `root` with every occurrence of `from` replaced by `to`.
NodeId substitute(Builder& g, NodeId root, NodeId from, NodeId to);

/// Text that parses to the same node. Shared sub-expressions of some size become `let t1 = ...;`.
std::string to_string(const Builder& g, NodeId root);

/// By id: whether some root is that node or depends on it.
std::vector<bool> reached(const Builder& g, std::span<const NodeId> roots);
/// Whether `root` depends on `node`.
bool uses(const Builder& g, NodeId root, NodeId node);
/// What `root` multiplies `x` by: nothing but 1, where it is `x` itself; one number of the call's; or
/// anything else, `x` itself not being a factor included.
enum class Factor : uint8_t { Other, One, Number };
Factor factor_of(const Builder& g, NodeId root, NodeId x);
/// The symbols that the roots depend on, in the order in which they were made.
std::vector<NodeId> symbols_of(const Builder& g, std::span<const NodeId> roots);

/// Throws Error{Type}, naming the function or op, unless `root` can run in compute type `type`.
void check(const Builder& g, NodeId root, Type type);
/// Whether any compute type other than floating ones can run it.
bool runs_on_integers(const Builder& g, NodeId root);

/// Reference value of `root` in double, each node by the C library; `values` by symbol name, masks as 0
/// and 1. Meant for tests and for checks at build time, not for speed.
struct NamedValue {
  std::string_view name;
  double value;
};
double evaluate(const Builder& g, NodeId root, std::span<const NamedValue> values);

}  // namespace tenon::expr
