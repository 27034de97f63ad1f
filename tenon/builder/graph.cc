// How a graph is written down and checked.
#include "tenon/builder/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "tenon/builder/lowering.h"
#include "tenon/core/error.h"
#include "tenon/core/tensor.h"
#include "tenon/expr/expression.h"
#include "tenon/graph/fuse/passes.h"
#include "tenon/graph/ir/dead.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/text.h"

namespace tenon::builder {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) all.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::vector<InputKind> inputs_of(const NodeKind& kind) {
  std::vector<InputKind> inputs;
  for (const std::string_view word : words(kind.inputs)) {
    const size_t end = std::min(word.find_first_of("#!?*"), word.size());
    const auto is = [&](char mark) { return word.find(mark) != std::string_view::npos; };
    inputs.push_back({word.substr(0, end), is('#'), is('!'), is('?'), is('*')});
  }
  return inputs;
}

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const auto& kinds : {pointwise_kinds(), tensor_kinds(), norm_kinds()}) {
    for (const NodeKind& kind : kinds) names.push_back(kind.name);
  }
  std::ranges::sort(names);
  return names;
}

const NodeKind& find_kind(std::string_view name) {
  for (const auto& kinds : {pointwise_kinds(), tensor_kinds(), norm_kinds()}) {
    const auto found = std::ranges::find(kinds, name, &NodeKind::name);
    if (found != kinds.end()) return *found;
  }
  throw_error(ErrorKind::Value,
              fmt::format("graph: there is no node '{}'; there are {}", name, fmt::join(kind_names(), ", ")));
}

// Tensors

void TensorAttributes::check_open(const char* setter) const { graph_.check_open(setter); }

TensorAttributes& TensorAttributes::set_uid(uint64_t uid) {
  check_open("set_uid");
  TENON_CHECK(uid > 0, Value, "set_uid: a UID is at least 1");
  const auto known = graph_.by_uid_.find(uid);
  const bool taken = known != graph_.by_uid_.end() && known->second != this && known->second->has_uid_;
  TENON_CHECK(!taken, Value,
              fmt::format("set_uid: UID {} is that of tensor '{}' already", uid, known->second->name()));
  if (const auto own = graph_.by_uid_.find(uid_); own != graph_.by_uid_.end() && own->second == this)
    graph_.by_uid_.erase(own);
  graph_.by_uid_[uid] = this;
  uid_ = uid;
  has_uid_ = true;
  return *this;
}
TensorAttributes& TensorAttributes::set_name(std::string name) {
  check_open("set_name");
  name_ = std::move(name);
  return *this;
}
void check_sizes(const char* function, const Dims& dim) {
  TENON_CHECK(std::ranges::none_of(dim, [](int64_t n) { return n < 0; }), Shape,
              fmt::format("{}: dim must not have a negative size, got {}", function, tenon::to_string(dim)));
}

TensorAttributes& TensorAttributes::set_dim(Dims dim) {
  check_open("set_dim");
  check_sizes("set_dim", dim);
  dim_ = std::move(dim);
  has_dim_ = true;
  return *this;
}
TensorAttributes& TensorAttributes::set_stride(Dims stride) {
  check_open("set_stride");
  stride_ = std::move(stride);
  has_stride_ = true;
  return *this;
}
TensorAttributes& TensorAttributes::set_data_type(std::optional<DType> dtype) {
  check_open("set_data_type");
  dtype_ = dtype;
  has_dtype_ = dtype.has_value();
  return *this;
}
TensorAttributes& TensorAttributes::set_output(bool on) {
  check_open("set_output");
  is_output_ = on;
  is_virtual_ = !on;
  return *this;
}
TensorAttributes& TensorAttributes::set_is_virtual(bool on) {
  check_open("set_is_virtual");
  is_virtual_ = on;
  if (producer_ != kNoProducer) is_output_ = !on;
  return *this;
}
TensorAttributes& TensorAttributes::set_is_pass_by_value(bool on) {
  check_open("set_is_pass_by_value");
  by_value_ = on;
  return *this;
}

