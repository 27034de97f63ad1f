// NodeCall: what a row of the tables sees of one node while the model runs: inputs, attributes, outputs.
// Used by the rows (rows_*.cc). Knows no operator.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/dims.h"
#include "tenon/core/error.h"
#include "tenon/onnx/program.h"

namespace tenon::onnx {

class Frame;

class NodeCall {
 public:
  NodeCall(const Node& node, Frame& frame) noexcept : node_(node), frame_(frame) {}

  const Node& node() const noexcept { return node_; }
  std::string_view op() const noexcept { return node_.op; }
  /// The version of the standard that the file was written for.
  int opset() const noexcept { return node_.opset; }

  size_t num_inputs() const noexcept { return node_.inputs.size(); }
  /// Whether input i is there.
  bool has(size_t i) const noexcept;
  /// Whether input i is a weight or a constant of the file.
  bool is_constant(size_t i) const noexcept { return i < node_.inputs.size() && node_.inputs[i] < 0; }
  /// Throws Error{Value} if it is absent or a sequence.
  const Tensor& tensor(size_t i) const;
  /// Undefined if it is absent.
  Tensor optional(size_t i) const;
  /// All inputs from i on.
  std::vector<Tensor> tensors(size_t i = 0) const;
  Item item(size_t i) const;
  std::vector<Tensor> sequence(size_t i) const;
  /// Values of an input that is a tensor of integers, or of one number; throw Error{Type} for others.
  Dims ints(size_t i) const;
  int64_t integer(size_t i) const;
  /// Of an input with one number, of any dtype.
  double number(size_t i) const;
  std::vector<double> numbers(size_t i) const;
  bool flag(size_t i) const;

  bool has(std::string_view attribute) const noexcept { return node_.find(attribute) != nullptr; }
  // Attributes, or the standard's defaults. Throw Error{Type} for one of another type.
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  double number(std::string_view attribute, double otherwise) const;
  std::string_view text(std::string_view attribute, std::string_view otherwise) const;
  bool flag(std::string_view attribute, bool otherwise) const { return integer(attribute, otherwise) != 0; }
  std::optional<Dims> ints(std::string_view attribute) const;
  std::vector<double> numbers(std::string_view attribute) const;
  std::vector<std::string> texts(std::string_view attribute) const;
  const Tensor* tensor(std::string_view attribute) const;
  const Graph& graph(std::string_view attribute) const;
  /// A dtype by the standard's number ("to", "dtype"); throws Error{NotImplemented} for one that Tenon does
  /// not have.
  std::optional<DType> dtype(std::string_view attribute) const;
  /// What newer versions have as input i and older ones as an attribute; absent if neither is given.
  std::optional<Dims> ints(std::string_view attribute, size_t i) const;

  /// A dimension as it is counted from the front; throws Error{Index} if it is out of range.
  int64_t axis(int64_t axis, size_t num_dims) const;

  size_t num_outputs() const noexcept { return node_.outputs.size(); }
  /// Whether the file reads output i.
  bool wants(size_t i) const noexcept { return i < node_.outputs.size() && node_.outputs[i] != kAbsent; }
  void set(Tensor result) { set(0, std::move(result)); }
  void set(size_t i, Tensor result) { set(i, Item{std::move(result)}); }
  void set(size_t i, Item result);
  void set(size_t i, std::vector<Tensor> sequence);

  /// Runs a graph of the node, and returns its outputs.
  std::vector<Item> run(const Graph& graph, std::span<const Item> inputs) const;

  [[noreturn]] void refuse(ErrorKind kind, std::string_view what) const;

 private:
  template <class T>
  const T* attribute(std::string_view name, const char* type) const;

  const Node& node_;
  Frame& frame_;
};

/// For a tensor with values, made for a computation with `x`. What a plan is made of has no device.
inline TensorOptions options_like(const Tensor& x, DType dtype) {
  return TensorOptions(dtype).device(x.is_meta() ? Device(kCPU) : x.device());
}
inline TensorOptions options_like(const Tensor& x) { return options_like(x, x.dtype()); }

/// Throws an error of kind `kind` that says `what` unless `condition` holds.
#define TENON_NODE_CHECK(n, condition, kind, ...)                     \
  do {                                                                \
    if (!(condition)) [[unlikely]]                                    \
      (n).refuse(::tenon::ErrorKind::kind, std::string(__VA_ARGS__)); \
  } while (0)

}  // namespace tenon::onnx
