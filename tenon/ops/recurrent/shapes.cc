// Shapes of one direction of a recurrent layer and of its gradients.
#include <fmt/core.h>

#include <algorithm>

#include "tenon/generated/recurrent/shapes.h"
#include "tenon/ops/matmul/panels.h"
#include "tenon/ops/recurrent/geometry.h"

namespace tenon::ops {
namespace {

/// Throws unless `t` has this dtype and these sizes.
void check_operand(const char* argument, HeaderRef t, DType type, IntArrayRef sizes,
                   const char* op = "_recurrence") {
  TENON_CHECK(t.sizes() == sizes && t.dtype() == type, Shape,
              fmt::format("{}: expected `{}` {} {}, got {} {}", op, argument, name(type), to_string(sizes),
                          name(t.dtype()), to_string(t.sizes())));
}

[[noreturn]] void refuse(const char* text, HeaderRef t, const char* op = "_recurrence") {
  throw_error(ErrorKind::Shape, fmt::format("{}: expected {}, got {}", op, text, to_string(t.sizes())));
}

Dims with_last(HeaderRef t, int64_t last) {
  Dims sizes = t.sizes().to_dims();
  sizes.back() = last;
  return sizes;
}

}  // namespace

RecurrenceShape recurrence_shape(HeaderRef input, HeaderRef hx, HeaderRef cx, HeaderRef weight,
                                 HeaderRef bias, HeaderRef projection, HeaderRef batch_sizes, int64_t cell) {
  TENON_CHECK(
      cell >= 0 && cell <= 5, Value,
      fmt::format("_recurrence: `cell` must be 0 (relu), 1 (tanh), 2 or 4 (LSTM), 3 or 5 (GRU), got {}",
                  cell));
  constexpr uint8_t kGates[] = {1, 1, 4, 3}, kKeptGates[] = {0, 0, 5, 4};
  RecurrenceShape s;
  s.onnx_order = cell > 3;
  if (s.onnx_order) cell -= 2;
  s.cell = static_cast<Cell>(cell);
  s.gates = kGates[cell], s.kept_gates = kKeptGates[cell];
  const DType type = input.dtype();
  TENON_CHECK(
      is_floating_point(type) && has_arithmetic(type), Type,
      fmt::format("_recurrence: not implemented for {}; expected float16, bfloat16, float32 or float64",
                  name(type)));
  const bool packed = batch_sizes.defined(), lstm = s.cell == Cell::Lstm;
  if (packed)
    check_operand("batch_sizes", batch_sizes, DType::Int64,
                  Dims{batch_sizes.dim() > 0 ? batch_sizes.sizes()[0] : 0});
  if (input.dim() != (packed ? 2 : 3)) refuse("`input` [steps, batch, *], or packed [rows, *]", input);
  if (hx.dim() != 2) refuse("`hx` [batch, size]", hx);
  s.is_packed = weight.dim() == 3;
  if (!s.is_packed && (weight.dim() != 2 || weight.sizes()[0] % s.gates != 0))
    refuse("`weight` [gates * hidden_size, size], or its panels", weight);
  s.size = weight.sizes()[1];
  if (!s.is_packed)
    s.hidden = weight.sizes()[0] / s.gates;
  else
    s.hidden = projection.defined() && projection.dim() == 2 ? projection.sizes()[1] : s.size;
  s.batch = packed ? hx.sizes()[0] : input.sizes()[1];
  s.steps = packed ? batch_sizes.sizes()[0] : input.sizes()[0];
  s.rows = packed ? input.sizes()[0] : s.steps * s.batch;
  if (s.steps == 0) refuse("a sequence of at least one step", input);
  check_operand("hx", hx, type, Dims{s.batch, s.size});
  const int64_t columns = s.gates * s.hidden;
  TENON_CHECK(!s.is_packed || has_panels(type), NotImplemented,
              fmt::format("_recurrence: panels of {} are not implemented", name(type)));
  check_operand("weight", weight, type,
                s.is_packed ? Dims{panel_count(columns, type), s.size, panel_width(type)}
                            : Dims{columns, projection.defined() ? s.size : s.hidden});
  TENON_CHECK(cx.defined() == lstm && (lstm || !projection.defined()), Value,
              "_recurrence: LSTM has `cx` and may have `projection`; other cells have neither");
  if (lstm) check_operand("cx", cx, type, Dims{s.batch, s.hidden});
  if (bias.defined()) check_operand("bias", bias, type, Dims{s.gates * s.hidden});
  if (projection.defined()) check_operand("projection", projection, type, Dims{s.size, s.hidden});
  return s;
}

std::vector<RecurrenceStep> recurrence_steps(const RecurrenceShape& shape, const Tensor& batch_sizes,
                                             bool reverse) {
  std::vector<RecurrenceStep> steps(static_cast<size_t>(shape.steps), {0, shape.batch});
  int64_t first = 0, last = shape.batch;
  for (int64_t t = 0; t < shape.steps; ++t) {
    RecurrenceStep& step = steps[static_cast<size_t>(t)];
    if (batch_sizes.defined()) {
      step.rows = static_cast<const int64_t*>(batch_sizes.data_ptr())[t * batch_sizes.strides()[0]];
      TENON_CHECK(step.rows <= last && step.rows > 0 && (t > 0 || step.rows == last), Value,
                  fmt::format("_recurrence: expected batch_sizes[{}] {} {}, got {}", t,
                              t > 0 ? "between 1 and" : "to be the batch of `hx`,", last, step.rows));
      last = step.rows;
    }
    step.first = first;
    first += step.rows;
  }
  TENON_CHECK(first == shape.rows, Value,
              fmt::format("_recurrence: expected `batch_sizes` that sum up to the {} rows of `input`, got {}",
                          shape.rows, first));
  if (reverse) std::reverse(steps.begin(), steps.end());
  return steps;
}

namespace shape {

void recurrence(OutputSpecs& out, HeaderRef input, HeaderRef hx, HeaderRef cx, HeaderRef weight,
                HeaderRef bias, HeaderRef projection, HeaderRef batch_sizes, int64_t cell, bool reverse,
                bool keep) {
  const RecurrenceShape s = recurrence_shape(input, hx, cx, weight, bias, projection, batch_sizes, cell);
  const DType type = input.dtype();
  check_operand("input", input, type, with_last(input, s.gates * s.hidden));
  out.set(0, with_last(input, s.size), type);
  out.set(1, hx.sizes(), type);
  out.set(2, cx.defined() ? cx.sizes().to_dims() : Dims{0}, type);
  out.set(3, keep && s.kept_gates > 0 ? Dims{s.rows, s.kept_gates * s.hidden} : Dims{0},
          recurrence_dtype(type));
}

void recurrence_backward(OutputSpecs& out, HeaderRef grad_output, HeaderRef grad_hy, HeaderRef grad_cy,
                         HeaderRef hx, HeaderRef cx, HeaderRef weight, HeaderRef bias, HeaderRef projection,
                         HeaderRef batch_sizes, HeaderRef output, HeaderRef kept, int64_t cell,
                         bool reverse) {
  const RecurrenceShape s = recurrence_shape(output, hx, cx, weight, bias, projection, batch_sizes, cell);
  if (s.is_packed) refuse("for gradients, `weight` [gates * hidden_size, size]", weight);
  const DType type = output.dtype();
  check_operand("output", output, type, with_last(output, s.size));
  check_operand("grad_output", grad_output, type, output.sizes());
  check_operand("grad_hy", grad_hy, type, hx.sizes());
  if (cx.defined()) check_operand("grad_cy", grad_cy, type, cx.sizes());
  if (s.kept_gates > 0)
    check_operand("kept", kept, recurrence_dtype(type), Dims{s.rows, s.kept_gates * s.hidden});
  out.set(0, with_last(output, s.gates * s.hidden), type);
  size_t i = 1;
  for (const HeaderRef& t : {hx, cx, weight, bias, projection})
    out.set(i++, t.defined() ? t.sizes().to_dims() : Dims{0}, type);
}

void int8_lstm(OutputSpecs& out, HeaderRef input, HeaderRef hx, HeaderRef cx, HeaderRef packed,
               HeaderRef scale, HeaderRef bias, bool reverse) {
  constexpr const char* kName = "_int8_lstm";
  if (hx.dim() != 2 || hx.dtype() != DType::Float32) refuse("`hx` [batch, hidden] of float32", hx, kName);
  const int64_t batch = hx.sizes()[0], hidden = hx.sizes()[1], gates = 4 * hidden;
  if (input.dim() != 3) refuse("`input` [steps, batch, 4 * hidden]", input, kName);
  const int64_t steps = input.sizes()[0];
  check_operand("input", input, DType::Float32, Dims{steps, batch, gates}, kName);
  check_operand("cx", cx, DType::Float32, hx.sizes(), kName);
  check_operand("packed", packed, DType::Int8, Dims{(gates + 15) / 16, 2 + (hidden + 3) / 4, 64}, kName);
  check_operand("scale", scale, DType::Float32, Dims{scale.numel() == 1 ? 1 : gates}, kName);
  if (bias.defined()) check_operand("bias", bias, DType::Float32, Dims{gates}, kName);
  out.set(0, {steps, batch, hidden}, DType::Float32);
  for (size_t i = 1; i < 3; ++i) out.set(i, hx.sizes(), DType::Float32);
}

}  // namespace shape
}  // namespace tenon::ops
