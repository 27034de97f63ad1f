// Expressions: text of pointwise maths -> DAG -> derivative, types, kernels. The public face of this room.
// Used by opgen at build, and at run time for user-written pointwise operators and fused regions.
// Knows no tensors, schemas or threads: a caller names its symbols, and gets text or a program back.
//
//   Graph g;
//   Symbol symbols[] = {{"self", SymbolKind::Tensor}, {"alpha", SymbolKind::Scalar}};
//   NodeId y = parse(g, "where(self > 0, self, alpha * expm1(self))", symbols);
//   check(g, y, ComputeType::Float32);                         // throws Error{Type} if it cannot run so
//   NodeId d = derivative(g, y, g.find_symbol("self"), {.grad = g.symbol("grad"), .result =
//   g.symbol("result")}); std::string backward = to_string(g, d);                    // text of the same
//   language bool saves_result = uses(g, d, g.find_symbol("result")); Kernel k{.name = "elu_f32", .outputs =
//   {y}, .inputs = {g.find_symbol("self")},
//            .scalars = {g.find_symbol("alpha")}, .type = ComputeType::Float32};
//   std::string file = print_simd_file({&g, ...});             // print_simd.h
//   auto program = cpu::compile(g, k);                         // backends/cpu/pointwise/interpreter.h
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/dtype.h"
#include "tenon/expr/op.h"

namespace tenon::expr {

/// The types that kernels compute in. Everything else converts on load and store.
enum class ComputeType : uint8_t { Float32, Float64, Int32, Int64 };
inline constexpr ComputeType kComputeTypes[] = {ComputeType::Float32, ComputeType::Float64,
                                                ComputeType::Int32, ComputeType::Int64};

constexpr bool is_floating(ComputeType t) noexcept { return t <= ComputeType::Float64; }
constexpr size_t item_size(ComputeType t) noexcept {
  return t == ComputeType::Float32 || t == ComputeType::Int32 ? 4 : 8;
}
constexpr DType dtype(ComputeType t) noexcept {
  constexpr DType kDTypes[] = {DType::Float32, DType::Float64, DType::Int32, DType::Int64};
  return kDTypes[static_cast<int>(t)];
}
/// What elements of a dtype, or the parts of complex ones, are computed in; none for dtypes without
/// arithmetic.
constexpr std::optional<ComputeType> compute_type(DType t) noexcept {
  for (const ComputeType c : kComputeTypes) {
    if (dtype_info(t).compute == dtype(c)) return c;
  }
  return std::nullopt;
}
/// "f32", "f64", "i32", "i64": the suffix of kernels' and functions' names.
std::string_view suffix(ComputeType t) noexcept;
/// "float32", ..., as the dtype's.
std::string_view name(ComputeType t) noexcept;

/// Index of a node in its graph. A node's operands always have smaller indices.
using NodeId = uint32_t;
inline constexpr NodeId kNoNode = ~NodeId{0};

enum class SymbolKind : uint8_t {
  Tensor,      ///< A number per element.
  MaskTensor,  ///< A truth value per element; arrives as a number, true where not zero.
  Scalar,      ///< One number for the whole call.
};

struct Symbol {
  std::string name = {};
  SymbolKind kind = SymbolKind::Tensor;
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

struct Node {
  Op op;
  Kind kind;
  uint8_t arity = 0;
  uint16_t function = 0;  ///< Of Call: the function's number, function.h.
  uint32_t index = 0;     ///< Of Literal and Symbol: position in the graph's list.
  NodeId args[3] = {kNoNode, kNoNode, kNoNode};
};

/// A hash-consed DAG: equal sub-expressions are one node. Only ever grows, so that ids stay valid.
class Graph {
 public:
  size_t size() const noexcept { return nodes_.size(); }
  const Node& operator[](NodeId id) const noexcept { return nodes_[id]; }
  std::span<const NodeId> args(NodeId id) const noexcept { return {nodes_[id].args, nodes_[id].arity}; }
  const Literal& literal_of(NodeId id) const noexcept { return literals_[nodes_[id].index]; }
  const Symbol& symbol_of(NodeId id) const noexcept { return symbols_[nodes_[id].index]; }

  NodeId literal(double value);
  NodeId literal(int64_t value);
  NodeId literal(int value) { return literal(int64_t{value}); }
  NodeId literal(const Literal& value);
  /// The node of that symbol, made if it is new. Throws Error{Value} if the name exists with another kind.
  NodeId symbol(std::string_view name, SymbolKind kind = SymbolKind::Tensor);
  /// kNoNode if there is none.
  NodeId find_symbol(std::string_view name) const noexcept;
  /// A primitive. Masks used as numbers become 1 and 0; numbers used as masks are compared with 0.
  NodeId make(Op op, std::span<const NodeId> args);
  NodeId make(Op op, std::initializer_list<NodeId> args) {
    return make(op, std::span(args.begin(), args.size()));
  }
  /// A call of a function of function.h by name. Throws Error{Value} if there is none, or the count is wrong.
  NodeId call(std::string_view function, std::span<const NodeId> args);
  NodeId call(std::string_view function, std::initializer_list<NodeId> args) {
    return call(function, std::span(args.begin(), args.size()));
  }

