#include "tenon/expr/passes.h"

#include <algorithm>
#include <map>

#include "tenon/core/error.h"
#include "tenon/expr/builder.h"

namespace tenon::expr {

namespace {

using Kind = RowPlace::Kind;

ReduceKind kind_of(const Node& n) { return static_cast<ReduceKind>(n.bits); }

// What a pass keeps rather than computes again: something like a call of a function.
constexpr uint32_t kDear = 8;

uint32_t own_cost(const Node& n) {
  switch (n.op) {
    case Op::Call:
      return 10;
    case Op::Div:
    case Op::Sqrt:
    case Op::Fmod:
    case Op::TruncDiv:
    case Op::IntPow:
      return 4;
    case Op::Load:
    case Op::Iota:
      return 0;
    default:
      return 1;
  }
}

// What is known of every node before anything is built.
class Analysis {
 public:
  Analysis(const Expression& e, Keep keep)
      : e(e), level(e.num_nodes), cost(e.num_nodes), made_in(e.num_nodes, kNever), kept(e.num_nodes, kNever) {
    for (NodeId id = 0; id < e.num_nodes; ++id) {
      const Node& n = e[id];
      cost[id] = along(id) ? own_cost(n) : 0;
      for (int i = 0; i < n.arity; ++i) {
        level[id] = std::max(level[id], level[n.args[i]]);
        if (along(id)) cost[id] = std::min<uint32_t>(1000, cost[id] + cost[n.args[i]]);
      }
      if (n.op == Op::Reduce) reducers.push_back(id), levels = std::max(levels, ++level[id]);
    }
    reduced_.assign(e.num_nodes, false);
    for (const NodeId r : reducers) {
      for (int i = 0; i < e[r].arity; ++i) reduced_[e[r].args[i]] = true;
    }
    used_along.assign(e.num_nodes, false);
    for (NodeId id = 0; id < e.num_nodes; ++id) {
      for (int i = 0; i < e[id].arity; ++i) {
        const bool taken = along(id) || e[id].op == Op::Reduce;
        if (taken) used_along[e[id].args[i]] = true;
      }
    }
    stores_at_once = all_in_one_pass();
    for (uint32_t pass = 1; pass <= levels + 1; ++pass) {
      seen_.assign(e.num_nodes, false);
      for (const NodeId root : roots(pass)) visit(root, pass, keep);
    }
  }

  static constexpr uint32_t kNever = ~uint32_t{0};

  bool along(NodeId id) const { return varies_along(e[id].rank()); }
  /// The same for the whole call: computed wherever it is needed.
  bool uniform(NodeId id) const { return e[id].rank() == Rank::Number && level[id] == 0; }
  /// What the elements of a pass are needed for.
  std::vector<NodeId> roots(uint32_t pass) const {
    std::vector<NodeId> list;
    for (const NodeId r : reducers) {
      for (int i = 0; i < e[r].arity && level[r] == pass; ++i) list.push_back(e[r].args[i]);
    }
    for (const Slot& s : e.outputs()) {
      if (stores(pass) && along(s.node)) list.push_back(s.node);
    }
    return list;
  }
  /// Whether the pass stores elements.
  bool stores(uint32_t pass) const { return pass == (stores_at_once ? 1 : levels + 1); }

  const Expression& e;
  std::vector<uint32_t> level;  // how many reducers are below it
  uint32_t levels = 0;
  std::vector<NodeId> reducers;
  std::vector<uint32_t> cost;
  std::vector<uint32_t> made_in;  // the first pass that computes it
  std::vector<uint32_t> kept;     // the pass that keeps it, for later ones
  std::vector<bool> used_along;   // an element, or a reducer, takes it
  bool stores_at_once = false;    // in the first pass, with which the rows are done

 private:
  // Whether the elements that are stored need no reducer, and what is reduced is computed too: an operand
  // that is reduced unchanged may be stored over.
  bool all_in_one_pass() const {
    if (levels != 1) return false;
    for (const NodeId r : reducers) {
      for (int i = 0; i < e[r].arity; ++i) {
        if (e[e[r].args[i]].op == Op::Load) return false;
      }
    }
    return std::all_of(e.outputs().begin(), e.outputs().end(),
                       [&](const Slot& s) { return !along(s.node) || level[s.node] == 0; });
  }

  void visit(NodeId id, uint32_t pass, Keep keep) {
    if (!along(id) || e[id].op == Op::Load || e[id].op == Op::Iota || seen_[id]) return;
    seen_[id] = true;
    const bool dear = cost[id] >= kDear || (keep == Keep::Reduced && reduced_[id]);
    const bool worth = keep != Keep::Nothing && dear && e[id].type != Type::Mask;
    if (made_in[id] < pass && worth) {
      kept[id] = made_in[id];
      return;
    }
    if (made_in[id] == kNever) made_in[id] = pass;
    for (int i = 0; i < e[id].arity; ++i) visit(e[id].args[i], pass, keep);
  }

