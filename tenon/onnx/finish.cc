#include "tenon/onnx/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <ranges>
#include <unordered_set>

#include "tenon/onnx/join_quantized.h"

namespace tenon::onnx {
namespace {

using Kind = Program::Constant::Kind;

/// Calls `visit` for every node, those of inner graphs after the one that has them.
template <class Visit>
void each_node(Graph& graph, const Visit& visit) {
  for (Node& node : graph.nodes) {
    visit(node);
    each_graph(node, [&](Graph& inner) { each_node(inner, visit); });
  }
}

/// Inputs that are weights: a network's training changes them.
struct Weights {
  std::string_view op;
  size_t first, last;
};
constexpr std::array<Weights, 13> kWeights{{{"Conv", 1, 2},
                                            {"ConvTranspose", 1, 2},
                                            {"Gemm", 0, 2},
                                            {"MatMul", 0, 1},
                                            {"RNN", 1, 3},
                                            {"LSTM", 1, 3},
                                            {"GRU", 1, 3},
                                            {"BatchNormalization", 1, 2},
                                            {"LayerNormalization", 1, 2},
                                            {"InstanceNormalization", 1, 2},
                                            {"GroupNormalization", 1, 2},
                                            {"PRelu", 1, 1},
                                            {"Gather", 0, 0}}};

/// Constants of nodes are weights where they are read as such; statistics of a norm are none.
void classify(Program& program) {
  std::vector<bool> is_statistic(program.constants.size());
  each_node(program.graph, [&](const Node& node) {
    if (!node.domain.empty()) return;
    const auto row = std::ranges::find(kWeights, node.op, &Weights::op);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] >= 0) continue;
      const auto place = static_cast<size_t>(~node.inputs[i]);
      Program::Constant& constant = program.constants[place];
      const Tensor& value = constant.value;
      const bool may_train = value.defined() && is_floating_point(value.dtype()) && !value.sizes().empty();
      if (row != kWeights.end() && row->first <= i && i <= row->last && may_train)
        constant.kind = Kind::Parameter;
      if (node.op == "BatchNormalization" && i >= 3 && may_train) is_statistic[place] = true;
    }
  });
  for (size_t i = 0; i < program.constants.size(); ++i)
    if (is_statistic[i]) program.constants[i].kind = Kind::Buffer;
}

void order(Program& program) {
  std::vector<size_t> places(program.constants.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::stable_sort(places, {}, [&](size_t i) { return program.constants[i].kind; });
  std::vector<Slot> slots(places.size());
  std::vector<Program::Constant> ordered;
  for (size_t i = 0; i < places.size(); ++i) {
    slots[places[i]] = ~static_cast<Slot>(i);
    ordered.push_back(std::move(program.constants[places[i]]));
  }
  program.constants = std::move(ordered);
  program.num_weights = static_cast<size_t>(
      std::ranges::count_if(program.constants, [](const auto& c) { return c.kind != Kind::Unnamed; }));
  const auto renumber = [&](std::vector<Slot>& all) {
    for (Slot& slot : all)
      if (slot < 0) slot = slots[static_cast<size_t>(~slot)];
  };
  const auto outputs = [&](Graph& graph) { renumber(graph.outputs); };
  outputs(program.graph);
  each_node(program.graph, [&](Node& node) {
    renumber(node.inputs);
    each_graph(node, outputs);
  });
}

/// Branches of a file may use one name twice.
void name_weights(Program& program) {
  std::unordered_set<std::string> taken;
  for (size_t i = 0; i < program.num_weights; ++i) {
    std::string& name = program.constants[i].name;
    const std::string base = name.empty() ? "weight" : name;
    if (name.empty()) name = base;
    for (int n = 2; !taken.insert(name).second; ++n) name = fmt::format("{}_{}", base, n);
  }
}

void add_reads(const Node& node, std::unordered_set<Slot>& to) {
  to.insert(node.inputs.begin(), node.inputs.end());
  each_graph(node, [&](const Graph& graph) {
    to.insert(graph.outputs.begin(), graph.outputs.end());
    for (const Node& inner : graph.nodes) add_reads(inner, to);
  });
}
void find_last_reads(Graph& graph) {
  std::unordered_set<Slot> own(graph.inputs.begin(), graph.inputs.end());
  for (const Node& node : graph.nodes) own.insert(node.outputs.begin(), node.outputs.end());
  own.erase(kAbsent);
  for (const Slot slot : graph.outputs) own.erase(slot);
  for (Node& node : std::views::reverse(graph.nodes)) {
    std::unordered_set<Slot> here(node.outputs.begin(), node.outputs.end());
    add_reads(node, here);
    for (const Slot slot : here)
      if (own.erase(slot) > 0) node.last_reads.push_back(slot);
    each_graph(node, find_last_reads);
  }
}

class Shapes {
 public:
  explicit Shapes(const Program& program) : program_(program), known_(program.num_slots) {}

  void mark(Graph& graph) {
    for (Node& node : graph.nodes) {
      each_graph(node, [&](Graph& inner) { mark(inner); });
      node.is_shape = follows(node);
      if (!node.is_shape) continue;
      for (const Slot slot : node.outputs)
        if (slot != kAbsent) known_[static_cast<size_t>(slot)] = true;
    }
  }

 private:
  bool follows(const Node& node) const {
    constexpr std::array<std::string_view, 3> kDraws{"Bernoulli", "Dropout", "Multinomial"};
    if (!node.domain.empty() || node.op.starts_with("Random") || std::ranges::count(kDraws, node.op))
      return false;
    for (const Attribute& attribute : node.attributes)
      if (std::holds_alternative<std::shared_ptr<Graph>>(attribute.value)) return false;
    if (node.op == "Shape" || node.op == "Size") return true;
    return std::ranges::all_of(node.inputs, [&](Slot slot) {
      if (slot == kAbsent) return true;
      if (slot >= 0) return static_cast<bool>(known_[static_cast<size_t>(slot)]);
      return static_cast<size_t>(~slot) >= program_.num_weights;
    });
  }

  const Program& program_;
  std::vector<bool> known_;  // by slot
};

}  // namespace

void finish(Program& program) {
  join_quantized(program);
  classify(program);
  order(program);
  name_weights(program);
  find_last_reads(program.graph);
  Shapes(program).mark(program.graph);
}

}  // namespace tenon::onnx
