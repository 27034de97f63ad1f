#include "tenon/expr/complex.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "tenon/core/error.h"
#include "tenon/expr/complex_functions.h"
#include "tenon/expr/function.h"
#include "tenon/expr/parse.h"

namespace tenon::expr {

namespace {

/// A value as real nodes; without an imaginary part it is real, or a mask.
struct Parts {
  NodeId re = kNoNode;
  NodeId im = kNoNode;
  bool complex() const noexcept { return im != kNoNode; }
};

class Splitter {
 public:
  Splitter(Graph& g, ComputeType type) : g_(g) {
    for (const ComplexConstant& c : kComplexConstants)
      constants_.push_back({c.name, g.literal(type == ComputeType::Float32 ? c.f32 : c.f64)});
  }

  void bind(NodeId symbol, Parts parts) { parts_[symbol] = parts; }

  Parts visit(NodeId id) {
    if (const auto known = parts_.find(id); known != parts_.end()) return known->second;
    const Node n = g_[id];  // a copy: building nodes moves the graph's storage
    Parts args[3];
    bool any = false;
    for (int i = 0; i < n.arity; ++i) {
      args[i] = visit(n.args[i]);
      any |= args[i].complex();
    }
    const Parts made = n.op == Op::Call ? call(n, args, any) : any ? op(n, args) : same(id, n, args);
    parts_[id] = made;
    return made;
  }

  NodeId imaginary(const Parts& p) { return p.complex() ? p.im : g_.literal(0); }
  Parts conjugate(const Parts& p) { return p.complex() ? Parts{p.re, make(Op::Neg, p.im)} : p; }

 private:
  NodeId make(Op op, NodeId a) { return g_.make(op, {a}); }
  NodeId make(Op op, NodeId a, NodeId b) { return g_.make(op, {a, b}); }

  [[noreturn]] static void refuse(std::string_view what) {
    throw_error(ErrorKind::NotImplemented,
                fmt::format("expression: `{}` is not implemented for complex numbers", what));
  }

  // An op or function over operands that are all real.
  Parts same(NodeId id, const Node& n, const Parts* args) {
    NodeId real[3];
    for (int i = 0; i < n.arity; ++i) real[i] = args[i].re;
    return {g_.make_like(id, std::span<const NodeId>(real, n.arity))};
  }

  Parts product(const Parts& x, const Parts& y) {
    if (!y.complex()) return {make(Op::Mul, x.re, y.re), x.complex() ? make(Op::Mul, x.im, y.re) : kNoNode};
    if (!x.complex()) return {make(Op::Mul, x.re, y.re), make(Op::Mul, x.re, y.im)};
    return {make(Op::Sub, make(Op::Mul, x.re, y.re), make(Op::Mul, x.im, y.im)),
            make(Op::Add, make(Op::Mul, x.re, y.im), make(Op::Mul, x.im, y.re))};
  }

  Parts sum(const Parts& x, const Parts& y) {
    const NodeId im = !x.complex() ? y.im : !y.complex() ? x.im : make(Op::Add, x.im, y.im);
    return {make(Op::Add, x.re, y.re), im};
  }

  Parts op(const Node& n, const Parts* args) {
    const Parts &x = args[0], &y = args[1];
    switch (n.op) {
      case Op::Add:
        return sum(x, y);
      case Op::Sub: {
        const NodeId im = !x.complex()   ? make(Op::Neg, y.im)
                          : !y.complex() ? x.im
                                         : make(Op::Sub, x.im, y.im);
        return {make(Op::Sub, x.re, y.re), im};
      }
      case Op::Mul:
        return product(x, y);
      case Op::Fma:
        return sum(product(x, y), args[2]);
      case Op::Div:
        if (!y.complex()) return {make(Op::Div, x.re, y.re), make(Op::Div, x.im, y.re)};
        break;
      case Op::Neg:
        return {make(Op::Neg, x.re), make(Op::Neg, x.im)};
      case Op::Eq:
      case Op::Ne: {
        const NodeId re = make(n.op, x.re, y.re), im = make(n.op, imaginary(x), imaginary(y));
        return {make(n.op == Op::Eq ? Op::And : Op::Or, re, im)};
      }
      case Op::Where:
        return {g_.make(Op::Where, {x.re, y.re, args[2].re}),
                g_.make(Op::Where, {x.re, imaginary(y), imaginary(args[2])})};
      default:
        break;
    }
    return define(info(n.op).name, args, n.arity);
  }

