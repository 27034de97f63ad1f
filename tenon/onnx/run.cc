#include "tenon/onnx/run.h"

#include <fmt/format.h>

#include "tenon/core/thread_state.h"
#include "tenon/onnx/node_call.h"

namespace tenon::onnx {
namespace {

void compute(const Node& node, Frame& frame) {
  NodeCall call(node, frame);
  try {
    if (!node.is_shape) return node.row->compute(call);
    const ExcludeDispatchKeyGuard at_once(DispatchKeySet(Functionality::Record));
    node.row->compute(call);
  } catch (Error& error) {
    // An inner graph's node has been named already.
    const std::string place = fmt::format(" (onnx: {})", node.text());
    if (error.message().find(" (onnx: ") == std::string_view::npos) error.append(place);
    throw;
  }
}

}  // namespace

std::vector<Item> Frame::run(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    compute(node, *this);
    for (const Slot slot : node.last_reads) values_[static_cast<size_t>(slot)] = {};
  }
  std::vector<Item> out;
  out.reserve(graph.outputs.size());
  for (const Slot slot : graph.outputs) out.push_back(item(slot));
  return out;
}

}  // namespace tenon::onnx
