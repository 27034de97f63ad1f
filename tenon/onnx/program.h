// Program: a model's graph in memory, its names resolved. Made by decode.h, run by run.h. Of this room alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/onnx/model.h"

namespace tenon::onnx {

class NodeCall;
struct Graph;

/// Where a value is while a program runs: its place among those that nodes make, or ~place among the weights
/// and constants, which are there before.
using Slot = int32_t;
inline constexpr Slot kAbsent = INT32_MAX;

/// How an operator of the standard is computed, from one version of it on.
struct Row {
  std::string_view name;
  int since;
  /// Calls operators of Tenon on n.tensor(0) and its kin, and sets the outputs.
  void (*compute)(NodeCall& n);
  std::string_view domain = "";
};
/// The newest row that is not newer than `opset`; null if there is none.
const Row* find_row(std::string_view domain, std::string_view name, int opset);

struct Attribute {
  std::string name;
  std::variant<std::monostate, int64_t, float, std::string, Tensor, std::shared_ptr<Graph>,
               std::vector<int64_t>, std::vector<float>, std::vector<std::string>>
      value;
};

struct Node {
  std::string name, op, domain;
  int opset = 0;
  const Row* row = nullptr;
  std::vector<Slot> inputs, outputs;
  std::vector<Attribute> attributes;
  /// Values of the node's graph that nothing reads after it.
  std::vector<Slot> last_reads;
  /// Follows from constants and sizes alone, as shapes do: it is computed at once, and never recorded.
  bool is_shape = false;

  const Attribute* find(std::string_view attribute) const noexcept;
  /// "node 'conv1' (Conv)".
  std::string text() const;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Slot> inputs, outputs;
  std::vector<Port> results;  ///< What the file says of the outputs of an inner graph.
};

/// Calls `visit` for the graphs among a node's attributes.
template <class N, class Visit>
void each_graph(N& node, const Visit& visit) {
  for (auto& attribute : node.attributes)
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) visit(**graph);
}

struct Program {
  /// A weight that has a name, or a constant.
  struct Constant {
    std::string name;
    Tensor value;
    enum class Kind : uint8_t { Parameter, Buffer, Unnamed } kind;
  };

  std::string file;  ///< What messages call it: the path.
  Graph graph;
  size_t num_slots = 0;
  std::vector<Port> inputs, outputs;
  std::vector<Constant> constants;  ///< Parameters, then buffers, then the others.
  size_t num_weights = 0;           ///< Parameters and buffers.
};

}  // namespace tenon::onnx
