#include "tenon/onnx/rows.h"

#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon::onnx {
namespace {

using Versions = std::vector<const Row*>;

/// All rows, by the operator's name.
const std::unordered_map<std::string_view, Versions>& table() {
  static const auto* const all = [] {
    auto* out = new std::unordered_map<std::string_view, Versions>;
    for (const auto rows :
         {pointwise_rows(), shape_rows(), index_rows(), reduction_rows(), matrix_rows(), attention_rows(),
          window_rows(), resize_rows(), norm_rows(), recurrent_rows(), control_rows(), quantized_rows(),
          loss_rows(), random_rows(), signal_rows(), detection_rows(), sampling_rows()})
      for (const Row& row : rows) (*out)[row.name].push_back(&row);
    return out;
  }();
  return *all;
}

}  // namespace

const Row* find_row(std::string_view domain, std::string_view name, int opset) {
  const auto found = table().find(name);
  if (found == table().end()) return nullptr;
  const Row* best = nullptr;
  for (const Row* row : found->second)
    if (row->domain == domain && row->since <= opset && (!best || row->since > best->since)) best = row;
  return best;
}

}  // namespace tenon::onnx
