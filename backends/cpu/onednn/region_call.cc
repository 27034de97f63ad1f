#include "backends/cpu/onednn/region_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/cpu/region/blocks.h"
#include "tenon/core/tensor_impl.h"
#include "tenon/generated/operators.h"

namespace tenon::cpu::onednn {
namespace {

using graph::kNone;

/// Functions of one argument. oneDNN has others, whose result for NaN is a number (relu, exp, elu, clip).
struct Function {
  OperatorHandle op;
  int algorithm;
  float alpha;
  double saved;  ///< Nanoseconds of an element, as measured: ours have the same bits on every CPU.
};
constexpr Function kFunctions[] = {
    {operators::tanh, 0x21, 0, 0.1},       {operators::square, 0x23, 0, 0},
    {operators::abs, 0x24, 0, 0},          {operators::sqrt, 0x25, 0, 0},
    {operators::sigmoid, 0x29, 0, 0.1},    {operators::silu, 0x2c, 1, 0.3},
    {operators::_gelu_tanh, 0x2b, 0, 0.4}, {operators::_gelu_erf, 0x31, 0, 1.0},
};

/// Functions of two arguments; the second may be a number.
struct Binary {
  OperatorHandle of_tensors, of_number;
  int algorithm;
  bool commutes;
};
constexpr int kAdd = 0x1fff0;
constexpr Binary kBinaries[] = {{operators::add_Tensor, operators::add_Scalar, kAdd, true},
                                {operators::mul_Tensor, operators::mul_Scalar, 0x1fff1, true},
                                {operators::div_Tensor, operators::div_Scalar, 0x1fff4, false},
                                {operators::sub_Tensor, operators::sub_Scalar, 0x1fff5, false}};

/// aten::add.Tensor of aten::add_.Tensor.
OperatorHandle functional(OperatorHandle op) {
  return op.entry().functional() ? OperatorHandle(*op.entry().functional()) : op;
}

/// Its own strides, where oneDNN reads those: one dimension without gaps, and no steps back or of nothing.
std::optional<Layout> layout_of(const graph::Geometry& g) {
  Layout made{g.sizes, g.strides};
  int64_t dense = 1;
  bool has_unit = g.sizes.size() < 2;
  for (size_t i = g.sizes.size(); i-- > 0;) {
    // A dimension of one element is never stepped over: its stride may be anything, and is replaced.
    if (g.sizes[i] == 1) made.strides[i] = dense;
    if (made.strides[i] < 1) return std::nullopt;
    dense = std::max(dense, made.strides[i] * g.sizes[i]);
    has_unit |= made.strides[i] == 1;
  }
  return has_unit ? std::optional(std::move(made)) : std::nullopt;
}

bool is_dense(const graph::Geometry& g) {
  const Dims dense = contiguous_strides(g.sizes);
  for (size_t i = 0; i < g.sizes.size(); ++i) {
    if (g.sizes[i] != 1 && g.strides[i] != dense[i]) return false;
  }
  return true;
}

class Maker {
 public:
  Maker(const graph::Graph& g, const graph::Node& node)
      : g_(g), node_(node), region_(*node.region), anchor_(anchor_node(region_)) {}

  RegionCall make() {
    for (const graph::Use& u : g_.uses(anchor_)) {
      if (u.geometry == kNone) continue;
      operands_.push_back(&g_.geometry(u.geometry));
    }
    current_ = g_.defs(anchor_)[0];
    call_.refusal = region_.kind == graph::RegionKind::Matmul ? product() : convolution();
    if (call_.refusal.empty()) call_.refusal = operands();
    if (call_.refusal.empty()) take_epilogue();
    return std::move(call_);
  }

 private:
  std::string product() {
    if (operands_.size() < 3) return {};
    // A bias, two matrices, and a factor for each.
    call_.source = anchor_.op.traits().anchor.left;
    call_.weights = call_.source + 1;
    for (const graph::Argument& a : g_.arguments(anchor_).subspan(3)) {
      const auto factor = number(a);
      if (!factor) return "a factor is complex";
      call_.ones.push_back(*factor);
    }
    const std::optional<Layout> bias = broadcast(*operands_[0]);
    if (!bias) return "the bias is neither a row nor a whole matrix";
    add_binary(kAdd, *bias, {Source::Kind::Operand, 0});
    return {};
  }

