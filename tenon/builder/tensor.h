// The tensors of a graph that is being built, with the setters of the cuDNN frontend. Used by graph.h. Owns
// no bytes: addresses come when a plan runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/core/scalar.h"

namespace tenon::builder {

class Graph;

/// What is said of a tensor before the graph knows it.
struct TensorDescription {
  std::string name = {};
  Dims dim = {}, stride = {};  ///< No stride: dense, in the order of the dimensions.
  std::optional<DType> data_type = {};
  std::optional<uint64_t> uid = {};
  bool is_virtual = false;
  /// A number whose value a run brings, at an address of the host.
  bool is_pass_by_value = false;
};

/// Throws Error{Shape}, in the name of a function, for a negative size.
void check_sizes(const char* function, const Dims& dim);

/// A tensor of a graph, which owns it. What was not set follows from the node that makes it, and is known
/// after `validate`. Setters return the tensor; they throw Error{Runtime} once the graph's operations are
/// built.
class TensorAttributes {
 public:
  /// Throws Error{Value} if another tensor of the graph has it.
  TensorAttributes& set_uid(uint64_t uid);
  TensorAttributes& set_name(std::string name);
  TensorAttributes& set_dim(Dims dim);
  /// In elements; may be zero or negative for what is read. The address of a tensor is that of its element at
  /// index [0, ..., 0].
  TensorAttributes& set_stride(Dims stride);
  /// Not set: it follows from the graph's types, or from the node that makes the tensor.
  TensorAttributes& set_data_type(std::optional<DType> dtype);
  /// Somebody reads it after a run: its address is passed to it. Others that nodes make are virtual.
  TensorAttributes& set_output(bool on = true);
  TensorAttributes& set_is_virtual(bool on = true);
  TensorAttributes& set_is_pass_by_value(bool on = true);

  /// 0 before `validate` has given one.
  uint64_t uid() const noexcept { return uid_; }
  /// Whether the user gave the UID, and not `validate`.
  bool has_own_uid() const noexcept { return has_uid_; }
  const std::string& name() const noexcept { return name_; }
  const Dims& dim() const noexcept { return dim_; }
  const Dims& stride() const noexcept { return stride_; }
  std::optional<DType> data_type() const noexcept { return dtype_; }
  bool is_output() const noexcept { return is_output_; }
  bool is_virtual() const noexcept { return is_virtual_; }
  bool is_pass_by_value() const noexcept { return by_value_; }
  /// Of a number that is part of the graph.
  const std::optional<Scalar>& constant() const noexcept { return constant_; }
  const Graph& graph() const noexcept { return graph_; }

 private:
  friend class Graph;
  friend class Lowering;
  TensorAttributes(Graph& graph, uint32_t id) : graph_(graph), id_(id) {}
  TensorAttributes(const TensorAttributes&) = delete;
  void check_open(const char* setter) const;

  Graph& graph_;
  uint32_t id_;  // in the order in which tensors were made
  std::string name_;
  Dims dim_, stride_;
  bool has_dim_ = false, has_stride_ = false;  // said by the user
  std::optional<DType> dtype_;
  bool has_dtype_ = false;
  uint64_t uid_ = 0;
  bool has_uid_ = false;
  bool is_output_ = false, is_virtual_ = false, by_value_ = false;
  std::optional<Scalar> constant_;
  static constexpr uint32_t kNoProducer = ~uint32_t{0};
  uint32_t producer_ = kNoProducer;  // of the graph's nodes
};

}  // namespace tenon::builder
