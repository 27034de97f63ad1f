#include "tenon/expr/complex.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tenon/core/error.h"
#include "tenon/expr/complex_functions.h"
#include "tenon/expr/function.h"
#include "tenon/expr/parse.h"

namespace tenon::expr {

namespace {

class Splitter {
 public:
  Splitter(Builder& g, Type type) : g_(g) {
    for (const ComplexConstant& c : kComplexConstants)
      constants_.push_back({c.name, g.literal(type == Type::F32 ? c.f32 : c.f64)});
  }

  void bind(NodeId symbol, ComplexParts parts) { parts_[symbol] = parts; }

  ComplexParts visit(NodeId id) {
    if (const auto known = parts_.find(id); known != parts_.end()) return known->second;
    const Node n = g_[id];  // a copy: building nodes moves the graph's storage
    ComplexParts args[3];
    bool any = false;
    for (int i = 0; i < n.arity; ++i) {
      args[i] = visit(n.args[i]);
      any |= args[i].complex();
    }
    const ComplexParts made = n.op == Op::Call ? call(n, args, any) : any ? op(n, args) : same(id, n, args);
    parts_[id] = made;
    return made;
  }

  NodeId imaginary(const ComplexParts& p) { return p.complex() ? p.im : g_.literal(0); }
  ComplexParts conjugate(const ComplexParts& p) {
    return p.complex() ? ComplexParts{p.re, make(Op::Neg, p.im)} : p;
  }

 private:
  NodeId make(Op op, NodeId a) { return g_.make(op, {a}); }
  NodeId make(Op op, NodeId a, NodeId b) { return g_.make(op, {a, b}); }

  [[noreturn]] static void refuse(std::string_view what) {
    throw_error(ErrorKind::NotImplemented,
                fmt::format("expression: `{}` is not implemented for complex numbers", what));
  }

  // An op or function over operands that are all real.
  ComplexParts same(NodeId id, const Node& n, const ComplexParts* args) {
    NodeId real[3];
    for (int i = 0; i < n.arity; ++i) real[i] = args[i].re;
    return {g_.make_like(id, std::span<const NodeId>(real, n.arity))};
  }

  ComplexParts product(const ComplexParts& x, const ComplexParts& y) {
    if (!y.complex()) return {make(Op::Mul, x.re, y.re), x.complex() ? make(Op::Mul, x.im, y.re) : kNoNode};
    if (!x.complex()) return {make(Op::Mul, x.re, y.re), make(Op::Mul, x.re, y.im)};
    return {make(Op::Sub, make(Op::Mul, x.re, y.re), make(Op::Mul, x.im, y.im)),
            make(Op::Add, make(Op::Mul, x.re, y.im), make(Op::Mul, x.im, y.re))};
  }

  ComplexParts sum(const ComplexParts& x, const ComplexParts& y) {
    const NodeId im = !x.complex() ? y.im : !y.complex() ? x.im : make(Op::Add, x.im, y.im);
    return {make(Op::Add, x.re, y.re), im};
  }

  ComplexParts op(const Node& n, const ComplexParts* args) {
    const ComplexParts &x = args[0], &y = args[1];
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
      case Op::RoundTo: {
        const auto rounded = [&](NodeId part) {
          Node like = n;
          like.args[0] = part;
          return g_.add(like);
        };
        return {rounded(x.re), rounded(x.im)};
      }
      case Op::Eq:
      case Op::Ne: {
        const NodeId re = make(n.op, x.re, y.re), im = make(n.op, imaginary(x), imaginary(y));
        return {make(n.op == Op::Eq ? Op::And : Op::Or, re, im)};
      }
      case Op::Reduce:
        return reduced(n, args);
      case Op::Hold:
        return {g_.hold(x.re), g_.hold(x.im)};
      case Op::Where:
        return {g_.make(Op::Where, {x.re, y.re, args[2].re}),
                g_.make(Op::Where, {x.re, imaginary(y), imaginary(args[2])})};
      default:
        break;
    }
    return define(info(n.op).name, args, n.arity);
  }

  // Complex numbers have no order. (Truth never comes here: it is real.)
  ComplexParts reduced(const Node& n, const ComplexParts* args) {
    const auto kind = static_cast<ReduceKind>(n.bits);
    const ComplexParts& x = args[n.arity - 1];
    switch (kind) {
      case ReduceKind::Sum:
        return {g_.reduce(kind, {x.re}), g_.reduce(kind, {x.im})};
      case ReduceKind::Prod:
        return {g_.reduce(ReduceKind::ProdRe, {x.re, x.im}), g_.reduce(ReduceKind::ProdIm, {x.re, x.im})};
      case ReduceKind::First:
        return {g_.reduce(kind, {args[0].re, x.re}), g_.reduce(kind, {args[0].re, x.im})};
      default:
        refuse(expr::name(kind));
    }
  }

  ComplexParts call(const Node& n, const ComplexParts* args, bool any) {
    const std::string_view name = functions()[n.bits].name;
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

  // The definition's text with `args` as its operands.
  ComplexParts define(std::string_view name, const ComplexParts* args, int arity) {
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

  Builder& g_;
  std::vector<Binding> constants_;
  std::unordered_map<NodeId, ComplexParts> parts_;
  int next_ = 0;
};

}  // namespace

std::vector<ComplexParts> split_complex(Builder& g, Type type, std::span<const NodeId> outputs,
                                        std::span<const ComplexOperand> operands, bool conjugated) {
  TENON_CHECK(is_floating(type), Internal, "split_complex: a floating compute type");
  Splitter splitter(g, type);
  for (const ComplexOperand& o : operands)
    splitter.bind(o.symbol, o.conjugated ? splitter.conjugate(o.parts) : o.parts);
  std::vector<ComplexParts> values;
  for (const NodeId id : outputs) {
    const ComplexParts value = splitter.visit(id);
    values.push_back(conjugated ? splitter.conjugate(value) : value);
  }
  return values;
}

bool is_holomorphic(const Builder& g, NodeId root) {
  static constexpr std::string_view kOthers[] = {"conj", "real", "imag", "angle", "sgn", "sign"};
  const std::vector<bool> needed = reached(g, std::span(&root, 1));
  for (NodeId id = 0; id <= root; ++id) {
    if (!needed[id]) continue;
    if (g[id].op == Op::Abs) return false;
    if (g[id].op != Op::Call) continue;
    const std::string_view name = functions()[g[id].bits].name;
    if (std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers)) return false;
  }
  return true;
}

}  // namespace tenon::expr
