#include "tenon/onnx/join_quantized.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "tenon/core/tensor.h"

namespace tenon::onnx {
namespace {

bool is_byte(DType dtype) { return dtype == kInt8 || dtype == kUInt8; }

/// What a DequantizeLinear reads: integers, their scale and what they count from.
struct Quantized {
  Slot values = kAbsent, scale = kAbsent, zero = kAbsent;
};

class Joiner {
 public:
  Joiner(const Program& program, Graph& graph)
      : program_(program), graph_(graph), is_removed_(graph.nodes.size()) {
    for (const Slot slot : graph.outputs) add_use(slot);
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      add_uses(graph.nodes[i]);
      for (const Slot slot : graph.nodes[i].outputs)
        if (slot != kAbsent) makers_[slot] = i;
    }
  }

  void run() {
    for (Node& node : graph_.nodes)
      if (node.op == "QuantizeLinear" && node.outputs.size() == 1) join(node);
    // From the end on: what only a removed node reads goes with it.
    std::vector<Node> kept;
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      Node& node = graph_.nodes[i];
      const bool is_idle = node.op == "DequantizeLinear" && node.outputs.size() == 1 &&
                           node.outputs[0] != kAbsent && uses_of(node.outputs[0]) == 0;
      if (!is_removed_[i] && !is_idle) {
        kept.push_back(std::move(node));
        continue;
      }
      for (const Slot slot : node.inputs) drop_use(slot);
    }
    std::ranges::reverse(kept);
    graph_.nodes = std::move(kept);
  }

 private:
  void add_use(Slot slot) {
    if (slot >= 0 && slot != kAbsent) ++uses_[slot];
  }
  void drop_use(Slot slot) {
    if (slot >= 0 && slot != kAbsent) --uses_[slot];
  }
  int64_t uses_of(Slot slot) const {
    const auto found = uses_.find(slot);
    return found == uses_.end() ? 0 : found->second;
  }
  void add_uses(const Node& node) {
    for (const Slot slot : node.inputs) add_use(slot);
    each_graph(node, [&](const Graph& inner) {
      for (const Slot slot : inner.outputs) add_use(slot);
      for (const Node& each : inner.nodes) add_uses(each);
    });
  }

  /// The node of this graph that makes a value; null for inputs, constants and values from outside.
  Node* maker(Slot slot) const {
    const auto found = makers_.find(slot);
    return found == makers_.end() ? nullptr : &graph_.nodes[found->second];
  }
  /// The same where nothing else reads the value.
  Node* only_maker(Slot slot) const { return uses_of(slot) == 1 ? maker(slot) : nullptr; }
  /// Null where a value is no constant, or one of a dtype that Tenon does not have.
  const Tensor* constant(Slot slot) const {
    if (slot >= 0) return nullptr;
    const Tensor& value = program_.constants[static_cast<size_t>(~slot)].value;
    return value.defined() ? &value : nullptr;
  }
  bool is_number(Slot slot) const {
    const Tensor* value = constant(slot);
    return value && value->numel() == 1;
  }

  static Slot input(const Node& node, size_t i) { return i < node.inputs.size() ? node.inputs[i] : kAbsent; }
  static bool is_plain(const Node& node) {
    return node.row && (node.domain.empty() || node.domain == "com.microsoft") && !node.find("block_size") &&
           !node.find("output_dtype") && !node.find("precision");
  }
  /// What a value is dequantized from, if it is of 8 bits; with one scale, or one for each place of `axis`.
  std::optional<Quantized> bytes(Slot slot, std::optional<int64_t> axis = {}) const {
    const Node* node = maker(slot);
    if (!node || node->op != "DequantizeLinear" || !is_plain(*node)) return std::nullopt;
    const Quantized q{input(*node, 0), input(*node, 1), input(*node, 2)};
    const Tensor* scale = constant(q.scale);
    // Scales of float16 make results of float16.
    if (!scale || scale->dtype() != kFloat32) return std::nullopt;
    const Tensor *values = constant(q.values), *zero = constant(q.zero);
    if (scale->numel() != 1) {
      if (!axis || !values || scale->sizes().size() != 1) return std::nullopt;
      const Attribute* given = node->find("axis");
      const int64_t* of = given ? std::get_if<int64_t>(&given->value) : nullptr;
      const auto rank = static_cast<int64_t>(values->sizes().size());
      int64_t along = given ? (of ? *of : -rank - 1) : 1;
      if (along < 0) along += rank;
      if (along != *axis || (along == 1 && rank != 2)) return std::nullopt;
    }
    if (q.zero != kAbsent && !zero) return std::nullopt;
    const Tensor* typed = zero ? zero : values;
    if (!typed || !is_byte(typed->dtype())) return std::nullopt;
    return q;
  }

