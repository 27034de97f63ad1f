// NodeCall: what the lowering of one node sees: its inputs as tensors without memory, on which it calls
// operators, its attributes, its outputs. Used by the tables of nodes (node.h).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tenon/builder/node.h"
#include "tenon/builder/trace.h"
#include "tenon/core/tensor.h"

namespace tenon::builder {

class NodeCall {
 public:
  /// An input: a tensor, or a number that a run brings or that is part of the graph.
  struct Input {
    tenon::Tensor tensor;           ///< Undefined for a number.
    std::optional<Scalar> value;    ///< Of a number; where a run brings it, one of its kind.
    std::optional<uint32_t> bound;  ///< Which number that a run brings.
    DType dtype = DType::Float32;
  };
  /// What the user has said of an output.
  struct Wanted {
    const Dims* dim = nullptr;
    std::optional<DType> dtype;
  };

  NodeCall(const Node& node, Trace& trace, std::vector<Input> inputs, std::vector<Wanted> wanted)
      : node_(node), trace_(trace), inputs_(std::move(inputs)), wanted_(std::move(wanted)) {
    outputs.resize(wanted_.size());
    choose_compute_type();
  }

  size_t num_inputs() const noexcept { return inputs_.size(); }
  bool has(size_t i) const noexcept {
    return i < inputs_.size() && (inputs_[i].tensor.defined() || is_value(i));
  }
  bool is_value(size_t i) const noexcept { return i < inputs_.size() && inputs_[i].value.has_value(); }
  /// An input in the type in which the node computes; a number becomes a tensor of one element. Undefined if
  /// it is absent.
  tenon::Tensor tensor(size_t i);
  /// The same as it is.
  tenon::Tensor raw(size_t i);
  /// A number, which the argument `argument` of the next call takes. Throws Error{Value} for a tensor.
  Scalar value(size_t i, std::string_view argument);

  bool has(std::string_view attribute) const { return node_.attributes.contains(attribute); }
  // Of an attribute, or else the default. Throw Error{Type} for one of another type.
  bool flag(std::string_view name, bool other) const;
  int64_t integer(std::string_view name, int64_t other) const;
  double real(std::string_view name, double other) const;
  Dims dims(std::string_view name, Dims other) const;
  std::string text(std::string_view name, std::string_view other) const;

  /// Sizes that the user has said of output i. Throws Error{Value} if he has not.
  const Dims& wanted_dim(size_t i = 0) const;
  const Dims* wanted_dim_or_null(size_t i = 0) const noexcept { return wanted_[i].dim; }
  std::optional<DType> wanted_dtype(size_t i = 0) const noexcept { return wanted_[i].dtype; }
  std::optional<DType> compute_type() const noexcept { return node_.compute_type; }
  Trace& trace() noexcept { return trace_; }
  std::string_view kind() const noexcept { return node_.kind->name; }

  /// Results; those that stay undefined are absent.
  std::vector<tenon::Tensor> outputs;
  void set(tenon::Tensor result) { outputs[0] = std::move(result); }

 private:
  void choose_compute_type();
  template <class T>
  const T* attribute(std::string_view name, const char* type) const;

  const Node& node_;
  Trace& trace_;
  std::vector<Input> inputs_;
  std::vector<Wanted> wanted_;
  std::optional<DType> compute_;  // operands are converted to it
};

}  // namespace tenon::builder
