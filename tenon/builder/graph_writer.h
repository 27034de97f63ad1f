// GraphWriter: calls of operators on tensors without memory, as a program (tenon/graph/ir/program.h) for one
// device. A node of a written graph is expanded by calling operators while a writer is open, so that the same
// calls make the same graph, written down or recorded. Used by lowering.
#pragma once

#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/graph/ir/describe_call.h"
#include "tenon/graph/ir/program.h"
#include "tenon/record/sink_scope.h"

namespace tenon::builder {

class GraphWriter : public record::CallSink, private graph::CallStorages {
 public:
  explicit GraphWriter(Device device) : device_(device) {}

  /// A tensor of a storage of its own, which has bytes before the graph runs.
  tenon::Tensor input(DType dtype, const Dims& sizes, const Dims& strides) {
    return add(dtype, sizes, strides, true);
  }
  /// The same without bytes: the first call that gets it writes it.
  tenon::Tensor fresh(DType dtype, const Dims& sizes, const Dims& strides) {
    return add(dtype, sizes, strides, false);
  }
  /// The storage of a tensor that has bytes, now and in every run.
  graph::StorageId add_constant(const tenon::Tensor& t);
  /// A run brings the value of argument `argument` of the next call that has such a number.
  void bind(std::string_view argument, uint32_t value) { pending_.emplace_back(argument, value); }
  /// An argument for which `bind` was called and no call has had such a number since; empty if there is none.
  std::string_view unbound() const noexcept { return pending_.empty() ? "" : pending_.front().first; }

  void call(const graph::OperatorInfo& info, Stack& stack) override;

  graph::StorageId storage_of(const tenon::Tensor& t) const;
  /// Whether calls have made the bytes of `t`'s storage.
  bool is_made(const tenon::Tensor& t) const;

  /// From here on, tensors over `to`, which was a constant's storage, are over the storage of `result`.
  void replace_storage(const tenon::Tensor& result, const Storage& to);

  graph::Program program;
  std::vector<Scalar> numbers;  ///< Of the program.
  std::vector<std::pair<uint32_t, uint32_t>>
      bound;  ///< A number of the program, and the value that it takes.

 private:
  tenon::Tensor add(DType dtype, const Dims& sizes, const Dims& strides, bool is_input);
  tenon::Tensor result(const graph::Output& output);
  std::pair<graph::StorageId, int64_t> place_of(const tenon::Tensor& t) const override;
  graph::StorageId next() const override { return static_cast<graph::StorageId>(storages_.size()); }
  using Pending = std::vector<std::pair<std::string_view, uint32_t>>;
  Pending::iterator pending(const graph::OperatorInfo& info, size_t argument);
  uint64_t numbers_of(const graph::OperatorInfo& info, const Stack& stack, size_t first);
  void take_numbers(const graph::Call& call, const Stack& stack, size_t first);

  Device device_;
  std::vector<Storage> storages_;  // of the program
  std::vector<bool> has_bytes_;    // of them: an input, or written by a call
  std::deque<graph::Call> calls_;  // whose addresses stay
  Pending pending_;
};

}  // namespace tenon::builder
