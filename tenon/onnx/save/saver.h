// Saver: the nodes of one traced function, and what rows of the table write them with. Of `save` alone.
//
// A value of the graph is a version of a storage; a name of the file is a tensor. `Held` says which elements
// of a storage a name has, in which order; other tensors over them are written as nodes that move elements.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/lowering.h"
#include "tenon/graph/plan/plan.h"
#include "tenon/onnx/save.h"
#include "tenon/onnx/save/written_model.h"

namespace tenon::onnx {

/// The file's name of a tensor.
using Name = std::string;

/// What ONNX cannot say: caught for each call, so that all are listed.
struct Unsaid {
  std::string why;
};

class SavedCall;

class Saver {
 public:
  Saver(const Inference& function, const SaveOptions& options);
  /// Throws Error{NotImplemented} with all that ONNX cannot say.
  WrittenModel model();

  int opset() const noexcept { return options_.opset; }

  // Nodes and constants

  Name node(std::string_view op, std::vector<Name> inputs, WrittenAttributes attributes = {});
  std::vector<Name> nodes(std::string_view op, std::vector<Name> inputs, WrittenAttributes attributes,
                          size_t num_outputs);
  Name constant(const Tensor& t) { return constant(t, fresh("constant")); }
  /// A tensor without dimensions.
  Name number(const Scalar& value, DType dtype);
  /// int64 that may follow from sizes.
  Name ints(IntArrayRef values);
  Name size(int64_t value);

  // Moving elements; each returns its operand where there is nothing to do.

  Name cast(const Name& x, DType from, DType to);
  Name reshape(const Name& x, IntArrayRef from, IntArrayRef to);
  Name transpose(const Name& x, std::span<const int64_t> order);
  Name expand(const Name& x, IntArrayRef from, IntArrayRef to);

  /// Of tensors that are products x @ w + b, how to get x, w (of [in, out]) and b.
  struct Product {
    Name x, weight, bias;
    Dims sizes;  // of x
  };
  std::unordered_map<Name, Product> products;

 private:
  friend class SavedCall;
  struct Held {
    Name name;
    graph::Geometry geometry;
  };

  void add_input(size_t i);
  void add_output(size_t i);
  void add_node(const graph::Node& node);
  std::string text_of(const graph::Node& node) const;

  Name fresh(std::string_view stem);
  Name constant(const Tensor& t, Name name);
  Name read(graph::ValueId value, const graph::Geometry& wanted);
  const Held& held(graph::ValueId value, const graph::Geometry& wanted);
  Name read_constant(graph::ValueId value, const Storage& storage, const graph::Geometry& wanted);
  void write(const graph::Def& def, const Name& name);
  /// view.cc
  Name view(const Held& from, const graph::Geometry& to);
  Name strided_view(const Held& from, const graph::Geometry& to);
  Name gather_view(const Held& from, const graph::Geometry& to);
  std::pair<Name, Dims> in_memory_order(const Held& from);
  std::optional<Held> with_slice(const Held& base, const graph::Geometry& at, const Name& name);
  /// expression.cc
  void add_expression(const graph::Node& node, const graph::LoweredCall& call);

  const graph::Graph& graph_;
  const graph::Signature& signature_;
  const Inference& function_;
  const SaveOptions& options_;
  WrittenModel model_;
  std::string call_;  // which is being written
  size_t num_names_ = 0;
  std::unordered_map<graph::ValueId, Held> held_;
  std::unordered_map<graph::StorageId, Storage> constants_;
  std::vector<std::pair<std::pair<graph::ValueId, graph::Geometry>, Name>> read_;
  std::unordered_map<std::string, size_t> taken_;  // names of weights
  std::vector<bool> used_;                         // values
  std::vector<graph::ValueId> last_;               // of each storage
  std::vector<std::string> unsaid_;
};

/// A call as rows see it. Arguments are known by their place in the operator's schema.
class SavedCall {
 public:
  SavedCall(Saver& saver, const graph::Node& node) : s(saver), node_(node) {}

  Saver& s;

  bool has(size_t i) const noexcept { return argument(i).kind != graph::Argument::Kind::None; }
  Name tensor(size_t i) const;
  /// Empty if it is absent.
  Name optional_tensor(size_t i) const { return has(i) ? tensor(i) : Name(); }
  std::vector<Name> tensors(size_t i) const;  // empty names: absent ones
  std::vector<graph::Geometry> geometries(size_t i) const;
  /// A matrix, or a stack of them, and whether the name has its last dimensions the other way round.
  std::pair<Name, bool> matrix(size_t i) const;
  /// What a tensor is the product of; null if that is not known.
  const Saver::Product* product(size_t i) const;
  const graph::Geometry& geometry(size_t i) const;
  IntArrayRef sizes(size_t i) const { return geometry(i).sizes; }

  int64_t integer(size_t i) const;
  bool flag(size_t i) const;
  Scalar number(size_t i) const;
  std::vector<int64_t> ints(size_t i) const;
  std::vector<double> floats(size_t i) const;
  std::string text(size_t i) const;

  const graph::Geometry& result_geometry(size_t i = 0) const;
  IntArrayRef result_sizes(size_t i = 0) const { return result_geometry(i).sizes; }
  bool is_used(size_t i) const;
  void result(const Name& name, size_t i = 0) { s.write(defs()[i], name); }

  [[noreturn]] void refuse(std::string why) const { throw Unsaid{std::move(why)}; }

 private:
  const graph::Argument& argument(size_t i) const noexcept { return s.graph_.arguments(node_)[i]; }
  std::span<const graph::Def> defs() const noexcept { return s.graph_.defs(node_); }
  const graph::Use& use(size_t i) const;

  const graph::Node& node_;
};

/// A row: an operator by its full name without a trailing _, and what writes it.
struct SavedRow {
  std::string_view op;
  void (*write)(SavedCall& call);
};
const SavedRow* find_saved_row(std::string_view op) noexcept;
/// layers.cc: products, convolutions, pools, norms, recurrent layers, attention.
std::span<const SavedRow> layer_rows() noexcept;
/// moves.cc: what moves elements, by index or not, and sorts.
std::span<const SavedRow> move_rows() noexcept;

/// Of traces of one function for several sizes: the first, with all that differs as nodes that compute it.
WrittenModel merge(std::vector<WrittenModel> traces, std::span<const Inference* const> functions,
                   const SaveOptions& options);

}  // namespace tenon::onnx