  /// How many products a sum of a times b has; nothing where the file does not say.
  std::optional<int64_t> depth(const Quantized& a, const Quantized& b, bool is_turned = false) const {
    if (const Tensor* right = constant(b.values)) {
      const IntArrayRef sizes = right->sizes();
      if (sizes.empty()) return std::nullopt;
      return sizes.size() == 1 || is_turned ? sizes.back() : sizes[sizes.size() - 2];
    }
    const Tensor* left = constant(a.values);
    if (!left || left->sizes().empty()) return std::nullopt;
    return left->sizes().back();
  }
  /// Whether int32 holds all sums, and float32 what they are multiplied by, as the standard computes it.
  bool fits(std::optional<int64_t> depth, Slot bias, Slot left, Slot right, Slot result) const {
    constexpr int64_t kLargest = 255 * 255;
    int64_t most = 0;
    if (const Tensor* added = constant(bias))
      for (int64_t i = 0; i < added->numel(); ++i)
        most = std::max(most, std::abs(int64_t{added->data_ptr<int32_t>()[i]}));
    if (!depth || *depth > (INT32_MAX - most) / kLargest) return false;
    const float a = *constant(left)->data_ptr<float>(), y = *constant(result)->data_ptr<float>();
    const Tensor& b = *constant(right);
    for (int64_t i = 0; i < b.numel(); ++i) {
      const float unit = a * b.data_ptr<float>()[i];
      if (!std::isnormal(unit) || !std::isfinite(unit / y)) return false;
    }
    return std::isnormal(a) && std::isnormal(y);
  }

  /// The integers that a bias of real numbers is made of, in units of `left` times `right`; absent stays
  /// absent.
  std::optional<Slot> bias(Slot slot, Slot left, Slot right) const {
    if (slot == kAbsent) return kAbsent;
    const Node* node = maker(slot);
    if (!node || node->op != "DequantizeLinear" || !is_plain(*node)) return std::nullopt;
    const Tensor *values = constant(input(*node, 0)), *scale = constant(input(*node, 1));
    if (!values || values->dtype() != kInt32 || !scale || scale->dtype() != kFloat32) return std::nullopt;
    if (const Slot zero = input(*node, 2); zero != kAbsent) {
      const Tensor* numbers = constant(zero);
      if (!numbers || numbers->dtype() != kInt32) return std::nullopt;
      for (int64_t i = 0; i < numbers->numel(); ++i)
        if (numbers->data_ptr<int32_t>()[i] != 0) return std::nullopt;
    }
    const Tensor &a = *constant(left), &b = *constant(right);  // of bytes()
    const int64_t count = std::max(b.numel(), scale->numel());
    for (int64_t i = 0; i < count; ++i) {
      const auto at = [&](const Tensor& t) { return double{t.data_ptr<float>()[t.numel() == 1 ? 0 : i]}; };
      if ((scale->numel() != 1 && scale->numel() != count) || (b.numel() != 1 && b.numel() != count))
        return std::nullopt;
      const double unit = at(a) * at(b);
      if (!(std::abs(at(*scale) - unit) <= 1e-6 * unit)) return std::nullopt;
    }
    return input(*node, 0);
  }

  size_t place(const Node& node) const { return static_cast<size_t>(&node - graph_.nodes.data()); }

  /// Makes `node` the operator `op`, which gives what `last` gave.
  void become(Node& node, std::string_view op, std::string_view domain, std::vector<Slot> inputs,
              Node& last) {
    const int opset = domain.empty() ? node.opset : 1;
    const Row* row = find_row(domain, op, opset);
    if (!row) return;
    for (const Slot slot : inputs) add_use(slot);
    for (const Slot slot : node.inputs) drop_use(slot);
    node.op = op, node.domain = domain, node.opset = opset, node.row = row;
    node.inputs = std::move(inputs);
    node.outputs = last.outputs;
    makers_[node.outputs[0]] = place(node);
    is_removed_[place(last)] = true;
  }

