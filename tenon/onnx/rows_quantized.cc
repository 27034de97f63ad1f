#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {

std::span<const Row> quantized_rows() noexcept { return {}; }

}  // namespace tenon::onnx
