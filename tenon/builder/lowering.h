// Lowering: a graph as it was written down becomes operators (tenon/graph/ir/graph.h), and its tensors learn
// their sizes, strides and types. Used by graph.h.
#pragma once

#include <string>
#include <vector>

#include "tenon/builder/graph.h"
#include "tenon/builder/graph_writer.h"
#include "tenon/builder/node_call.h"
#include "tenon/graph/plan/plan.h"

namespace tenon::builder {

struct Graph::Lowered {
  graph::Graph graph;
  graph::Signature signature;
  std::string key;  ///< Once the operations are built.
};

/// For messages: "the host", "openreg:1".
std::string name_of(Device device);

class Lowering {
 public:
  explicit Lowering(Graph& graph)
      : g_(graph),
        writer_(graph.handle_.device),
        used_(graph.used_tensors()),
        values_(graph.tensors_.size()),
        made_(graph.tensors_.size()) {}
  Graph::Lowered run();

 private:
  void lower(const Node& node);
  const NodeCall::Input& input(uint32_t id);
  void number(TensorAttributes& t, NodeCall::Input& value) const;
  /// What is said of a tensor that a node makes.
  std::optional<DType> wanted_dtype(const TensorAttributes& t) const;
  void set_result(const Node& node, size_t i, tenon::Tensor result);
  void finish_output(TensorAttributes& t);
  Graph::Lowered take();

  Graph& g_;
  GraphWriter writer_;
  std::vector<bool> used_;               // by tensor: a node reads it
  std::vector<NodeCall::Input> values_;  // by tensor
  std::vector<bool> made_;               // of values_
};

}  // namespace tenon::builder
