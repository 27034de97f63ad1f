#include "backends/cpu/jit/values.h"

#include <algorithm>
#include <array>
#include <functional>

namespace tenon::cpu::jit {

using expr::NodeId;
using expr::Op;

namespace {

bool is_leaf(const expr::Node& n) { return n.op == Op::Literal || n.op == Op::Number || n.op == Op::Load; }

}  // namespace

Values::Values(const expr::Expression& e, bool avx512)
    : e_(e),
      codes_(select_codes(e, avx512)),
      real_(e.num_nodes),
      uniform_(e.num_nodes),
      registers_(e.num_nodes),
      depth_(e.num_nodes),
      done_(e.num_nodes) {
  for (NodeId id = 0; id < e.num_nodes; ++id) {
    const Code& n = codes_[id];
    real_[id] = n.form == Form::Same ? real_[n.args[0]] : id;
    uniform_[id] = n.op != Op::Load;
    for (int i = 0; i < n.arity; ++i) uniform_[id] = uniform_[id] && uniform_[n.args[i]];
  }
  find_readers();
  weigh();
  find_order();
  number_uses();
}

// Of what some output needs. Counted first, then listed.
void Values::find_readers() {
  std::vector<uint8_t> needed(e_.num_nodes);
  for (const expr::Slot& s : e_.outputs()) needed[real_[s.node]] = true;
  for (NodeId id = e_.num_nodes; id-- > 0;) {
    done_[id] = !needed[id] || is_leaf(codes_[id]);
    for (int i = 0; needed[id] && i < codes_[id].arity; ++i) needed[real_[codes_[id].args[i]]] = true;
  }
  const auto each = [&](auto f) {
    for (NodeId id = 0; id < e_.num_nodes; ++id) {
      for (int i = 0; needed[id] && i < codes_[id].arity; ++i) f(real_[codes_[id].args[i]], id);
    }
    for (const expr::Slot& s : e_.outputs()) f(real_[s.node], e_.num_nodes);
  };
  first_use_.assign(e_.num_nodes + 1, 0);
  each([&](NodeId read, NodeId) { ++first_use_[read + 1]; });
  for (NodeId id = 0; id < e_.num_nodes; ++id) {
    unread_.push_back(first_use_[id + 1]);
    first_use_[id + 1] += first_use_[id];
  }
  uses_.resize(first_use_.back());
  std::vector<uint32_t> next(first_use_.begin(), first_use_.end() - 1);
  each([&](NodeId read, NodeId reader) { uses_[next[read]++] = reader; });
}

// How many registers a tree takes whose largest operand is computed first (Sethi and Ullman, 1970).
void Values::weigh() {
  for (NodeId id = 0; id < e_.num_nodes; ++id) {
    const Code& n = codes_[id];
    if (uniform_[id]) continue;
    std::array<uint32_t, 3> need{};
    for (size_t i = 0; i < n.arity; ++i) {
      const NodeId operand = real_[n.args[i]];
      need[i] = registers_[operand];
      depth_[id] = std::max(depth_[id], depth_[operand] + 1);
    }
    std::sort(need.begin(), need.end(), std::greater<>());
    registers_[id] = 1;
    for (uint32_t i = 0; i < n.arity && need[i] > 0; ++i)
      registers_[id] = std::max(registers_[id], need[i] + i);
  }
}

void Values::find_order() {
  // Uniform values are read from memory: any order will do.
  for (NodeId id = 0; id < e_.num_nodes; ++id) {
    if (uniform_[id] && !done_[id]) append(id);
  }
  num_uniform_ = order_.size();
  std::vector<NodeId> results;
  for (const expr::Slot& s : e_.outputs()) {
    results.push_back(real_[s.node]);
    longest_path_ = std::max<size_t>(longest_path_, depth_[results.back()]);
  }
  std::stable_sort(results.begin(), results.end(),
                   [&](NodeId a, NodeId b) { return registers_[a] > registers_[b]; });
  for (const NodeId id : results) append_all_of(id);
}

// What a value is made of, and it. Without recursion: a chain may have any length.
void Values::append_all_of(NodeId root) {
  std::vector<NodeId> waiting{root};
  while (!waiting.empty()) {
    const NodeId id = waiting.back();
    if (done_[id] || is_ready(id)) {
      waiting.pop_back();
      if (!done_[id]) append(id);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(waiting.size());
    for (int i = 0; i < codes_[id].arity; ++i) {
      const NodeId operand = real_[codes_[id].args[i]];
      if (!done_[operand]) waiting.push_back(operand);
    }
    // The last to wait is the first to come.
    std::stable_sort(waiting.begin() + first, waiting.end(), [&](NodeId a, NodeId b) {
      return registers_[a] != registers_[b] ? registers_[a] < registers_[b] : depth_[a] < depth_[b];
    });
  }
}

bool Values::is_ready(NodeId id) const {
  const Code& n = codes_[id];
  return std::all_of(n.args, n.args + n.arity, [&](NodeId a) { return done_[real_[a]]; });
}

// How many values nothing else is to read.
int Values::num_ended_by(NodeId id) const {
  const Code& n = codes_[id];
  int count = 0;
  for (int i = 0; i < n.arity; ++i) {
    const NodeId operand = real_[n.args[i]];
    uint32_t times = 0;
    for (int k = 0; k < n.arity; ++k) times += real_[n.args[k]] == operand;
    const bool again = std::any_of(n.args, n.args + i, [&](NodeId a) { return real_[a] == operand; });
    count += !again && !is_leaf(codes_[operand]) && !uniform_[operand] && unread_[operand] == times;
  }
  return count;
}

// A value, and after it whatever is ready and ends more values than it makes.
void Values::append(NodeId id) {
  done_[id] = true;
  order_.push_back(id);
  const Code& n = codes_[id];
  for (int i = 0; i < n.arity; ++i) --unread_[real_[n.args[i]]];
  if (uniform_[id]) return;
  const auto append_readers = [&](NodeId read) {
    for (size_t i = 0; i < num_uses(read); ++i) {
      const uint32_t reader = uses_[first_use_[read] + i];
      if (reader < e_.num_nodes && !done_[reader] && is_ready(reader) && num_ended_by(reader) > 1)
        append(reader);
    }
  };
  append_readers(id);
  for (int i = 0; i < n.arity; ++i) append_readers(real_[n.args[i]]);
}

void Values::number_uses() {
  std::vector<uint32_t> place(e_.num_nodes + 1);
  for (uint32_t at = 0; at < order_.size(); ++at) place[order_[at]] = at;
  place[e_.num_nodes] = static_cast<uint32_t>(order_.size());
  for (uint32_t& use : uses_) use = place[use];
  for (NodeId id = 0; id < e_.num_nodes; ++id)
    std::sort(uses_.begin() + first_use_[id], uses_.begin() + first_use_[id + 1]);
}

size_t Values::lifetimes(bool masks_too) const {
  size_t sum = 0;
  for (size_t at = num_uniform_; at < order_.size(); ++at) {
    if (masks_too || e_[order_[at]].type != expr::Type::Mask) sum += uses(order_[at]).back() - at;
  }
  return sum;
}

}  // namespace tenon::cpu::jit