  Parts call(const Node& n, const Parts* args, bool any) {
    const std::string_view name = functions()[n.function].name;
    if (name == "complex") {
      if (any) refuse(name);
      return {args[0].re, args[1].re};
    }
    if (name == "real") return {args[0].re};
    if (name == "imag") return {imaginary(args[0])};
    if (any || name == "log_abs" || name == "log_of_base") return define(name, args, n.arity);
    NodeId real[3];
    for (int i = 0; i < n.arity; ++i) real[i] = args[i].re;
    return {g_.call(name, std::span<const NodeId>(real, n.arity))};
  }

  // The definition's text over operands that stand for `args`.
  Parts define(std::string_view name, const Parts* args, int arity) {
    const std::string_view text = complex_definition(name);
    if (text.empty()) refuse(name);
    static constexpr std::string_view kNames[] = {"x", "y", "z"};
    std::vector<Binding> names = constants_;
    for (int i = 0; i < arity; ++i) {
      const NodeId stand_in = g_.symbol(fmt::format("{}.{}", kNames[i], next_++));
      parts_[stand_in] = args[i];
      names.push_back({kNames[i], stand_in});
    }
    return visit(parse_bound(g_, text, names));
  }

  Graph& g_;
  std::vector<Binding> constants_;
  std::unordered_map<NodeId, Parts> parts_;
  int next_ = 0;
};

bool bit(uint32_t mask, size_t i) { return (mask >> i) & 1u; }

}  // namespace

Kernel split_complex(Graph& g, const Kernel& kernel, const ComplexOperands& which, bool real_output) {
  TENON_CHECK(is_floating(kernel.type) && kernel.outputs.size() == 1, Internal,
              "split_complex: one output of a floating compute type");
  Kernel out{.name = kernel.name, .type = kernel.type};
  Splitter splitter(g, kernel.type);
  const auto add = [&](NodeId symbol, bool complex, bool conjugated, std::vector<NodeId>& list) {
    if (!complex) {
      splitter.bind(symbol, {symbol});
      list.push_back(symbol);
      return;
    }
    // A dot keeps the names apart from any that a user can write.
    const std::string name = g.symbol_of(symbol).name;
    const SymbolKind kind = g.symbol_of(symbol).kind;
    const Parts parts{g.symbol(name + ".re", kind), g.symbol(name + ".im", kind)};
    list.push_back(parts.re);
    list.push_back(parts.im);
    splitter.bind(symbol, conjugated ? splitter.conjugate(parts) : parts);
  };
  for (size_t i = 0; i < kernel.inputs.size(); ++i)
    add(kernel.inputs[i], bit(which.inputs, i), bit(which.conjugated, i), out.inputs);
  for (size_t i = 0; i < kernel.scalars.size(); ++i)
    add(kernel.scalars[i], bit(which.scalars, i), false, out.scalars);

  Parts result = splitter.visit(kernel.outputs[0]);
  if (which.conjugated_output) result = splitter.conjugate(result);
  out.outputs.push_back(result.re);
  const bool mask = g[result.re].kind == Kind::Mask;
  if (real_output || mask) {
    TENON_CHECK(!result.complex(), Type,
                fmt::format("expression: {} has a complex value, expected a real one", kernel.name));
  } else {
    out.outputs.push_back(splitter.imaginary(result));
  }
  return out;
}

bool is_holomorphic(const Graph& g, NodeId root) {
  static constexpr std::string_view kOthers[] = {"conj", "real", "imag", "angle", "sgn", "sign"};
  std::vector<bool> needed(root + 1);
  needed[root] = true;
  for (NodeId id = root + 1; id-- > 0;) {
    if (!needed[id]) continue;
    for (const NodeId a : g.args(id)) needed[a] = true;
    if (g[id].op == Op::Abs) return false;
    if (g[id].op != Op::Call) continue;
    const std::string_view name = functions()[g[id].function].name;
    if (std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers)) return false;
  }
  return true;
}

}  // namespace tenon::expr
