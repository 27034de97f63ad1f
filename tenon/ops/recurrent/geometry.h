// What the shapes of a recurrent layer's arguments mean. Used by its shape functions, gradients and kernels.
// Reads of elements only how many sequences have each step.
#pragma once

#include <vector>

#include "tenon/core/tensor.h"
#include "tenon/core/tensor_header.h"

namespace tenon::ops {

/// In the order of PyTorch's numbers for cuDNN.
enum class Cell : uint8_t { Relu, Tanh, Lstm, Gru };

struct RecurrenceShape {
  Cell cell = Cell::Tanh;
  bool onnx_order = false;  ///< Gates are i, o, f, g of LSTM, z, r, n of GRU.
  bool is_packed = false;   ///< The weight is in panels, as _packed_product takes its transpose.
  int64_t gates = 1;        ///< Blocks of `hidden` rows of a weight.
  int64_t kept_gates = 0;   ///< Blocks of `hidden` that gradients need of each row.
  int64_t hidden = 0;       ///< Elements of a gate, and of a cell state.
  int64_t size = 0;         ///< Of a state: `hidden`, but with a projection.
  int64_t batch = 0;        ///< Sequences.
  int64_t steps = 0;
  int64_t rows = 0;  ///< Pairs of a step and a sequence.
};

/// Checks the arguments of _recurrence but for the last dimension of `input`, in whose place `output` does,
/// too. Throws an Error that names the argument.
RecurrenceShape recurrence_shape(HeaderRef input, HeaderRef hx, HeaderRef cx, HeaderRef weight,
                                 HeaderRef bias, HeaderRef projection, HeaderRef batch_sizes, int64_t cell);

/// Consecutive rows of packed data.
struct RecurrenceStep {
  int64_t first = 0, rows = 0;
};

/// The steps in the order in which they are computed. Throws Error{Value} unless `batch_sizes`, if it is
/// given, falls from `batch` on, never to 0, and sums up to all rows.
std::vector<RecurrenceStep> recurrence_steps(const RecurrenceShape& shape, const Tensor& batch_sizes,
                                             bool reverse);

/// What computes: float32 for half types.
inline DType recurrence_dtype(DType type) { return type == DType::Float64 ? DType::Float64 : DType::Float32; }

}  // namespace tenon::ops
