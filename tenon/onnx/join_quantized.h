// Products between DequantizeLinear and QuantizeLinear as products of integers. Of this room alone.
#pragma once

#include "tenon/onnx/program.h"

namespace tenon::onnx {

/// Quantized files say what is computed of real numbers: values are dequantized, a convolution or a product
/// of matrices computes float32, and its result is quantized. Where all of that is of 8 bits, the three
/// become the operator on integers that computes the same: QLinearConv, QLinearMatMul, QGemm, whose sums are
/// exact. What only chooses or moves elements between a DequantizeLinear and a QuantizeLinear of one scale
/// does it to the integers.
void join_quantized(Program& program);

}  // namespace tenon::onnx
