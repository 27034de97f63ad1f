// Tracer: what a function computes of inputs that have no bytes, as a program. What it computes of other
// tensors alone, such as weights, is computed at once and becomes a constant of the program. Used by
// Inference.
#pragma once

#include <initializer_list>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/builder/graph_writer.h"
#include "tenon/builder/row_products.h"

namespace tenon::builder {

class Tracer final : public GraphWriter {
 public:
  /// Without `exact`, batch norms are folded into the convolution or the linear layer before them, which
  /// rounds differently.
  explicit Tracer(bool exact) : GraphWriter(kCPU), exact_(exact) {}

  void call(const graph::OperatorInfo& info, Stack& stack) override;
  /// Refuses what draws random numbers: of tensors without bytes, it would draw none.
  void enter(const graph::OperatorInfo& info, const Stack& stack) override;

  /// Whether a tensor follows from the inputs.
  bool is_traced(const tenon::Tensor& t) const {
    return t.defined() && (t.is_meta() || taken_over_.contains(&*t.storage()));
  }
  /// Of the program's storages, those of constants.
  std::vector<std::pair<graph::StorageId, tenon::Storage>> constants;

 private:
  /// The convolution or product that made a tensor: its result is that of `op` on these arguments.
  struct Layer {
    OperatorHandle op;
    Stack arguments;
    Dims sizes;  // of the result
  };
  /// What a batch norm does to a layer's columns: (y - mean) * scale + shift.
  struct Affine {
    tenon::Tensor mean, scale, shift;                // no shift: 0
    tenon::Tensor of(const tenon::Tensor& y) const;  // none: 0
  };
  void run_at_once(const graph::OperatorInfo& info, Stack& stack, size_t first);
  void keep_constants(const Stack& stack, size_t first);
  bool is_input(const tenon::Tensor& t) const;
  void take_over(const tenon::Tensor& t);
  void forget(const StorageImpl& written);
  bool fold_norm(const graph::OperatorInfo& info, Stack& stack, size_t first);
  bool is_fixed(std::initializer_list<tenon::Tensor> weights, DType dtype) const;
  bool fold_into_convolution(const Stack& arguments, const Affine& norm, Stack& call) const;
  bool fold_into_product(const Layer& layer, const Affine& norm, Stack& call) const;
  bool take_rows(const graph::OperatorInfo& info, Stack& stack, size_t first);
  bool pack_right(const graph::OperatorInfo& info, Stack& stack, size_t first);
  void turn_weight(const graph::OperatorInfo& info, Stack& stack, size_t first);
  enum class Layout { Turned, Panels };
  tenon::Tensor laid_out(const tenon::Tensor& weight, Layout layout);

  const bool exact_;
  std::unordered_map<const StorageImpl*, Layer> layers_;  // by the storage of their result
  std::unordered_set<const StorageImpl*> known_, made_;  // constants of the program; results of calls at once
  std::unordered_set<const StorageImpl*> taken_over_;    // what the program has copies of, and writes
  struct Copy {
    tenon::Tensor weight, copy;
    Layout layout;
  };
  std::vector<Copy> copies_;
  RowProducts row_products_;
  std::vector<tenon::Storage> kept_;  // so that addresses are not used again
};

}  // namespace tenon::builder
