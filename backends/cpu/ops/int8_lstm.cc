// LSTM with a weight of integers of 8 bits: each step quantizes the states, multiplies, and runs the cell.
#include <cstring>

#include "backends/cpu/gemm/int8.h"
#include "backends/cpu/ops/recurrent_cells.h"
#include "backends/cpu/report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/recurrent/kernels.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

template <class T>
const T* data(const Tensor& t) {
  return static_cast<const T*>(t.data_ptr());
}
RowSpan rows_of(const void* p, int64_t row_bytes) {
  return {static_cast<std::byte*>(const_cast<void*>(p)), row_bytes};
}

}  // namespace

void int8_lstm(const Tensor& input, const Tensor& hx, const Tensor& cx, const Tensor& packed,
               const Tensor& scale, const Tensor& bias, bool reverse, Tensor& output, Tensor& hy,
               Tensor& cy) {
  report_kernel("_int8_lstm", TENON_KERNEL_NAMES("int8"));
  const int64_t steps = input.sizes()[0], batch = hx.sizes()[0], hidden = hx.sizes()[1], gates = 4 * hidden;
  const Tensor products = ops::as_contiguous(input), weight = ops::as_contiguous(packed),
               scales = ops::as_contiguous(scale), first = ops::as_contiguous(hx),
               biases = bias.defined() ? ops::as_contiguous(bias) : make_empty({gates}, DType::Float32);
  if (!bias.defined()) ops::zero_elements(biases);
  ops::copy_elements(cy, cx, "_int8_lstm");
  const Tensor places = make_empty({batch, hidden}, DType::UInt8),
               sums = make_empty({batch, gates}, DType::Int32),
               by_state = make_empty({batch, gates}, DType::Float32);
  auto* const q = static_cast<uint8_t*>(places.data_ptr());
  const int64_t hidden_bytes = hidden * 4, gate_bytes = 4 * hidden_bytes, step_bytes = batch * hidden_bytes;
  const HostProgram& program = cell_program(ops::Cell::Lstm, true, CellPart::Step, DType::Float32);
  const RowSpan cells = rows_of(cy.data_ptr(), hidden_bytes);
  const auto* states = data<std::byte>(first);
  for (int64_t i = 0; i < steps; ++i) {
    check_stop();
    const int64_t t = reverse ? steps - 1 - i : i;
    const auto [step, zero] = int8_quantize(reinterpret_cast<const float*>(states), batch * hidden, q);
    int8_product({.m = batch,
                  .n = gates,
                  .k = hidden,
                  .a = {q, hidden, 1, false, {&zero, 0}},
                  .packed = data<std::byte>(weight),
                  .c = static_cast<int32_t*>(sums.data_ptr()),
                  .c_row = gates});
    for (int64_t r = 0; r < batch; ++r) {
      int8_to_float(data<int32_t>(sums) + r * gates, gates, data<float>(scales), scales.numel() == 1 ? 0 : 1,
                    step, static_cast<float*>(by_state.data_ptr()) + r * gates);
    }
    const RowSpan out = rows_of(data<std::byte>(output) + t * step_bytes, hidden_bytes);
    RowSlots slots;
    slots.add(out);
    slots.add(cells);
    slots.add(rows_of(data<std::byte>(products) + t * batch * gate_bytes, gate_bytes), 4, hidden_bytes);
    slots.add(rows_of(by_state.data_ptr(), gate_bytes), 4, hidden_bytes);
    slots.add(rows_of(biases.data_ptr(), 0), 4, hidden_bytes);
    slots.add(cells);
    slots.run(program, batch, hidden);
    states = out.data;
  }
  if (step_bytes > 0) std::memcpy(hy.data_ptr(), states, static_cast<size_t>(step_bytes));
}

}  // namespace tenon::cpu
