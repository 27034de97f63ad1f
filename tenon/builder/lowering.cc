#include "tenon/builder/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tenon/core/error.h"
#include "tenon/generated/functions.h"
#include "tenon/iter/overlap.h"

namespace tenon::builder {

namespace {

/// Throws Error{Shape} for sizes and strides that reach farther than addresses do.
void check_reach(const TensorAttributes& t) {
  bool over = false;
  auto nbytes = static_cast<int64_t>(item_size(*t.data_type())), count = nbytes;
  const Dims &sizes = t.dim(), &strides = t.stride();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return;
    int64_t reach = 0;
    over |= __builtin_mul_overflow(count, sizes[d], &count);
    over |= d < strides.size() && __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach);
    over |= reach == std::numeric_limits<int64_t>::min() ||
            __builtin_mul_overflow(std::abs(reach), static_cast<int64_t>(item_size(*t.data_type())), &reach);
    over |= __builtin_add_overflow(nbytes, reach, &nbytes);
  }
  TENON_CHECK(!over, Shape,
              fmt::format("graph: tensor '{}' has sizes {} and strides {}, which no memory can hold",
                          t.name(), tenon::to_string(sizes), tenon::to_string(strides)));
}

/// A number of the graph as a dtype holds it. Throws Error{Type} for a fraction in a whole dtype,
/// Error{Value} for a whole number beyond it.
Scalar rounded(const Scalar& value, DType dtype, const std::string& name) {
  const double real = value.to_double();
  if (!is_floating_point(dtype)) {
    const auto refuse = [&](ErrorKind kind) {
      const std::string given = value.is_integral() ? std::to_string(value.to_int()) : fmt::to_string(real);
      throw_error(kind, fmt::format("tensor_scalar: number '{}' is {}, which its data type {} cannot hold",
                                    name, given, tenon::name(dtype)));
    };
    if (real != std::trunc(real)) refuse(ErrorKind::Type);
    const bool is_int64 = value.is_integral() || std::abs(real) < 0x1p63;
    if (!is_int64 || !holds_number(dtype, value.to_int())) refuse(ErrorKind::Value);
    return dtype == DType::Bool ? Scalar(value.to_bool()) : Scalar(value.to_int());
  }
  switch (dtype) {
    case DType::Float16:
      return Scalar(Half(static_cast<float>(real)));
    case DType::BFloat16:
      return Scalar(BFloat16(static_cast<float>(real)));
    case DType::Float32:
      return Scalar(static_cast<float>(real));
    default:
      return Scalar(real);
  }
}

}  // namespace

// A number of the graph whose type was not set is as exact as it was written.
void Lowering::number(TensorAttributes& t, NodeCall::Input& value) const {
  if (t.constant_) {
    const bool whole = t.constant_->is_integral();
    if (!t.has_dtype_) t.dtype_ = whole ? DType::Int64 : DType::Float32;
    value.dtype = t.has_dtype_ || whole ? *t.dtype_ : DType::Float64;
    value.value = t.has_dtype_ ? rounded(*t.constant_, value.dtype, t.name_) : *t.constant_;
    return;
  }
  if (!t.has_dtype_) t.dtype_ = g_.options_.io.value_or(DType::Float32);
  value.bound = t.id_;
  value.dtype = *t.dtype_;
  value.value = is_floating_point(value.dtype) ? Scalar(1.0)
                : value.dtype == DType::Bool   ? Scalar(false)
                                               : Scalar(int64_t{1});
}

const NodeCall::Input& Lowering::input(uint32_t id) {
  NodeCall::Input& value = values_[id];
  if (made_[id]) return value;
  TensorAttributes& t = *g_.tensors_[id];
  made_[id] = true;
  if (t.by_value_) {
    value.dim = t.dim_;
    number(t, value);
    return value;
  }
  if (!t.has_dtype_) t.dtype_ = g_.options_.io;
  value.dtype = *t.dtype_;
  check_reach(t);
  if (!t.has_stride_) t.stride_ = contiguous_strides(t.dim_);
  value.tensor = writer_.input(value.dtype, t.dim_, t.stride_);
  return value;
}

std::optional<DType> Lowering::wanted_dtype(const TensorAttributes& t) const {
  if (t.has_dtype_) return t.dtype_;
  return t.is_output_ ? g_.options_.io : g_.options_.intermediate;
}