// Graphs

std::string name_of(Device device) { return device.is_cpu() ? "the host" : tenon::to_string(device); }

Graph::Graph(GraphOptions options, const Handle* handle) : options_(std::move(options)) {
  if (handle) handle_ = *handle;
  handle_.device = resolved(handle_.device);
}
Graph::~Graph() = default;

void Graph::check_open(const char* what) const {
  TENON_CHECK(
      stage_ < Stage::Operations, Runtime,
      fmt::format("{}: the graph's operations are built (build_operation_graph); nothing can be added "
                  "or set any more",
                  what));
}

void Graph::need(Stage stage, const char* what) const {
  static constexpr std::array<std::string_view, 5> kSteps{"validate()", "build_operation_graph()",
                                                          "create_execution_plans()", "check_support()",
                                                          "build_plans()"};
  if (stage_ >= stage) return;
  const std::span<const std::string_view> missing(kSteps.begin() + static_cast<size_t>(stage_),
                                                  kSteps.begin() + static_cast<size_t>(stage));
  throw_error(ErrorKind::Runtime, fmt::format("{}: call {} first", what, fmt::join(missing, ", ")));
}

TensorAttributes& Graph::new_tensor() {
  const auto id = static_cast<uint32_t>(tensors_.size());
  tensors_.push_back(std::unique_ptr<TensorAttributes>(new TensorAttributes(*this, id)));
  return *tensors_.back();
}

TensorAttributes& Graph::tensor(TensorDescription options) {
  check_open("tensor");
  check_sizes("tensor", options.dim);
  if (options.uid) {
    const auto known = by_uid_.find(*options.uid);
    TENON_CHECK(
        known == by_uid_.end(), Value,
        fmt::format("tensor: UID {} is that of tensor '{}' already", *options.uid, known->second->name()));
  }
  TensorAttributes& t = new_tensor();
  t.name_ = std::move(options.name);
  // A number has one element, whatever is said of it.
  if (!options.dim.empty() || options.is_pass_by_value || !options.is_virtual)
    t.set_dim(std::move(options.dim));
  if (!options.stride.empty()) t.set_stride(std::move(options.stride));
  if (options.data_type) t.set_data_type(*options.data_type);
  if (options.uid) t.set_uid(*options.uid);
  t.is_virtual_ = options.is_virtual;
  t.by_value_ = options.is_pass_by_value;
  return t;
}

TensorAttributes& Graph::tensor_like(const tenon::Tensor& like, std::string name) {
  const bool is_number = like.device().is_cpu() && !handle_.device.is_cpu() && like.numel() == 1;
  TENON_CHECK(like.is_meta() || is_number || same_device(like.device(), handle_.device), Device,
              fmt::format("tensor_like: the tensor is on {}; plans of the graph run on {}",
                          tenon::to_string(like.device()), name_of(handle_.device)));
  return tensor({.name = std::move(name),
                 .dim = like.sizes().to_dims(),
                 .stride = like.strides().to_dims(),
                 .data_type = like.dtype(),
                 .is_pass_by_value = is_number});
}

TensorAttributes& Graph::tensor_like(const TensorAttributes& like, std::string name) {
  const bool made = like.producer_ != TensorAttributes::kNoProducer;
  TENON_CHECK(!made || like.graph_.stage_ >= Stage::Validated, Value,
              fmt::format("tensor_like: the sizes of '{}' follow from a node; validate() its graph first",
                          like.name()));
  TensorAttributes& t = tensor({.name = std::move(name),
                                .dim = like.dim(),
                                .stride = like.stride(),
                                .data_type = like.data_type(),
                                .is_pass_by_value = like.by_value_});
  t.constant_ = like.constant_;
  return t;
}