  std::vector<bool> seen_;     // in this pass
  std::vector<bool> reduced_;  // a reducer takes it
};

class Cutter {
 public:
  Cutter(const Expression& e, RowForm form, Keep keep) : a_(e, keep), e_(e), form_(form) {}

  RowPasses take() {
    for (uint32_t p = 0; p <= a_.levels + 1; ++p) {
      pass_ = p;
      RowPass pass;
      if (p > 0) elements(pass);
      if (p <= a_.levels) rows(pass);
      if (p > a_.levels && !pass.elements.flat) continue;
      made_.passes.push_back(std::move(pass));
    }
    return std::move(made_);
  }

 private:
  // One flat expression under construction.
  struct Flat {
    Builder g;
    ExpressionParts parts{.level = Level::Typed};
    RowStep step;
    std::map<NodeId, NodeId> done;

    NodeId load(DType d, RowPlace place) {
      const auto at = std::find(step.inputs.begin(), step.inputs.end(), place);
      const auto i = static_cast<size_t>(at - step.inputs.begin());
      if (at == step.inputs.end()) {
        parts.inputs.push_back({.dtype = d, .operand = static_cast<uint16_t>(i)});
        step.inputs.push_back(place);
      }
      return g.add({.op = Op::Load,
                    .type = carrier(parts.inputs[i].dtype),
                    .flags = static_cast<uint8_t>(Rank::Element),
                    .bits = i});
    }
    NodeId number(Type t, RowPlace place) {
      const auto at = std::find(step.numbers.begin(), step.numbers.end(), place);
      const auto i = static_cast<size_t>(at - step.numbers.begin());
      if (at == step.numbers.end()) {
        parts.numbers.push_back(
            {.dtype = dtype(t), .rank = Rank::Number, .operand = static_cast<uint16_t>(i)});
        step.numbers.push_back(place);
      }
      return g.add({.op = Op::Number, .type = t, .bits = i});
    }
    void output(NodeId node, RowPlace place, DType d) {
      parts.outputs.push_back({.dtype = d,
                               .rank = g[node].rank(),
                               .operand = static_cast<uint16_t>(parts.outputs.size()),
                               .node = node});
      step.outputs.push_back(place);
    }
    RowStep finish() {
      if (!parts.outputs.empty()) step.flat = g.finish(std::move(parts));
      return std::move(step);
    }
  };

  static RowPlace place(Kind kind, size_t index = 0) { return {kind, static_cast<uint16_t>(index)}; }

  // The number of a row value; of masks, 1 and 0.
  uint16_t value_index(NodeId id) {
    const auto [it, fresh] = values_.try_emplace(id, static_cast<uint16_t>(made_.values.size()));
    if (fresh) made_.values.push_back(e_[id].type == Type::Mask ? Type::I32 : e_[id].type);
    return it->second;
  }
  uint16_t kept_index(NodeId id) {
    const auto [it, fresh] = kept_.try_emplace(id, static_cast<uint16_t>(made_.kept.size()));
    if (fresh) made_.kept.push_back(e_[id].type);
    return it->second;
  }

  // i32 1 and 0 as the mask that the node is.
  NodeId as_it_was(Flat& f, NodeId loaded, NodeId id) {
    if (e_[id].type != Type::Mask) return loaded;
    const NodeId zero = f.g.add({.op = Op::Literal, .type = Type::I32});
    return f.g.add({.op = Op::Ne, .type = Type::Mask, .arity = 2, .args = {loaded, zero, kNoNode}});
  }
  NodeId without_masks(Flat& f, NodeId node) {
    if (f.g[node].type != Type::Mask) return node;
    return f.g.add({.op = Op::Cast, .type = Type::I32, .arity = 1, .args = {node, kNoNode, kNoNode}});
  }

  // Node `id` in an expression over elements, or over rows.
  NodeId node(Flat& f, NodeId id, bool over_rows) {
    const auto known = f.done.find(id);
    if (known != f.done.end()) return known->second;
    const NodeId made = new_node(f, id, over_rows);
    f.done.emplace(id, made);
    return made;
  }

