// NodeCall: what the lowering of one node sees: its inputs as tensors without memory, on which it calls
// operators, its attributes, its outputs. Used by the tables of nodes (node.h).
#pragma once

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "tenon/builder/graph_writer.h"
#include "tenon/builder/node.h"
#include "tenon/core/tensor.h"

namespace tenon::builder {

/// Whether a whole number is a value of an integer dtype, or of bool.
bool holds_number(DType dtype, int64_t number) noexcept;

class NodeCall {
 public:
  /// An input: a tensor, or a number that a run brings or that is part of the graph.
  struct Input {
    tenon::Tensor tensor;           ///< Undefined for a number.
    std::optional<Scalar> value;    ///< Of a number; where a run brings it, one of its kind.
    std::optional<uint32_t> bound;  ///< Which number that a run brings.
    Dims dim;                       ///< Of a number: its sizes, which are all 1.
    DType dtype = DType::Float32;
  };
  /// What the user has said of an output.
  struct Wanted {
    const Dims* dim = nullptr;
    std::optional<DType> dtype;
    bool is_used = true;  ///< It is an output of the graph, or a node reads it.
  };

  NodeCall(const Node& node, GraphWriter& writer, std::vector<Input> inputs, std::vector<Wanted> wanted);

  size_t num_inputs() const noexcept { return inputs_.size(); }
  bool has(size_t i) const noexcept {
    return i < inputs_.size() && (inputs_[i].tensor.defined() || is_value(i));
  }
  bool is_value(size_t i) const noexcept { return i < inputs_.size() && inputs_[i].value.has_value(); }
  /// Whether input i is a number and input `other` a tensor, whose sizes the number does not change.
  bool is_value_for(size_t i, size_t other) const noexcept;
  /// An input in the type in which the node computes; a number becomes a tensor of one element. Undefined if
  /// it is absent. Of a node that computes in whole numbers, throws Error{Type} for a floating-point input
  /// and for a number of a run whose type has more values, Error{Value} for a number that is no value of its
  /// type.
  tenon::Tensor tensor(size_t i);
  /// The same in its own type.
  tenon::Tensor raw(size_t i);
  /// A number, which the argument `argument` of the next call takes. Throws Error{Value} for a tensor.
  Scalar value(size_t i, std::string_view argument);
  /// The value of input i, which is marked as a number: of a number, of the attribute that has the input's
  /// name, or else `other`. The argument `argument` of the next call takes it. Throws Error{Type} for a
  /// number of another kind, Error{Value} if the input and the attribute are both given.
  double number(size_t i, std::string_view argument, double other);
  int64_t whole_number(size_t i, std::string_view argument, int64_t other);

  bool has(std::string_view attribute) const { return node_.attributes.contains(attribute); }
  // Of an attribute, or else the default. Throw Error{Type} for one of another type.
  bool flag(std::string_view name, bool other) const;
  int64_t integer(std::string_view name, int64_t other) const;
  double real(std::string_view name, double other) const;
  /// A number that is compared or computed with input 0: an int stays one. Throws as `tensor` does for
  /// inputs.
  Scalar scalar(std::string_view name, int64_t other) const;
  Dims dims(std::string_view name, Dims other) const;
  std::string text(std::string_view name, std::string_view other) const;

  /// Sizes that the user has said of output i. Throws Error{Value} if he has not.
  const Dims& wanted_dim(size_t i = 0) const;
  std::optional<DType> wanted_dtype(size_t i = 0) const noexcept { return wanted_[i].dtype; }
  GraphWriter& writer() noexcept { return writer_; }
  std::string_view kind() const noexcept { return node_.kind->name; }

  /// Results; those that stay undefined are absent.
  std::vector<tenon::Tensor> outputs;
  void set(tenon::Tensor result) { outputs[0] = std::move(result); }

  /// Once the node is lowered: throws Error{Value} for an input or an attribute that was given and that the
  /// node did not read, Error{NotImplemented} for a number of a run that no call took.
  void check_used() const;

 private:
  void choose_compute_type();
  std::optional<DType> operand_type() const;
  std::optional<DType> declared_compute_type() const;
  bool is_of_one_half_type() const;
  void check_computes(size_t i) const;
  void check_number(size_t i) const;
  void check_held(std::string_view what, std::string_view which, int64_t number) const;
  const InputKind& input_kind(size_t i) const;
  std::string_view input_name(size_t i) const { return input_kind(i).name; }
  const Input* number_input(size_t i, std::string_view argument, bool whole);
  template <class T>
  const T* attribute(std::string_view name, const char* type) const;

  const Node& node_;
  GraphWriter& writer_;
  std::vector<InputKind> kinds_;  // of the inputs
  std::vector<Input> inputs_;
  std::vector<Wanted> wanted_;
  std::optional<DType> compute_;  // operands are converted to it
  std::optional<DType> whole_;    // the integer type, or bool, in which it computes
  std::vector<bool> read_;        // by input
  mutable std::set<std::string_view> read_attributes_;
};

}  // namespace tenon::builder