TensorAttributes& Graph::tensor_scalar(const Scalar& value, std::optional<DType> data_type,
                                       std::string name) {
  TENON_CHECK(!value.is_complex(), Type, "tensor_scalar: a number that is complex cannot be part of a graph");
  TensorAttributes& t = tensor({.name = std::move(name), .data_type = data_type, .is_pass_by_value = true});
  t.constant_ = value;
  return t;
}

std::vector<TensorAttributes*> Graph::node(std::string_view kind_name,
                                           std::span<TensorAttributes* const> inputs, Attributes attributes,
                                           std::string name, std::optional<DType> compute_type) {
  const NodeKind& kind = find_kind(kind_name);
  check_open(kind.name.data());
  const std::vector<InputKind> declared = inputs_of(kind);
  std::vector<std::string_view> known;
  for (std::string_view attribute : words(kind.attributes)) {
    const bool required = attribute.ends_with('!');
    if (required) attribute.remove_suffix(1);
    TENON_CHECK(!required || attributes.contains(attribute), Type,
                fmt::format("{}: attribute `{}` is missing", kind.name, attribute));
    known.push_back(attribute);
  }
  for (const InputKind& input : declared) {
    if (input.is_number) known.push_back(input.name);
  }
  const bool list = !declared.empty() && declared.back().is_list;
  TENON_CHECK(list ? !inputs.empty() : inputs.size() <= declared.size(), Type,
              fmt::format("{}: {} inputs; it takes {}", kind.name, inputs.size(), kind.inputs));
  for (size_t i = 0; !list && i < declared.size(); ++i) {
    const bool there = i < inputs.size() && inputs[i];
    TENON_CHECK(there || declared[i].is_optional, Type,
                fmt::format("{}: input `{}` is missing", kind.name, declared[i].name));
  }
  for (const auto& [attribute, value] : attributes) {
    TENON_CHECK(std::ranges::find(known, attribute) != known.end(), Type,
                fmt::format("{}: there is no attribute `{}`; there are: {}", kind.name, attribute,
                            fmt::join(known, " ")));
  }
  Node& node = nodes_.emplace_back(
      Node{.kind = &kind, .name = {}, .inputs = {}, .outputs = {}, .attributes = {}, .compute_type = {}});
  node.name = name.empty() ? fmt::format("{}_{}", kind.name, nodes_.size() - 1) : std::move(name);
  node.attributes = std::move(attributes);
  node.compute_type = compute_type ? compute_type : options_.compute;
  try {
    for (const TensorAttributes* input : inputs) {
      TENON_CHECK(!input || &input->graph_ == this, Value,
                  fmt::format("{}: tensor '{}' is another graph's", kind.name, input ? input->name() : ""));
      node.inputs.push_back(input ? input->id_ : Node::kAbsent);
    }
  } catch (...) {
    nodes_.pop_back();
    throw;
  }
  std::vector<TensorAttributes*> outputs;
  for (const std::string_view output : words(kind.outputs)) {
    TensorAttributes& t = new_tensor();
    t.name_ = fmt::format("{}::{}", node.name, output);
    t.is_virtual_ = true;
    t.producer_ = static_cast<uint32_t>(nodes_.size() - 1);
    node.outputs.push_back(t.id_);
    outputs.push_back(&t);
  }
  return outputs;
}

TensorAttributes* Graph::find_tensor(uint64_t uid) const noexcept {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : found->second;
}

std::vector<bool> Graph::used_tensors() const {
  std::vector<bool> used(tensors_.size());
  for (const Node& node : nodes_) {
    for (const uint32_t id : node.inputs) {
      if (id != Node::kAbsent) used[id] = true;
    }
  }
  return used;
}