void Lowering::lower(const Node& node) {
  std::vector<NodeCall::Input> inputs;
  for (const uint32_t id : node.inputs) inputs.push_back(id == Node::kAbsent ? NodeCall::Input() : input(id));
  std::vector<NodeCall::Wanted> wanted;
  for (const uint32_t id : node.outputs) {
    const TensorAttributes& t = *g_.tensors_[id];
    wanted.push_back({t.has_dim_ ? &t.dim_ : nullptr, wanted_dtype(t), t.is_output_ || used_[id]});
  }
  const record::SinkScope capture(writer_);
  try {
    NodeCall call(node, writer_, std::move(inputs), std::move(wanted));
    node.kind->lower(call);
    call.check_used();
    for (size_t i = 0; i < node.outputs.size(); ++i) set_result(node, i, call.outputs[i]);
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("graph: node '{}': {}", node.name, e.what()));
  }
}

void Lowering::set_result(const Node& node, size_t i, tenon::Tensor result) {
  TensorAttributes& t = *g_.tensors_[node.outputs[i]];
  if (!result.defined()) {
    TENON_CHECK(!t.is_output_, Value,
                fmt::format("'{}' is an output, and the node makes none as its attributes are", t.name_));
    return;
  }
  const std::optional<DType> dtype = wanted_dtype(t);
  if (dtype && *dtype != result.dtype()) result = result.to(*dtype);
  TENON_CHECK(!t.has_dim_ || IntArrayRef(t.dim_) == result.sizes(), Shape,
              fmt::format("'{}' has sizes {}, and {} were set", t.name_, tenon::to_string(result.sizes()),
                          tenon::to_string(t.dim_)));
  t.dim_ = result.sizes().to_dims();
  t.dtype_ = result.dtype();
  if (!t.has_stride_) t.stride_ = result.strides().to_dims();
  TENON_CHECK(t.stride_.size() == t.dim_.size(), Shape,
              fmt::format("tensor '{}' has strides {} for sizes {}", t.name_, tenon::to_string(t.stride_),
                          tenon::to_string(t.dim_)));
  NodeCall::Input& value = values_[t.id_];
  value.dtype = result.dtype();
  value.tensor = std::move(result);
  made_[t.id_] = true;
}

// An output has a block of its own, with the strides that were set; a view, or an input, is copied there.
void Lowering::finish_output(TensorAttributes& t) {
  tenon::Tensor& result = values_[t.id_].tensor;
  const bool whole = writer_.is_made(result) && result.nbytes() == result.storage().nbytes() &&
                     result.storage_offset() == 0 &&
                     !writer_.program.storages[writer_.storage_of(result)].is_output;
  if (!t.has_stride_) t.stride_ = whole ? result.strides().to_dims() : contiguous_strides(t.dim_);
  check_reach(t);
  TENON_CHECK(!overlaps_itself(t.dim_, t.stride_), Value,
              fmt::format("graph: output '{}' has strides {} for sizes {}, with which elements overlap",
                          t.name_, tenon::to_string(t.stride_), tenon::to_string(t.dim_)));
  const bool dense = std::ranges::equal(result.strides(), IntArrayRef(t.stride_)) || result.numel() < 2;
  if (!whole || !dense) {
    tenon::Tensor own = writer_.fresh(*t.dtype_, t.dim_, t.stride_);
    const record::SinkScope capture(writer_);
    own.copy_(result);
    result = own;
  }
  writer_.program.storages[writer_.storage_of(result)].is_output = true;
}

Graph::Lowered Lowering::run() {
  for (const Node& node : g_.nodes_) lower(node);
  for (const auto& t : g_.tensors_) {
    if (t->is_output_) finish_output(*t);
  }
  return take();
}

Graph::Lowered Lowering::take() {
  Graph::Lowered lowered;
  for (size_t id = 0; id < values_.size(); ++id) {
    const TensorAttributes& t = *g_.tensors_[id];
    const bool made = t.producer_ != TensorAttributes::kNoProducer;
    if (!made_[id] || (made && !t.is_output_) || t.constant_) continue;
    if (t.by_value_) {
      graph::Signature::Value value{.uid = t.uid_, .dtype = *t.dtype_, .numbers = {}};
      for (const auto& [number, tensor] : writer_.bound) {
        if (tensor == id) value.numbers.push_back(number);
      }
      lowered.signature.values.push_back(std::move(value));
      continue;
    }
    const tenon::Tensor& tensor = values_[id].tensor;
    lowered.signature.tensors.push_back(
        {t.uid_, writer_.storage_of(tensor),
         tensor.storage_offset() * static_cast<int64_t>(item_size(tensor.dtype()))});
  }
  lowered.signature.numbers = std::move(writer_.numbers);
  lowered.graph = graph::assemble(writer_.program, graph::KeepErrors::No).graph;
  return lowered;
}

}  // namespace tenon::builder
