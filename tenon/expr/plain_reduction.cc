#include "tenon/expr/plain_reduction.h"

#include <algorithm>
#include <vector>

namespace tenon::expr {

namespace {

class Matcher {
 public:
  explicit Matcher(const Expression& e) : e_(e) {
    for (NodeId id = 0; id < e.num_nodes; ++id) {
      if (e[id].op == Op::Reduce) reducers_.push_back(id);
    }
  }

  std::optional<PlainReduction> take() {
    const auto along = [&](const Slot& s) { return varies_along(e_[s.node].rank()); };
    if (std::any_of(e_.outputs().begin(), e_.outputs().end(), along)) return std::nullopt;
    if (reducers_.size() == 1 && e_.num_outputs == 1) return one();
    if (reducers_.size() == 2 && e_.num_outputs == 2) return two();
    return std::nullopt;
  }

 private:
  using Match = std::optional<PlainReduction>;

  const Node& reducer(size_t i) const { return e_[reducers_[i]]; }
  static ReduceKind kind_of(const Node& n) { return static_cast<ReduceKind>(n.bits); }

  /// The slot of elements that are loaded as they are computed with.
  std::optional<uint16_t> loaded(NodeId id) const {
    const Node& n = e_[id];
    const bool plain = n.op == Op::Load && varies_along(n.rank()) && is_compute_type(n.type) &&
                       real_dtype(e_.inputs()[n.bits].dtype) == dtype(n.type);
    return plain ? std::optional(static_cast<uint16_t>(n.bits)) : std::nullopt;
  }
  /// The slot of elements that are asked whether they are zero.
  std::optional<uint16_t> asked(NodeId id) const {
    const Node& n = e_[id];
    if (n.op != Op::Ne) return std::nullopt;
    const Node& zero = e_[n.args[1]];
    return zero.op == Op::Literal && zero.bits == 0 ? loaded(n.args[0]) : std::nullopt;
  }
  /// Whether a slot of real parts comes before that of the imaginary ones.
  bool are_parts(std::optional<uint16_t> re, std::optional<uint16_t> im) const {
    if (!re || !im || *im != *re + 1) return false;
    const Slot &a = e_.inputs()[*re], &b = e_.inputs()[*im];
    return a.operand == b.operand && a.part == Part::Re && b.part == Part::Im;
  }
  bool results_are_parts() const {
    const Slot &a = e_.outputs()[0], &b = e_.outputs()[1];
    return a.operand == b.operand && a.part == Part::Re && b.part == Part::Im;
  }

  bool stores(size_t output, NodeId node) const {
    const Slot& s = e_.outputs()[output];
    return s.node == node && real_dtype(s.dtype) == dtype(e_[node].type);
  }

  Match one() const {
    const Node& n = reducer(0);
    PlainReduction made{.kind = kind_of(n), .type = e_[n.args[0]].type};
    if (takes_mask(made.kind)) return truth(made);
    const auto slot = loaded(n.args[0]);
    if (n.arity != 1 || !slot) return std::nullopt;
    made.input = *slot;
    if (gives_place(made.kind)) return stores(0, reducers_[0]) ? Match(made) : std::nullopt;
    return with_outputs(made);
  }

  /// any, all: the result is a mask that is stored as it is, or as a number.
  Match truth(PlainReduction made) const {
    const Node &n = reducer(0), &of = e_[n.args[0]];
    const NodeId stored = e_.outputs()[0].node;
    const bool as_it_is =
        stored == reducers_[0] || (e_[stored].op == Op::Cast && e_[stored].args[0] == reducers_[0]);
    if (made.kind == ReduceKind::First || !as_it_is) return std::nullopt;
    if (const auto slot = asked(n.args[0])) {
      made.input = *slot;
    } else if (of.op == Op::Or && are_parts(asked(of.args[0]), asked(of.args[1]))) {
      made.input = *asked(of.args[0]);
      made.complex = true;
    } else {
      return std::nullopt;
    }
    made.type = dtype_type(made.input);
    return made;
  }
  Type dtype_type(uint16_t slot) const { return carrier(e_.inputs()[slot].dtype); }

  Match two() const {
    const Node &a = reducer(0), &b = reducer(1);
    const auto is = [&](ReduceKind x, ReduceKind y) { return kind_of(a) == x && kind_of(b) == y; };
    const NodeId last = a.args[a.arity - 1];
    PlainReduction made{.kind = kind_of(a), .type = e_[last].type, .complex = true};
    if (is(ReduceKind::Sum, ReduceKind::Sum)) {
      if (!results_are_parts() || !are_parts(loaded(a.args[0]), loaded(b.args[0]))) return std::nullopt;
      made.input = *loaded(a.args[0]);
      return with_outputs(made);
    }
    if (is(ReduceKind::ProdRe, ReduceKind::ProdIm)) {
      const bool same = a.args[0] == b.args[0] && a.args[1] == b.args[1];
      if (!same || !results_are_parts() || !are_parts(loaded(a.args[0]), loaded(a.args[1])))
        return std::nullopt;
      made.kind = ReduceKind::Prod;
      made.input = *loaded(a.args[0]);
      return with_outputs(made);
    }
    made.complex = false;
    return gives_place(made.kind) && kind_of(b) == ReduceKind::First ? place(made) : std::nullopt;
  }

  /// at(x, argmax(x)), argmax(x).
  Match place(PlainReduction made) const {
    const Node &arg = reducer(0), &first = reducer(1), &mask = e_[first.args[0]];
    const auto slot = loaded(arg.args[0]);
    const bool there = mask.op == Op::Eq && e_[mask.args[0]].op == Op::Iota && mask.args[1] == reducers_[0];
    if (!slot || !there || first.args[1] != arg.args[0]) return std::nullopt;
    if (!stores(0, reducers_[1]) || !stores(1, reducers_[0])) return std::nullopt;
    made.input = *slot;
    made.elements = true;
    return made;
  }

  /// The values themselves, or sums divided by the length.
  Match with_outputs(PlainReduction made) const {
    bool values = true, means = made.kind == ReduceKind::Sum && is_floating(made.type);
    for (size_t i = 0; i < reducers_.size(); ++i) {
      values = values && stores(i, reducers_[i]);
      const NodeId out = e_.outputs()[i].node;
      means = means && stores(i, out) && is_mean(e_[out], reducers_[i]);
    }
    made.mean = means;
    return values || means ? Match(made) : std::nullopt;
  }
  bool is_mean(const Node& n, NodeId sum) const {
    if (n.op != Op::Div || n.args[0] != sum || e_[n.args[1]].op != Op::Cast) return false;
    return e_[e_[n.args[1]].args[0]].op == Op::Length;
  }

  const Expression& e_;
  std::vector<NodeId> reducers_;
};

}  // namespace

std::optional<PlainReduction> plain_reduction(const Expression& e) { return Matcher(e).take(); }

}  // namespace tenon::expr