  std::string convolution() {
    const std::span<const graph::Argument> arguments = g_.arguments(anchor_);
    const Stack& attributes = g_.attributes();
    const auto list = [&](size_t i) {
      return Dims(attributes.at<std::vector<int64_t>>(arguments[i].range.first));
    };
    const size_t ndim = operands_[0]->sizes.size();
    if (anchor_.op != operators::convolution) return "it is not aten::convolution";
    if (attributes.at<bool>(arguments[6].range.first)) return "it is a transposed convolution";
    if (ndim < 3 || ndim != operands_[1]->sizes.size()) return "it is a convolution of one image alone";
    Description& d = call_.description;
    d.is_convolution = true;
    d.window = {.strides = list(3), .dilations = list(5), .padding = list(4)};
    for (Dims* all : {&d.window.strides, &d.window.padding, &d.window.dilations}) {
      // One number is for all dimensions.
      if (all->size() == 1) all->resize(ndim - 2, (*all)[0]);
    }
    groups_ = attributes.at<int64_t>(arguments[8].range.first);
    if (operands_.size() < 3) return {};
    if (!is_dense(*operands_[2])) return "the bias has gaps";
    d.bias = {operands_[2]->sizes, contiguous_strides(operands_[2]->sizes)};
    call_.bias = {Source::Kind::Operand, 2};
    return {};
  }

  /// The rest of what a call of oneDNN's wants.
  std::string operands() {
    Description& d = call_.description;
    for (const graph::Geometry* o : operands_) {
      if (o->dtype != DType::Float32)
        return fmt::format("it computes float32, and an operand is {}", name(o->dtype));
      if (o->numel() == 0) return "an operand has no elements";
    }
    const std::optional<Layout> source = layout_of(*operands_[call_.source]);
    const std::optional<Layout> weights = layout_of(*operands_[call_.weights]);
    if (!source || !weights || !is_dense(geometry(current_)))
      return "an operand lies in memory neither in rows nor in columns";
    d.source = *source;
    d.weights = groups_ == 1 ? *weights : grouped(*weights);
    const Dims& sizes = geometry(current_).sizes;
    d.result = {sizes, contiguous_strides(sizes)};
    for (const graph::Def& def : g_.defs(node_)) {
      for (const graph::Use& u : g_.uses(node_)) {
        if (u.value != kNone && g_.values[u.value].storage == g_.values[def.value].storage)
          return "a result is written over what is read";
      }
    }
    return {};
  }

  Layout grouped(const Layout& weights) const {
    Layout made;
    made.sizes.push_back(groups_);
    made.strides.push_back(weights.strides[0] * (weights.sizes[0] / groups_));
    for (size_t i = 0; i < weights.sizes.size(); ++i) {
      made.sizes.push_back(i ? weights.sizes[i] : weights.sizes[0] / groups_);
      made.strides.push_back(weights.strides[i]);
    }
    return made;
  }

  void take_epilogue() {
    std::vector<bool> others = prologue();
    others[region_.anchor_member] = true;
    // Calls that read what there is so far, one after the other.
    for (std::optional<uint32_t> next; (next = only_reader()) && take(region_.members[*next]);) {
      others[*next] = true;
      current_ = g_.defs(region_.members[*next])[0];
    }
    call_.result = current_;
    for (uint32_t i = 0; i < others.size(); ++i) {
      if (!others[i]) call_.rest.push_back(i);
    }
    Description& d = call_.description;
    // A row that is added first may be a bias, which costs less.
    if (d.is_convolution || d.post_ops.empty() || d.post_ops[0].algorithm != kAdd) return;
    const Dims& sizes = d.post_ops[0].operand.sizes;
    if (sizes.back() != d.result.sizes.back() ||
        std::any_of(sizes.begin(), sizes.end() - 1, [](int64_t n) { return n != 1; }))
      return;
    d.bias = d.post_ops[0].operand;
    call_.bias = call_.post_ops[0];
    d.post_ops.erase(d.post_ops.begin());
    call_.post_ops.erase(call_.post_ops.begin());
  }

  /// The members that make the anchor's operands.
  std::vector<bool> prologue() const {
    std::vector<bool> feeds(region_.members.size());
    std::vector<graph::ValueId> wanted;
    const auto read = [&](const graph::Node& member) {
      for (const graph::Use& u : g_.uses(member)) wanted.push_back(u.value);
    };
    read(anchor_);
    for (size_t i = region_.anchor_member; i-- > 0;) {
      for (const graph::Def& d : g_.defs(region_.members[i])) {
        if (std::find(wanted.begin(), wanted.end(), d.value) != wanted.end()) feeds[i] = true;
      }
      if (feeds[i]) read(region_.members[i]);
    }
    return feeds;
  }

  /// The one member that reads the value so far, if there is no other reader.
  std::optional<uint32_t> only_reader() const {
    for (const graph::Def& d : g_.defs(node_)) {
      if (d.value == current_.value) return std::nullopt;
    }
    std::optional<uint32_t> reader;
    for (uint32_t i = 0; i < region_.members.size(); ++i) {
      for (const graph::Use& u : g_.uses(region_.members[i])) {
        if (u.value != current_.value) continue;
        if (reader || u.geometry != current_.geometry) return std::nullopt;
        reader = i;
      }
    }
    return reader;
  }

