// Graphs inside of nodes: branches, loops.
#include <fmt/format.h>

#include <array>

#include "tenon/core/interrupt.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/onnx/rows_sequence.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;
using Items = std::vector<Item>;

const Tensor& tensor_of(N& n, const Item& item, std::string_view what) {
  TENON_NODE_CHECK(n, item.tensor.defined(), Type, fmt::format("{} is no tensor", what));
  return item.tensor;
}

void branch(N& n) {
  const Items results = n.run(n.graph(n.flag(0) ? "then_branch" : "else_branch"), {});
  TENON_NODE_CHECK(n, results.size() >= n.num_outputs(), Value, "its branch has fewer outputs than the node");
  for (size_t i = 0; i < n.num_outputs(); ++i) n.set(i, results[i]);
}

/// One tensor of each iteration, which make one result of the loop.
class Stack {
 public:
  Stack(const Graph& graph, size_t output) : graph_(graph), output_(output) {}
  void add(const Tensor& part) { parts_.push_back(part); }
  /// Along a new dimension `axis` (from the back if negative), the last part first if `reversed`. Of no
  /// parts, what the file says of their shape and dtype.
  Tensor stacked(N& n, int64_t axis, bool reversed) {
    if (reversed) std::ranges::reverse(parts_);
    if (!parts_.empty()) return stack(parts_, n.axis(axis, parts_[0].sizes().size() + 1));
    Dims sizes;
    const bool is_known = output_ < graph_.results.size();
    if (is_known && graph_.results[output_].shape)
      for (const Port::Dim& dim : *graph_.results[output_].shape)
        sizes.push_back(std::holds_alternative<int64_t>(dim) ? std::get<int64_t>(dim) : 0);
    sizes.insert(static_cast<size_t>(n.axis(axis, sizes.size() + 1)), 0);
    const std::optional<DType> dtype = is_known ? graph_.results[output_].dtype : std::nullopt;
    return empty(sizes, TensorOptions(dtype.value_or(kFloat32)));
  }

 private:
  const Graph& graph_;
  size_t output_;
  std::vector<Tensor> parts_;
};
std::vector<Stack> stacks(const Graph& graph, size_t first) {
  std::vector<Stack> out;
  for (size_t i = first; i < graph.outputs.size(); ++i) out.emplace_back(graph, i);
  return out;
}

void loop(N& n) {
  const Graph& body = n.graph("body");
  const int64_t trips = n.has(0) ? n.integer(0) : INT64_MAX;
  bool goes_on = !n.has(1) || n.flag(1);
  // The number of the iteration, the condition, carried values.
  Items values(2);
  for (size_t i = 2; i < n.num_inputs(); ++i) values.push_back(n.item(i));
  const size_t carried = values.size() - 2;
  TENON_NODE_CHECK(n, body.outputs.size() > carried, Value,
                   fmt::format("its body has {} outputs, expected a condition and {} carried values",
                               body.outputs.size(), carried));
  std::vector<Stack> scans = stacks(body, 1 + carried);
  for (int64_t i = 0; i < trips && goes_on; ++i) {
    check_interrupt();
    values[0] = {scalar_tensor(i, TensorOptions(kInt64))};
    values[1] = {scalar_tensor(true, TensorOptions(kBool))};
    Items results = n.run(body, values);
    const Tensor& condition = tensor_of(n, results[0], "the condition of its body");
    TENON_NODE_CHECK(n, condition.numel() == 1, Shape, "the condition of its body is not one element");
    goes_on = condition.to(kBool).item<bool>();
    for (size_t v = 0; v < carried; ++v) values[2 + v] = std::move(results[1 + v]);
    for (size_t s = 0; s < scans.size(); ++s)
      scans[s].add(tensor_of(n, results[1 + carried + s], "a scan output"));
  }
  for (size_t v = 0; v < carried; ++v) n.set(v, std::move(values[2 + v]));
  for (size_t s = 0; s < scans.size(); ++s)
    if (n.wants(carried + s)) n.set(carried + s, scans[s].stacked(n, 0, false));
}

/// A list of the node with a number for each of `count` values.
Dims each(N& n, std::string_view attribute, size_t count) {
  const Dims out = n.ints(attribute).value_or(Dims(count, 0));
  TENON_NODE_CHECK(n, out.size() == count, Value,
                   fmt::format("attribute `{}` has {} numbers, expected {}", attribute, out.size(), count));
  return out;
}

