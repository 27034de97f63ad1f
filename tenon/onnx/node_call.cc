#include "tenon/onnx/node_call.h"

#include <fmt/format.h>

#include "tenon/io/utf8.h"
#include "tenon/onnx/run.h"
#include "tenon/onnx/types.h"

namespace tenon::onnx {
namespace {

/// The elements of a tensor of any strides, as T.
template <class T>
std::vector<T> values(const Tensor& tensor, DType dtype) {
  TENON_CHECK(!tensor.is_meta(), NotImplemented,
              "the values of an input are needed here, and a plan knows only its sizes");
  const bool is_plain = tensor.dtype() == dtype && tensor.device() == Device() && tensor.is_contiguous();
  const Tensor dense = is_plain ? tensor : tensor.detach().to(Device(), dtype).contiguous();
  const T* const begin = dense.data_ptr<T>();
  return {begin, begin + dense.numel()};
}

}  // namespace

const Attribute* Node::find(std::string_view attribute) const noexcept {
  for (const Attribute& one : attributes)
    if (one.name == attribute) return &one;
  return nullptr;
}
std::string Node::text() const {
  if (!name.empty()) return fmt::format("node '{}' ({})", io::shown(name), op);
  return fmt::format("a node ({})", op);
}

void NodeCall::refuse(ErrorKind kind, std::string_view what) const {
  throw_error(kind, fmt::format("{}: {}", node_.op, what));
}

bool NodeCall::has(size_t i) const noexcept {
  return i < node_.inputs.size() && node_.inputs[i] != kAbsent && !frame_.is_absent(node_.inputs[i]);
}
Item NodeCall::item(size_t i) const {
  return i < node_.inputs.size() && node_.inputs[i] != kAbsent ? frame_.item(node_.inputs[i]) : Item{};
}
Tensor NodeCall::optional(size_t i) const { return has(i) ? tensor(i) : Tensor(); }
const Tensor& NodeCall::tensor(size_t i) const {
  TENON_NODE_CHECK(*this, i < node_.inputs.size() && node_.inputs[i] != kAbsent, Value,
                   fmt::format("it has no input {}", i));
  const Tensor& out = frame_.tensor(node_.inputs[i]);
  TENON_NODE_CHECK(*this, out.defined(), Value, fmt::format("input {} is no tensor", i));
  return out;
}
std::vector<Tensor> NodeCall::tensors(size_t i) const {
  std::vector<Tensor> out;
  for (; i < num_inputs(); ++i) out.push_back(tensor(i));
  return out;
}
std::vector<Tensor> NodeCall::sequence(size_t i) const {
  const Item found = item(i);
  TENON_NODE_CHECK(*this, found.sequence != nullptr, Value, fmt::format("input {} is no sequence", i));
  return *found.sequence;
}

Dims NodeCall::ints(size_t i) const {
  const Tensor& value = tensor(i);
  TENON_NODE_CHECK(*this, is_integral(value.dtype(), true), Type,
                   fmt::format("input {} is of {}, expected integers", i, name(value.dtype())));
  const auto all = values<int64_t>(value, kInt64);
  return Dims(std::span<const int64_t>(all));
}
std::vector<double> NodeCall::numbers(size_t i) const { return values<double>(tensor(i), kFloat64); }
int64_t NodeCall::integer(size_t i) const {
  const Dims all = ints(i);
  TENON_NODE_CHECK(*this, all.size() == 1, Shape,
                   fmt::format("input {} has {} elements, expected 1", i, all.size()));
  return all[0];
}
double NodeCall::number(size_t i) const {
  const std::vector<double> all = numbers(i);
  TENON_NODE_CHECK(*this, all.size() == 1, Shape,
                   fmt::format("input {} has {} elements, expected 1", i, all.size()));
  return all[0];
}
bool NodeCall::flag(size_t i) const { return number(i) != 0; }

template <class T>
const T* NodeCall::attribute(std::string_view name, const char* type) const {
  const Attribute* const found = node_.find(name);
  if (!found) return nullptr;
  const T* const value = std::get_if<T>(&found->value);
  TENON_NODE_CHECK(*this, value != nullptr, Type, fmt::format("attribute `{}` is not {}", name, type));
  return value;
}
int64_t NodeCall::integer(std::string_view name, int64_t otherwise) const {
  const auto* value = attribute<int64_t>(name, "an integer");
  return value ? *value : otherwise;
}
double NodeCall::number(std::string_view name, double otherwise) const {
  // Some writers have a whole number where the standard has any.
  const Attribute* const found = node_.find(name);
  if (found && std::holds_alternative<int64_t>(found->value))
    return static_cast<double>(std::get<int64_t>(found->value));
  const auto* value = attribute<float>(name, "a number");
  return value ? *value : otherwise;
}
std::string_view NodeCall::text(std::string_view name, std::string_view otherwise) const {
  const auto* value = attribute<std::string>(name, "a text");
  return value ? std::string_view(*value) : otherwise;
}
std::optional<Dims> NodeCall::ints(std::string_view name) const {
  const auto* value = attribute<std::vector<int64_t>>(name, "a list of integers");
  return value ? std::optional(Dims(std::span<const int64_t>(*value))) : std::nullopt;
}
std::vector<double> NodeCall::numbers(std::string_view name) const {
  const auto* value = attribute<std::vector<float>>(name, "a list of numbers");
  return value ? std::vector<double>(value->begin(), value->end()) : std::vector<double>();
}
std::vector<std::string> NodeCall::texts(std::string_view name) const {
  const auto* value = attribute<std::vector<std::string>>(name, "a list of texts");
  return value ? *value : std::vector<std::string>();
}
const Tensor* NodeCall::tensor(std::string_view name) const { return attribute<Tensor>(name, "a tensor"); }
const Graph& NodeCall::graph(std::string_view name) const {
  const auto* value = attribute<std::shared_ptr<Graph>>(name, "a graph");
  TENON_NODE_CHECK(*this, value != nullptr, Value, fmt::format("attribute `{}` is missing", name));
  return **value;
}
std::optional<DType> NodeCall::dtype(std::string_view name) const {
  const auto* value = attribute<int64_t>(name, "an integer");
  if (!value || *value == 0) return std::nullopt;
  const std::optional<DType> dtype = type_of(*value);
  TENON_NODE_CHECK(*this, dtype.has_value(), NotImplemented,
                   fmt::format("attribute `{}` is {}, which Tenon does not have", name, type_name(*value)));
  return dtype;
}
std::optional<Dims> NodeCall::ints(std::string_view name, size_t i) const {
  return has(i) ? std::optional(ints(i)) : ints(name);
}

int64_t NodeCall::axis(int64_t axis, size_t num_dims) const {
  const auto n = static_cast<int64_t>(num_dims);
  TENON_NODE_CHECK(*this, -n <= axis && axis < n, Index,
                   fmt::format("axis {} of a tensor with {} dimensions", axis, n));
  return axis < 0 ? axis + n : axis;
}

void NodeCall::set(size_t i, Item result) {
  if (wants(i)) frame_.set(node_.outputs[i], std::move(result));
}
void NodeCall::set(size_t i, std::vector<Tensor> sequence) {
  set(i, Item{{}, std::make_shared<const std::vector<Tensor>>(std::move(sequence))});
}

std::vector<Item> NodeCall::run(const Graph& graph, std::span<const Item> inputs) const {
  TENON_NODE_CHECK(*this, inputs.size() == graph.inputs.size(), Value,
                   fmt::format("its graph takes {} inputs, and gets {}", graph.inputs.size(), inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) frame_.set(graph.inputs[i], inputs[i]);
  return frame_.run(graph);
}

}  // namespace tenon::onnx