  void join(Node& quantize) {
    if (!is_plain(quantize) || !is_number(input(quantize, 1)) || !is_number(input(quantize, 2))) return;
    const Slot scale = input(quantize, 1), zero = input(quantize, 2);
    const Tensor& low = *constant(zero);
    if (constant(scale)->dtype() != kFloat32 || !is_byte(low.dtype())) return;
    Node* node = only_maker(input(quantize, 0));
    if (!node || !node->domain.empty() || node->outputs.size() != 1) return;
    // What is below 0 is quantized to the smallest integer where that means 0.
    Node* relu = nullptr;
    const bool is_least =
        low.dtype() == kUInt8 ? *low.data_ptr<uint8_t>() == 0 : *low.data_ptr<int8_t>() == -128;
    if (node->op == "Relu" && is_least && *constant(scale)->data_ptr<float>() > 0) {
      if (Node* before = only_maker(input(*node, 0));
          before && before->domain.empty() && before->outputs.size() == 1)
        relu = std::exchange(node, before);
    }
    const std::string op = node->op;
    if (op == "Conv") {
      join_convolution(*node, quantize, scale, zero);
    } else if (op == "MatMul") {
      const auto a = bytes(input(*node, 0)), b = bytes(input(*node, 1), 1);
      if (a && b && a->zero != kAbsent && b->zero != kAbsent &&
          fits(depth(*a, *b), kAbsent, a->scale, b->scale, scale))
        become(*node, "QLinearMatMul", "",
               {a->values, a->scale, a->zero, b->values, b->scale, b->zero, scale, zero}, quantize);
    } else if (op == "Gemm") {
      join_gemm(*node, quantize, scale, zero);
    } else if (!relu) {
      join_moved(*node, quantize, scale, zero);
    }
    if (relu) is_removed_[place(*relu)] = is_removed_[place(quantize)];
  }

  void join_convolution(Node& node, Node& quantize, Slot scale, Slot zero) {
    const auto x = bytes(input(node, 0)), w = bytes(input(node, 1), 0);
    if (!x || !w || x->zero == kAbsent) return;
    const auto added = bias(input(node, 2), x->scale, w->scale);
    const Tensor* weights = constant(w->values);
    if (!added || !weights || weights->sizes().empty() || weights->sizes()[0] == 0) return;
    if (!fits(weights->numel() / weights->sizes()[0], *added, x->scale, w->scale, scale)) return;
    std::vector<Slot> inputs{x->values, x->scale, x->zero, w->values, w->scale, w->zero, scale, zero};
    if (*added != kAbsent) inputs.push_back(*added);
    become(node, "QLinearConv", "", std::move(inputs), quantize);
  }

  void join_gemm(Node& node, Node& quantize, Slot scale, Slot zero) {
    const auto number = [&](std::string_view name, double otherwise) {
      const Attribute* given = node.find(name);
      if (!given) return otherwise;
      if (const auto* value = std::get_if<float>(&given->value)) return double{*value};
      const auto* value = std::get_if<int64_t>(&given->value);
      return value ? static_cast<double>(*value) : std::nan("");
    };
    if (number("alpha", 1) != 1 || number("beta", 1) != 1) return;
    const bool is_turned = number("transB", 0) != 0;
    const auto a = bytes(input(node, 0)), b = bytes(input(node, 1), is_turned ? 0 : 1);
    if (!a || !b || !constant(b->values)) return;
    const auto added = bias(input(node, 2), a->scale, b->scale);
    if (!added || !fits(depth(*a, *b, is_turned), *added, a->scale, b->scale, scale)) return;
    become(node, "QGemm", "com.microsoft",
           {a->values, a->scale, a->zero, b->values, b->scale, b->zero, *added, scale, zero}, quantize);
  }

  void join_moved(Node& node, Node& quantize, Slot scale, Slot zero) {
    constexpr std::array<std::string_view, 7> kMoves{"Flatten", "MaxPool",   "Reshape",  "Slice",
                                                     "Squeeze", "Transpose", "Unsqueeze"};
    if (!std::ranges::count(kMoves, node.op)) return;
    const auto x = bytes(input(node, 0));
    if (!x || x->zero == kAbsent || !is_same(x->scale, scale) || !is_same(x->zero, zero)) return;
    // Integers are in the order of the real numbers, and come back from them.
    const float unit = *constant(scale)->data_ptr<float>();
    if (!(unit > 0) || !std::isnormal(unit) || !std::isfinite(unit * 255)) return;
    std::vector<Slot> inputs = node.inputs;
    inputs[0] = x->values;
    become(node, std::string(node.op), "", std::move(inputs), quantize);
  }
  /// Whether two constants are the same number.
  bool is_same(Slot a, Slot b) const {
    if (a == b) return true;
    const Tensor &x = *constant(a), &y = *constant(b);
    return x.dtype() == y.dtype() && x.numel() == 1 && y.numel() == 1 &&
           std::memcmp(x.data_ptr(), y.data_ptr(), x.itemsize()) == 0;
  }

  const Program& program_;
  Graph& graph_;
  std::unordered_map<Slot, int64_t> uses_;   // of values that this graph reads, or one inside of it
  std::unordered_map<Slot, size_t> makers_;  // places among the graph's nodes
  std::vector<bool> is_removed_;
};

void join(const Program& program, Graph& graph) {
  Joiner(program, graph).run();
  for (Node& node : graph.nodes) each_graph(node, [&](Graph& inner) { join(program, inner); });
}

}  // namespace

void join_quantized(Program& program) { join(program, program.graph); }

}  // namespace tenon::onnx