// A node reads a number before it runs: a tensor of the host serves as well as a number that was declared
// one.
void Graph::pass_numbers_by_value() {
  for (const Node& node : nodes_) {
    const std::vector<InputKind> kinds = inputs_of(*node.kind);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == Node::kAbsent || !kinds[std::min(i, kinds.size() - 1)].is_number) continue;
      TensorAttributes& t = *tensors_[node.inputs[i]];
      if (t.by_value_) continue;
      const bool one = std::ranges::all_of(t.dim_, [](int64_t n) { return n == 1; });
      const char* const why = t.producer_ != TensorAttributes::kNoProducer ? "a node makes it"
                              : !handle_.device.is_cpu()                   ? "it is in the device's memory"
                              : !one                                       ? "it has not one element"
                                                                           : nullptr;
      TENON_CHECK(
          !why, Value,
          fmt::format("graph: node '{}': {}: input `{}` is a number, which is read before the node runs, "
                      "and tensor '{}' cannot be it: {}; use tensor_scalar, or "
                      "tensor(is_pass_by_value=True)",
                      node.name, node.kind->name, kinds[i].name, t.name_, why));
      t.by_value_ = true;
    }
  }
}

void Graph::check_tensors() const {
  const std::vector<bool> used = used_tensors();
  bool has_output = false;
  for (const auto& owned : tensors_) {
    const TensorAttributes& t = *owned;
    const auto check = [&](bool holds, ErrorKind kind, std::string_view what) {
      if (!holds) throw_error(kind, fmt::format("graph: tensor '{}' {}", t.name_, what));
    };
    has_output |= t.is_output_;
    const bool made = t.producer_ != TensorAttributes::kNoProducer;
    check(made || !t.is_output_, ErrorKind::Value, "is an output, and no node makes it");
    check(!made || !t.by_value_, ErrorKind::Value, "is passed by value, and a node makes it");
    check(!t.has_dim_ || !t.has_stride_ || t.stride_.size() == t.dim_.size(), ErrorKind::Shape,
          fmt::format("has strides {} for sizes {}", tenon::to_string(t.stride_), tenon::to_string(t.dim_)));
    if (made || !used[t.id_]) continue;
    check(!t.is_virtual_, ErrorKind::Value, "is virtual, and no node makes it");
    check(t.has_dtype_ || options_.io || t.by_value_, ErrorKind::Value,
          "has no data type: set_data_type(), or the graph's io_data_type, says it");
    check(!t.by_value_ || t.dim_.empty() || std::ranges::all_of(t.dim_, [](int64_t n) { return n == 1; }),
          ErrorKind::Shape, "is passed by value, and has more than one element");
    const DType dtype = t.dtype_.value_or(options_.io.value_or(DType::Float32));
    check(!t.by_value_ || (has_arithmetic(dtype) && !is_complex(dtype)), ErrorKind::Type,
          fmt::format("is passed by value, and {} is no type of real numbers", tenon::name(dtype)));
  }
  TENON_CHECK(has_output, Value, "graph: no tensor is an output (set_output)");
}

void Graph::give_uids() {
  std::erase_if(by_uid_, [](const auto& known) { return !known.second->has_uid_; });
  uint64_t next = 1;
  for (const auto& t : tensors_) {
    if (t->has_uid_) continue;
    while (by_uid_.contains(next)) ++next;
    t->uid_ = next;
    by_uid_[next] = t.get();
  }
}

void Graph::validate() {
  check_open("validate");
  pass_numbers_by_value();
  check_tensors();
  give_uids();
  lowered_ = std::make_unique<Lowered>(Lowering(*this).run());
  stage_ = Stage::Validated;
}

void Graph::build_operation_graph() {
  check_open("build_operation_graph");
  need(Stage::Validated, "build_operation_graph");
  // What was set since then.
  validate();
  graph::Graph& g = lowered_->graph;
  graph::remove_dead(g);
  g.renumber();
  graph::check(g, "build_operation_graph");
  lowered_->key = expr::to_string(graph::key_of(g));
  stage_ = Stage::Operations;
}

std::string Graph::key() const {
  need(Stage::Operations, "key");
  return lowered_->key;
}

std::string Graph::to_string() const {
  need(Stage::Operations, "to_string");
  return graph::to_string(lowered_->graph);
}

}  // namespace tenon::builder
