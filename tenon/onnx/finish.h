// What follows from a decoded program: which constants are weights, when values are read last, which nodes
// compute shapes. Of this room alone.
#pragma once

#include "tenon/onnx/program.h"

namespace tenon::onnx {

/// Orders the constants (parameters, buffers, others) and gives the weights names of their own.
void finish(Program& program);

}  // namespace tenon::onnx
