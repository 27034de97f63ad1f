#include "tenon/onnx/rows_sequence.h"

#include <fmt/format.h>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/functions.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

/// The place that input i names in a sequence of `size` values, counted from the front.
int64_t place(N& n, size_t i, int64_t size, int64_t end) {
  const int64_t given = n.integer(i), at = given < 0 ? given + size : given;
  TENON_NODE_CHECK(n, 0 <= at && at < end, Index,
                   fmt::format("position {} of a sequence of {} values", given, size));
  return at;
}

}  // namespace

void sequence_construct(N& n) { n.set(0, n.tensors()); }
void sequence_empty(N& n) { n.set(0, std::vector<Tensor>()); }
void sequence_length(N& n) {
  n.set(scalar_tensor(static_cast<int64_t>(n.sequence(0).size()), TensorOptions(kInt64)));
}
void sequence_at(N& n) {
  const std::vector<Tensor> all = n.sequence(0);
  n.set(all[static_cast<size_t>(place(n, 1, std::ssize(all), std::ssize(all)))]);
}
void sequence_insert(N& n) {
  std::vector<Tensor> all = n.sequence(0);
  const int64_t at = n.has(2) ? place(n, 2, std::ssize(all), std::ssize(all) + 1) : std::ssize(all);
  all.insert(all.begin() + at, n.tensor(1));
  n.set(0, std::move(all));
}
void sequence_erase(N& n) {
  std::vector<Tensor> all = n.sequence(0);
  const int64_t end = std::ssize(all);
  TENON_NODE_CHECK(n, end > 0, Index, "its sequence is empty");
  all.erase(all.begin() + (n.has(1) ? place(n, 1, end, end) : end - 1));
  n.set(0, std::move(all));
}
void sequence_map(N& n) {
  const Graph& body = n.graph("body");
  const size_t count = n.sequence(0).size();
  std::vector<std::vector<Tensor>> results(n.num_outputs());
  for (size_t i = 0; i < count; ++i) {
    std::vector<Item> inputs;
    for (size_t k = 0; k < n.num_inputs(); ++k) {
      inputs.push_back(n.item(k));
      if (!inputs[k].sequence) continue;
      TENON_NODE_CHECK(n, inputs[k].sequence->size() == count, Value,
                       fmt::format("its sequences have {} and {} values", count, inputs[k].sequence->size()));
      inputs[k] = {(*inputs[k].sequence)[i]};
    }
    const std::vector<Item> here = n.run(body, inputs);
    for (size_t k = 0; k < results.size() && k < here.size(); ++k) {
      TENON_NODE_CHECK(n, here[k].tensor.defined(), Type, "an output of its body is no tensor");
      results[k].push_back(here[k].tensor);
    }
  }
  for (size_t k = 0; k < results.size(); ++k) n.set(k, std::move(results[k]));
}
void split_to_sequence(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t axis = n.axis(n.integer("axis", 0), x.sizes().size());
  if (!n.has(1)) {
    std::vector<Tensor> parts = split(x, 1, axis);
    if (!n.flag("keepdims", true))
      for (Tensor& part : parts) part = squeeze(part, axis);
    return n.set(0, std::move(parts));
  }
  const Dims sizes = n.ints(1);
  if (!n.tensor(1).sizes().empty()) return n.set(0, split(x, IntArrayRef(sizes), axis));
  TENON_NODE_CHECK(n, sizes[0] > 0, Value, fmt::format("parts of {} elements", sizes[0]));
  n.set(0, split(x, sizes[0], axis));
}
void concat_from_sequence(N& n) {
  const std::vector<Tensor> all = n.sequence(0);
  const int64_t axis = n.integer("axis", 0);
  n.set(n.flag("new_axis", false) ? stack(all, axis) : cat(all, axis));
}

void optional_of(N& n) { n.set(0, n.item(0)); }
void optional_get_element(N& n) {
  TENON_NODE_CHECK(n, n.has(0), Value, "its input is empty");
  n.set(0, n.item(0));
}
void optional_has_element(N& n) { n.set(scalar_tensor(n.has(0), TensorOptions(kBool))); }

}  // namespace tenon::onnx