/// The final states and the stacked outputs of one sequence.
Items scan_one(N& n, const Graph& body, Items states, const std::vector<Tensor>& sequences,
               const char* directions) {
  const size_t num_states = states.size(), count = sequences.size();
  TENON_NODE_CHECK(n, body.outputs.size() >= num_states, Value, "its body has fewer outputs than states");
  const size_t num_scans = body.outputs.size() - num_states;
  const Dims axes = each(n, "scan_input_axes", count), backward = each(n, directions, count);
  const Dims out_axes = each(n, "scan_output_axes", num_scans);
  const Dims out_backward = each(n, "scan_output_directions", num_scans);
  int64_t length = -1;
  std::vector<std::vector<Tensor>> steps;
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = n.axis(axes[i], sequences[i].sizes().size());
    const int64_t size = sequences[i].sizes()[static_cast<size_t>(axis)];
    TENON_NODE_CHECK(n, i == 0 || size == length, Shape,
                     fmt::format("its sequences have {} and {} elements", length, size));
    length = size;
    steps.push_back(unbind(sequences[i], axis));
    if (backward[i] != 0) std::ranges::reverse(steps.back());
  }
  std::vector<Stack> scans = stacks(body, num_states);
  for (int64_t t = 0; t < length; ++t) {
    check_interrupt();
    for (const auto& parts : steps) states.push_back({parts[static_cast<size_t>(t)]});
    Items results = n.run(body, states);
    for (size_t s = 0; s < num_scans; ++s)
      scans[s].add(tensor_of(n, results[num_states + s], "a scan output"));
    results.resize(num_states);
    states = std::move(results);
  }
  for (size_t s = 0; s < num_scans; ++s)
    states.push_back({scans[s].stacked(n, out_axes[s], out_backward[s] != 0)});
  return states;
}
/// How many of the inputs after `first` are states.
size_t num_states(N& n, size_t first) {
  const int64_t scanned = n.integer("num_scan_inputs", 0);
  const auto given = static_cast<int64_t>(n.num_inputs() - std::min(first, n.num_inputs()));
  TENON_NODE_CHECK(n, 1 <= scanned && scanned <= given, Value,
                   fmt::format("attribute `num_scan_inputs` is {}, of {} inputs", scanned, given));
  return static_cast<size_t>(given - scanned);
}
void scan(N& n) {
  const size_t states = num_states(n, 0);
  Items first;
  for (size_t i = 0; i < states; ++i) first.push_back(n.item(i));
  Items results = scan_one(n, n.graph("body"), std::move(first), n.tensors(states), "scan_input_directions");
  for (size_t i = 0; i < results.size() && i < n.num_outputs(); ++i) n.set(i, std::move(results[i]));
}
/// Version 8: everything has a batch, whose sequences may be shorter than the longest.
void scan_of_batch(N& n) {
  const size_t states = num_states(n, 1);
  const std::vector<Tensor> inputs = n.tensors(1);
  const Tensor& sequence = inputs[states];
  TENON_NODE_CHECK(n, sequence.sizes().size() >= 2, Shape, "a sequence without a batch");
  const int64_t batch = sequence.sizes()[0], longest = sequence.sizes()[1];
  const Dims lengths = n.has(0) ? n.ints(0) : Dims(static_cast<size_t>(batch), longest);
  TENON_NODE_CHECK(n, static_cast<int64_t>(lengths.size()) == batch && batch > 0, Shape,
                   fmt::format("{} lengths for a batch of {}", lengths.size(), batch));
  std::vector<std::vector<Tensor>> results;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    TENON_NODE_CHECK(n, 0 <= length && length <= longest, Value,
                     fmt::format("a sequence of {} elements, of {}", length, longest));
    Items first;
    std::vector<Tensor> sequences;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor one = select(inputs[i], 0, b);
      if (i < states)
        first.push_back({one});
      else
        sequences.push_back(slice(one, 0, 0, length));
    }
    const Items here = scan_one(n, n.graph("body"), std::move(first), sequences, "directions");
    results.resize(here.size());
    for (size_t i = 0; i < here.size(); ++i) {
      Tensor one = tensor_of(n, here[i], "a state");
      if (i >= states && length < longest) {
        Dims rest = Dims(one.sizes());
        rest[0] = longest - length;
        one = cat(std::vector{one, zeros(rest, TensorOptions(one.dtype()))}, 0);
      }
      results[i].push_back(one);
    }
  }
  for (size_t i = 0; i < results.size() && i < n.num_outputs(); ++i) n.set(i, stack(results[i], 0));
}

constexpr auto kControlRows = std::to_array<Row>({
    {"ConcatFromSequence", 11, concat_from_sequence},
    {"If", 1, branch},
    {"Loop", 1, loop},
    {"Optional", 15, optional_of},
    {"OptionalGetElement", 15, optional_get_element},
    {"OptionalHasElement", 15, optional_has_element},
    {"Scan", 8, scan_of_batch},
    {"Scan", 9, scan},
    {"SequenceAt", 11, sequence_at},
    {"SequenceConstruct", 11, sequence_construct},
    {"SequenceEmpty", 11, sequence_empty},
    {"SequenceErase", 11, sequence_erase},
    {"SequenceInsert", 11, sequence_insert},
    {"SequenceLength", 11, sequence_length},
    {"SequenceMap", 17, sequence_map},
    {"SplitToSequence", 11, split_to_sequence},
});

}  // namespace

std::span<const Row> control_rows() noexcept { return kControlRows; }

}  // namespace tenon::onnx
