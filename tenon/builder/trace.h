// Trace: calls of operators on tensors without memory, as a graph (tenon/graph/graph.h) for one device. A
// node of a built graph is lowered by calling operators while a trace is open, so that the same calls make
// the same graph, written down or recorded. Used by lowering.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/graph/graph.h"
#include "tenon/record/capture.h"

namespace tenon::builder {

class Trace final : public record::CallSink {
 public:
  explicit Trace(Device device) : device_(device) {}

  /// A tensor of a storage of its own, which has bytes before the graph runs.
  tenon::Tensor input(DType dtype, const Dims& sizes, const Dims& strides);
  /// The same without bytes: the first call that gets it writes it.
  tenon::Tensor fresh(DType dtype, const Dims& sizes, const Dims& strides);
  /// A run brings the value of argument `argument` of the next call that has such a number.
  void bind(std::string_view argument, uint32_t value) { pending_.emplace_back(argument, value); }
  /// An argument for which `bind` was called and no call has had such a number since; empty if there is none.
  std::string_view unbound() const noexcept { return pending_.empty() ? "" : pending_.front().first; }

  void call(const record::OperatorInfo& info, Stack& stack) override;

  graph::StorageId storage_of(const tenon::Tensor& t) const;
  /// Whether calls have made the bytes of `t`'s storage.
  bool is_made(const tenon::Tensor& t) const;

  graph::Graph graph;
  std::vector<Scalar> numbers;                       ///< Of the graph.
  std::vector<std::pair<uint32_t, uint32_t>> bound;  ///< A number of the graph, and the value that it takes.

 private:
  struct Slot {
    Storage storage;
    graph::ValueId now = graph::kNone;
  };
  Slot* find(const Storage& storage);
  uint32_t add(const Storage& storage, bool is_input);
  graph::GeometryId geometry(const tenon::Tensor& t);
  graph::Use use(const tenon::Tensor& t, bool written_only);
  using Pending = std::vector<std::pair<std::string_view, uint32_t>>;
  Pending::iterator pending(const record::OperatorInfo& info, size_t argument);
  void add_number(const record::OperatorInfo& info, size_t argument, const Scalar& value);
  void add_arguments(const record::OperatorInfo& info, const Stack& stack, size_t first);

  Device device_;
  std::vector<Slot> slots_;  // by storage of the graph
  Pending pending_;
};

}  // namespace tenon::builder