  /// The node `id` with other operands.
  NodeId make_like(NodeId id, std::span<const NodeId> args);

  NodeId as_number(NodeId id);
  NodeId as_mask(NodeId id);
  bool is_literal(NodeId id) const noexcept { return nodes_[id].op == Op::Literal; }
  /// Whether the node is a literal equal to `value` (-0 is not 0).
  bool is_literal(NodeId id, double value) const noexcept;

 private:
  NodeId intern(const Node& node);

  std::vector<Node> nodes_;
  std::vector<Literal> literals_;
  std::vector<Symbol> symbols_;
  std::vector<NodeId> table_;  // open addressing over nodes_
};

/// Parses an expression over the given symbols into `g`. Throws Error{Value} with the text and a caret under
/// the column; "did you mean" names near misses.
///
/// Language: + - * / (true division), unary - and ~ and !, == != < <= > >=, & ^ | (bits of integers, logic of
/// masks), calls of the functions of function.h and of the ops by name, where(mask, a, b), literals (1, 0.5,
/// 1e-3, 0x1p-3, inf, nan, pi), and leading definitions `let t = exp(self); t / (1 + t)`. Precedence, from
/// the tightest: unary,
/// * /, + -, comparisons, &, ^, |. Comparisons do not chain.
NodeId parse(Graph& g, std::string_view text, std::span<const Symbol> symbols);

/// What `derivative` may use.
struct DerivativeOptions {
  NodeId grad = kNoNode;    ///< Multiplied in, where given.
  NodeId result = kNoNode;  ///< Stands for the root's value, which rules such as exp's then reuse.
};

/// The derivative of `root` by the symbol `wrt`, times `grad`; kNoNode if `root` does not depend on it.
/// Under `where`, only the branch taken counts, also when the other one's derivative is NaN or Inf. At kinks:
/// abs'(0) = 0, max and min share equally between equal operands, rounding has derivative 0.
NodeId derivative(Graph& g, NodeId root, NodeId wrt, const DerivativeOptions& options = {});

/// The same value, bit for bit (NaN payload excepted), with less work: folds constants, drops x*1, x/1, --x
/// ... Never x*0 -> 0 or x+0 -> x, which IEEE arithmetic does not allow.
NodeId simplify(Graph& g, NodeId root);

/// `root` with every occurrence of `from` replaced by `to`.
NodeId substitute(Graph& g, NodeId root, NodeId from, NodeId to);

/// Text that parses to the same node. Shared sub-expressions of some size become `let t1 = ...;`.
std::string to_string(const Graph& g, NodeId root);

/// Whether `root` depends on `node`.
bool uses(const Graph& g, NodeId root, NodeId node);
/// What `root` multiplies `x` by: nothing but 1, where it is `x` itself; one number of the call's; or
/// anything else, `x` itself not being a factor included.
enum class Factor : uint8_t { Other, One, Number };
Factor factor_of(const Graph& g, NodeId root, NodeId x);
/// The symbols that the roots depend on, in the order in which they were made.
std::vector<NodeId> symbols_of(const Graph& g, std::span<const NodeId> roots);

/// Throws Error{Type}, naming the function or op, unless `root` can run in compute type `type`.
void check(const Graph& g, NodeId root, ComputeType type);
/// Whether any compute type other than floating ones can run it.
bool runs_on_integers(const Graph& g, NodeId root);

/// Reference value of `root` in double, each node by the C library; `values` by symbol name, masks as 0
/// and 1. Meant for tests and for checks at build time, not for speed.
struct NamedValue {
  std::string_view name;
  double value;
};
double evaluate(const Graph& g, NodeId root, std::span<const NamedValue> values);

/// A pointwise kernel to be printed or compiled: `void(void* const* ptrs, size_t n, const void* scalars)`,
/// where `ptrs` holds the outputs, then the inputs, each n contiguous elements of `type`, and `scalars` an
/// array of `type`. A mask output is stored as 1 and 0 of `type`. An output may be the same memory as an
/// input, but not overlap it in part.
struct Kernel {
  std::string name = {};
  std::vector<NodeId> outputs = {};
  std::vector<NodeId> inputs = {};   ///< Symbol nodes (Tensor, MaskTensor); unused ones may be listed.
  std::vector<NodeId> scalars = {};  ///< Symbol nodes (Scalar).
  ComputeType type = ComputeType::Float32;
};

}  // namespace tenon::expr
