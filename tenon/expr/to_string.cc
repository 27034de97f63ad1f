#include <fmt/format.h>

#include <cmath>

#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"

namespace tenon::expr {

namespace {

std::string text_of(const Literal& v) {
  if (v.integer) return fmt::format("{}", v.i);
  if (std::isnan(v.d)) return "nan";
  if (std::isinf(v.d)) return v.d < 0 ? "(-inf)" : "inf";
  std::string text = fmt::format("{}", v.d);  // the shortest that reads back
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

int precedence(Op op) {
  switch (op) {
    case Op::Or:
      return 1;
    case Op::Xor:
      return 2;
    case Op::And:
      return 3;
    case Op::Add:
    case Op::Sub:
      return 5;
    case Op::Mul:
    case Op::Div:
      return 6;
    default:
      return info(op).rule == TypeRule::Compare ? 4 : 0;
  }
}

constexpr int kUnary = 7;
// Repeating a sub-expression of fewer nodes reads better than naming it.
constexpr size_t kNamedFrom = 4;

class Printer {
 public:
  Printer(const Builder& g, NodeId root) : g_(g), uses_(root + 1), size_(root + 1, 1), name_(root + 1) {
    std::vector<bool> seen(root + 1);
    seen[root] = true;
    for (NodeId id = root + 1; id-- > 0;) {
      for (int i = 0; seen[id] && i < g[id].arity; ++i) seen[g[id].args[i]] = true, ++uses_[g[id].args[i]];
    }
    for (NodeId id = 0; id <= root; ++id) {
      if (!seen[id]) continue;
      for (NodeId a : g.args(id)) size_[id] += name_[a].empty() ? size_[a] : 1;
      if (id == root || uses_[id] < 2 || size_[id] < kNamedFrom) continue;
      const std::string name = fresh_name();
      lets_ += fmt::format("let {} = {}; ", name, text(id, 0));
      name_[id] = name;
    }
    text_ = lets_ + text(root, 0);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string fresh_name() {
    for (;;) {
      std::string name = fmt::format("t{}", ++count_);
      if (g_.find_symbol(name) == kNoNode) return name;
    }
  }

  std::string text(NodeId id, int context) const {
    if (!name_[id].empty()) return name_[id];
    const Node& n = g_[id];
    if (n.op == Op::Literal) {
      const std::string t = text_of(g_.literal_of(id));
      return t[0] == '-' && context >= kUnary ? fmt::format("({})", t) : t;
    }
    if (g_.is_symbol(id)) return g_.symbol_of(id).name;
    if (n.op == Op::Length || n.op == Op::Iota) return std::string(info(n.op).name);
    if (n.op == Op::Given) return fmt::format("given({})", g_.symbol_name(n.bits));
    if (n.op == Op::Neg || n.op == Op::Not) {
      // A literal under a minus would read as a negative literal.
      const bool literal = g_.is_literal(n.args[0]);
      const std::string inner = text(n.args[0], kUnary);
      const std::string t = fmt::format("{}{}", info(n.op).infix,
                                        literal && inner[0] != '(' ? fmt::format("({})", inner) : inner);
      return context > kUnary ? fmt::format("({})", t) : t;
    }
    if (const int level = precedence(n.op); level > 0) {
      // Comparisons do not chain, so both sides need a tighter level; the others associate to the left, and a
      // chain of them is as long as a text allows: it takes no recursion.
      const bool chains = info(n.op).rule != TypeRule::Compare;
      std::vector<NodeId> chain{id};
      NodeId first = n.args[0];
      while (chains && name_[first].empty() && precedence(g_[first].op) == level) {
        chain.push_back(first);
        first = g_[first].args[0];
      }
      std::string t = text(first, chains ? level : level + 1);
      for (size_t i = chain.size(); i-- > 0;) {
        const Node& link = g_[chain[i]];
        t += fmt::format(" {} {}", info(link.op).infix, text(link.args[1], level + 1));
      }
      return level < context ? fmt::format("({})", t) : t;
    }
    std::string args;
    for (NodeId a : g_.args(id)) args += fmt::format("{}{}", args.empty() ? "" : ", ", text(a, 0));
    if (n.op == Op::RoundTo && n.bits != Node::kOfResult) args += ", " + g_.symbol_name(n.bits);
    if (info(n.op).rule == TypeRule::BitShift || info(n.op).rule == TypeRule::Part)
      args += fmt::format(", {}", static_cast<int64_t>(n.bits));
    if (n.op == Op::Cast) return fmt::format("{}({})", name(n.type), args);
    if (n.op == Op::Reduce) return fmt::format("{}({})", name(static_cast<ReduceKind>(n.bits)), args);
    return fmt::format("{}({})", n.op == Op::Call ? functions()[n.bits].name : info(n.op).name, args);
  }

  const Builder& g_;
  std::vector<uint32_t> uses_;
  std::vector<size_t> size_;
  std::vector<std::string> name_;
  std::string lets_, text_;
  int count_ = 0;
};

}  // namespace

std::string to_string(const Builder& g, NodeId root) { return Printer(g, root).take(); }

}  // namespace tenon::expr