  NodeId new_node(Flat& f, NodeId id, bool over_rows) {
    const Node& n = e_[id];
    if (n.op == Op::Length) return f.number(Type::I64, place(Kind::Length));
    if (n.op == Op::Number) return f.number(n.type, place(Kind::Number, n.bits));
    if (n.op == Op::Iota) return f.load(DType::Int64, place(Kind::Position));
    if (!a_.uniform(id) && !a_.along(id)) {
      const bool known = n.op == Op::Reduce || (is_value(id) && a_.level[id] < pass_) || !over_rows;
      if (known && !(over_rows && n.op == Op::Load)) {
        const uint16_t v = value_index(id);
        const Type t = made_.values[v];
        const bool as_number = !over_rows && form_ == RowForm::Along;
        return as_it_was(
            f, as_number ? f.number(t, place(Kind::Value, v)) : f.load(dtype(t), place(Kind::Value, v)), id);
      }
    }
    if (n.op == Op::Load) return f.load(real_dtype(e_.inputs()[n.bits].dtype), place(Kind::Operand, n.bits));
    if (a_.along(id) && a_.kept[id] < pass_) return f.load(dtype(n.type), place(Kind::Kept, kept_index(id)));
    Node copy = n;
    for (int i = 0; i < n.arity; ++i) copy.args[i] = node(f, n.args[i], over_rows);
    return f.g.add(copy);
  }

  // Whether a value of the row is what elements are computed from.
  bool is_value(NodeId id) const {
    return !a_.along(id) && !a_.uniform(id) && a_.used_along[id] && e_[id].op != Op::Reduce;
  }

  // Where a reducer finds its operand; computed for it where it is not stored.
  RowPlace source(Flat& f, NodeId id, size_t output) {
    const Node& n = e_[id];
    const bool loaded = n.op == Op::Load && n.type != Type::Mask && a_.along(id);
    // Reducers take what is computed with: what is stored otherwise is converted first.
    if (loaded && real_dtype(e_.inputs()[n.bits].dtype) == dtype(n.type)) return place(Kind::Operand, n.bits);
    if (a_.along(id) && a_.kept[id] != Analysis::kNever) return place(Kind::Kept, kept_index(id));
    const NodeId made = without_masks(f, node(f, id, false));
    f.output(made, place(Kind::Reducer, output), dtype(f.g[made].type));
    return place(Kind::Reducer, output);
  }

  void elements(RowPass& pass) {
    Flat f;
    for (NodeId id = 0; id < e_.num_nodes; ++id) {
      if (a_.kept[id] == pass_)
        f.output(node(f, id, false), place(Kind::Kept, kept_index(id)), dtype(e_[id].type));
    }
    for (const NodeId r : a_.reducers) {
      if (a_.level[r] != pass_) continue;
      const size_t at = 2 * pass.reducers.size();
      const Node& n = e_[r];
      RowReducer reducer{.kind = kind_of(n), .value = value_index(r)};
      const NodeId operand = n.args[n.arity - 1];
      reducer.type = e_[operand].type == Type::Mask ? Type::I32 : e_[operand].type;
      reducer.from = source(f, operand, at);
      if (n.arity == 2) reducer.first = source(f, n.args[0], at + 1);
      pass.reducers.push_back(reducer);
    }
    if (a_.stores(pass_)) {
      for (size_t i = 0; i < e_.num_outputs; ++i) {
        const Slot& s = e_.outputs()[i];
        if (a_.along(s.node)) f.output(node(f, s.node, false), place(Kind::Output, i), real_dtype(s.dtype));
      }
    }
    pass.elements = f.finish();
  }

  void rows(RowPass& pass) {
    Flat f;
    for (NodeId id = 0; id < e_.num_nodes; ++id) {
      if (!is_value(id) || a_.level[id] != pass_) continue;
      const NodeId made = without_masks(f, node(f, id, true));
      f.output(made, place(Kind::Value, value_index(id)), dtype(f.g[made].type));
    }
    for (size_t i = 0; i < e_.num_outputs; ++i) {
      const Slot& s = e_.outputs()[i];
      if (a_.along(s.node) || a_.level[s.node] != pass_) continue;
      f.output(node(f, s.node, true), place(Kind::Output, i), real_dtype(s.dtype));
    }
    pass.rows = f.finish();
  }

  Analysis a_;
  const Expression& e_;
  RowForm form_;
  uint32_t pass_ = 0;
  std::map<NodeId, uint16_t> values_, kept_;
  RowPasses made_;
};

}  // namespace

bool is_summed(const RowPass& pass) {
  const std::vector<RowPlace>& outputs = pass.elements.outputs;
  return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), [&](const RowPlace& to) {
    if (to.kind != Kind::Reducer) return false;
    const RowReducer& r = pass.reducers[to.index / 2];
    return r.kind == ReduceKind::Sum && r.type == Type::F32;
  });
}

RowPasses cut_passes(const Expression& e, RowForm form, Keep keep) {
  TENON_CHECK(e.level != Level::Written, Internal, "cut_passes: a typed expression was expected");
  return Cutter(e, form, keep).take();
}

}  // namespace tenon::expr
