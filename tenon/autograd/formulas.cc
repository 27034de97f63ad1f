#include "tenon/autograd/formulas.h"

#include <algorithm>

#include "tenon/autograd/autograd.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/recurrent/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/ops/recurrent/geometry.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::autograd::formulas {

Tensor conversion_gradient(const Tensor& grad, const TensorOptions& options) {
  return tenon::_to_copy(is_complex(options.dtype_opt.value_or(grad.dtype())) ? grad : tenon::real(grad),
                         options);
}

std::vector<Tensor> cat_gradients(const Tensor& grad, std::span<const ArgumentMeta> tensors, int64_t dim) {
  std::vector<Tensor> gradients;
  gradients.reserve(tensors.size());
  const int64_t d = wrap_dim(dim, grad.dim(), "cat");
  int64_t start = 0;
  for (const ArgumentMeta& t : tensors) {
    if (t.dim() == 1 && t.numel() == 0) {  // it may have stood among tensors of any shape
      gradients.push_back(tenon::zeros({0}, grad.options()));
      continue;
    }
    const int64_t length = t.size(d);
    gradients.push_back(grad.narrow(d, start, length));
    start += length;
  }
  return gradients;
}

// Recurrent layers: by their operator, and where gradients are to be differentiated again, by the engine over
// the same steps made of other operators. Cold: it is compiled for size.
namespace {

using ops::Cell;

/// `state`, whose first rows are `rows` now.
[[gnu::cold]] Tensor replace_first(const Tensor& state, const Tensor& rows) {
  const int64_t n = rows.size(0), all = state.size(0);
  return n == all ? rows : tenon::cat({rows, state.narrow(0, n, all - n)}, 0);
}

/// The new state of a step of LSTM or GRU; `c` becomes the new cell state.
[[gnu::cold]] Tensor gated_step(const ops::RecurrenceShape& shape, const Tensor& x, const Tensor& m,
                                const Tensor& h, Tensor& c) {
  const std::vector<Tensor> xs = x.chunk(shape.gates, 1), ms = m.chunk(shape.gates, 1);
  const auto gate = [&](size_t i) { return tenon::sigmoid(xs[i] + ms[i]); };
  const bool onnx = shape.onnx_order;
  if (shape.cell == Cell::Gru) {
    const Tensor n = tenon::tanh(xs[2] + gate(onnx ? 1 : 0) * ms[2]);
    return n + gate(onnx ? 0 : 1) * (h - n);
  }
  const size_t g = onnx ? 3 : 2;
  c = gate(onnx ? 2 : 1) * c + gate(0) * tenon::tanh(xs[g] + ms[g]);
  return gate(onnx ? 1 : 3) * tenon::tanh(c);
}

/// output, hy and cy from differentiable operators, step by step.
[[gnu::cold]] std::vector<Tensor> run_steps(const ops::RecurrenceShape& shape,
                                            const std::vector<ops::RecurrenceStep>& steps,
                                            const Tensor& input, Tensor h, Tensor c, const Tensor& weight,
                                            const Tensor& bias, const Tensor& projection) {
  const bool lstm = shape.cell == Cell::Lstm;
  const Tensor x = input.reshape({shape.rows, shape.gates * shape.hidden});
  std::vector<Tensor> outputs;
  for (const ops::RecurrenceStep& step : steps) {
    const Tensor xs = x.narrow(0, step.first, step.rows), hs = h.narrow(0, 0, step.rows);
    const Tensor m = tenon::linear(hs, weight, bias);
    Tensor cells = lstm ? c.narrow(0, 0, step.rows) : c;
    Tensor next = shape.gates > 1            ? gated_step(shape, xs, m, hs, cells)
                  : shape.cell == Cell::Relu ? tenon::relu(xs + m)
                                             : tenon::tanh(xs + m);
    if (projection.defined()) next = tenon::linear(next, projection);
    h = replace_first(h, next);
    if (lstm) c = replace_first(c, cells);
    outputs.push_back(next);
  }
  if (steps.front().first != 0) std::reverse(outputs.begin(), outputs.end());
  Dims sizes = input.sizes().to_dims();
  sizes.back() = shape.size;
  std::vector<Tensor> results{tenon::cat(outputs, 0).reshape(sizes), h};
  if (lstm) results.push_back(c);
  return results;
}

}  // namespace

[[gnu::cold]] RecurrenceGradients recurrence_gradients(
    const Tensor& grad_output, const Tensor& grad_hy, const Tensor& grad_cy, const Tensor& input,
    const Tensor& hx, const Tensor& cx, const Tensor& weight, const Tensor& bias, const Tensor& projection,
    const Tensor& batch_sizes, const Tensor& output, const Tensor& kept, int64_t cell, bool reverse) {
  // On the meta device no one knows how long packed sequences are, and shapes follow without.
  if (!thread_state.grad_enabled || (batch_sizes.defined() && input.is_meta())) {
    return tenon::_recurrence_backward(grad_output, grad_hy, grad_cy, hx, cx, weight, bias, projection,
                                       batch_sizes, output, kept, cell, reverse);
  }
  const ops::RecurrenceShape shape =
      ops::recurrence_shape(input, hx, cx, weight, bias, projection, batch_sizes, cell);
  const DType type = ops::recurrence_dtype(input.dtype());
  const auto wide = [&](const Tensor& t) { return t.defined() ? t.to(type) : t; };
  const Tensor sizes = batch_sizes.defined() ? batch_sizes.to(TensorOptions().device(kCPU)) : batch_sizes;
  const std::vector<Tensor> results =
      run_steps(shape, ops::recurrence_steps(shape, sizes, reverse), wide(input), wide(hx), wide(cx),
                wide(weight), wide(bias), wide(projection));
  const Tensor* operands[] = {&input, &hx, &cx, &weight, &bias, &projection};
  std::vector<Tensor> inputs, grads{wide(grad_output), wide(grad_hy)};
  if (results.size() == 3) grads.push_back(wide(grad_cy));
  for (const Tensor* t : operands) {
    if (t->defined() && t->requires_grad()) inputs.push_back(*t);
  }
  const std::vector<Tensor> found = grad(results, inputs, grads, true, true, true);
  Tensor by[6];
  for (size_t i = 0, next = 0; i < 6; ++i) {
    if (operands[i]->defined() && operands[i]->requires_grad()) by[i] = found[next++];
  }
  return {by[0], by[1], by[2], by[3], by[4], by[5]};
}

}  // namespace tenon::autograd::formulas