  /// Adds a member to the post-ops, if it is one.
  bool take(const graph::Node& member) {
    const std::span<const graph::Def> defs = g_.defs(member);
    if (defs.size() != 1 || defs[0].geometry != current_.geometry) return false;
    const OperatorHandle called = functional(member.op);
    for (const Function& f : kFunctions) {
      if (f.op != called) continue;
      call_.description.post_ops.push_back({f.algorithm, f.alpha});
      call_.post_ops.emplace_back();
      call_.saved += f.saved * static_cast<double>(geometry(current_).numel());
      return true;
    }
    for (const Binary& b : kBinaries) {
      if (b.of_tensors == called || b.of_number == called)
        return take_binary(member, b, b.of_number == called);
    }
    return false;
  }

  bool take_binary(const graph::Node& member, const Binary& b, bool has_number) {
    const std::span<const graph::Argument> arguments = g_.arguments(member);
    const std::span<const graph::Use> uses = g_.uses(member);
    // self, other, and in sums a factor of the other one
    std::optional<Number> factor = Number{kNone, 1};
    if (arguments.size() > 2) factor = number(arguments[2]);
    if (!factor) return false;
    if (has_number) {
      const std::optional<Number> other = number(arguments[1]);
      if (!other) return false;
      const Dims ones(geometry(current_).sizes.size(), 1);
      add_binary(b.algorithm, {ones, ones}, {Source::Kind::Number, 0, *other});
    } else if (uses.size() == 2) {
      const bool is_first = uses[0].value == current_.value;
      if (!is_first && !b.commutes) return false;
      const graph::Use& other = uses[is_first ? 1 : 0];
      const std::span<const graph::Use> all = g_.uses(node_);
      const auto place = std::find(all.begin(), all.end(), other);
      const std::optional<Layout> layout = broadcast(g_.geometry(other.geometry));
      if (place == all.end() || !layout) return false;
      add_binary(b.algorithm, *layout, {Source::Kind::Use, static_cast<uint32_t>(place - all.begin())});
    } else {
      return false;
    }
    call_.ones.push_back(*factor);
    return true;
  }

  void add_binary(int algorithm, const Layout& operand, const Source& from) {
    call_.description.post_ops.push_back({algorithm, 0, 0, true, operand});
    call_.post_ops.push_back(from);
  }

  /// An operand with as many dimensions as the result. Nothing unless it is float32 without gaps, and one
  /// value, one for each column or channel, or one for each element.
  std::optional<Layout> broadcast(const graph::Geometry& operand) const {
    const Dims& to = geometry(current_).sizes;
    if (operand.dtype != DType::Float32 || operand.sizes.size() > to.size() || !is_dense(operand))
      return std::nullopt;
    Dims sizes(to.size(), 1);
    std::copy(operand.sizes.begin(), operand.sizes.end(), sizes.end() - operand.sizes.size());
    const size_t channel = call_.description.is_convolution ? 1 : to.size() - 1;
    bool per_channel = true;
    for (size_t i = 0; i < sizes.size(); ++i) per_channel &= i == channel || sizes[i] == 1;
    if (!per_channel && !(sizes == to)) return std::nullopt;
    return Layout{sizes, contiguous_strides(sizes)};
  }

  /// A real number of a call's.
  std::optional<Number> number(const graph::Argument& a) const {
    if (const auto numbers = g_.numbers_of(a); !numbers.empty()) {
      if (g_.numbers[numbers[0]] == Scalar::Kind::Complex) return std::nullopt;
      return Number{numbers[0], 0};
    }
    const Stack& attributes = g_.attributes();
    if (a.kind != graph::Argument::Kind::Attribute || attributes.tag(a.range.first) != CellTag::Scalar)
      return std::nullopt;
    const Scalar& value = attributes.at<Scalar>(a.range.first);
    if (value.is_complex()) return std::nullopt;
    return Number{kNone, value.to_double()};
  }

  const graph::Geometry& geometry(const graph::Def& d) const { return g_.geometry(d.geometry); }

  const graph::Graph& g_;
  const graph::Node& node_;
  const graph::Region& region_;
  const graph::Node& anchor_;
  std::vector<const graph::Geometry*> operands_;  // those of the anchor that are there
  graph::Def current_;                            // what the call gives so far
  int64_t groups_ = 1;
  RegionCall call_;
};

}  // namespace

RegionCall call_of(const graph::Graph& g, const graph::Node& node) { return Maker(g, node).make(); }

}  // namespace tenon::cpu::onednn
