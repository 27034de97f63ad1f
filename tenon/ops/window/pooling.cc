// Pooling: the mean or the maximum of windows, at a distance or as many as the result has places.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/bodies.h"
#include "tenon/generated/window/functions.h"
#include "tenon/generated/window/shapes.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/memory_format.h"
#include "tenon/ops/window/by_rank.h"
#include "tenon/ops/window/spatial.h"

namespace tenon::ops {
namespace {

/// The windows of a pooling operator: one number for each axis in every list.
struct Windows {
  std::string op;
  Dims sizes, kernel, stride, padding, dilation, outputs;

  size_t rank() const { return kernel.size(); }
  std::vector<Axis> axes() const {
    std::vector<Axis> result;
    for (size_t i = 0; i < rank(); ++i)
      result.push_back(Axis::windows(sizes[i], outputs[i], kernel[i], stride[i], padding[i], dilation[i]));
    return result;
  }
};

size_t checked_rank(size_t rank, const char* op, const char* argument) {
  TENON_CHECK(rank >= 1 && rank <= 3, Value,
              fmt::format("{}: `{}` must have 1, 2 or 3 numbers, got {}", op, argument, rank));
  return rank;
}

/// Checks everything about windows over a tensor of these sizes. An empty `stride` is the kernel's size.
Windows checked_windows(const char* name, IntArrayRef sizes, IntArrayRef kernel_size, IntArrayRef stride,
                        IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const size_t rank = checked_rank(kernel_size.size(), name, "kernel_size");
  Windows w;
  w.op = with_rank(name, rank);
  const char* op = w.op.c_str();
  check_spatial(sizes, rank, op);
  w.sizes = spatial_sizes(sizes, rank).to_dims();
  w.kernel = kernel_size.to_dims();
  w.stride = stride.empty() ? w.kernel : per_axis(stride, rank, op, "stride");
  w.padding = per_axis(padding, rank, op, "padding");
  w.dilation = per_axis(dilation, rank, op, "dilation");
  for (size_t i = 0; i < rank; ++i) {
    const int64_t k = w.kernel[i], s = w.stride[i], p = w.padding[i], d = w.dilation[i], size = w.sizes[i];
    TENON_CHECK(k > 0, Value,
                fmt::format("{}: `kernel_size` must be greater than zero, got {}", op, to_string(w.kernel)));
    TENON_CHECK(s > 0, Value,
                fmt::format("{}: `stride` must be greater than zero, got {}", op, to_string(w.stride)));
    TENON_CHECK(d > 0, Value,
                fmt::format("{}: `dilation` must be greater than zero, got {}", op, to_string(w.dilation)));
    TENON_CHECK(p >= 0, Value,
                fmt::format("{}: `padding` must not be negative, got {}", op, to_string(w.padding)));
    int64_t extent = 0, last = 0;  // of a window; the last place where one can begin
    const bool fits = !__builtin_mul_overflow(k - 1, d, &extent) &&
                      !__builtin_add_overflow(extent, 1, &extent) && p <= INT64_MAX / 4 &&
                      extent <= INT64_MAX / 4 && s <= INT64_MAX / 4;
    TENON_CHECK(fits, Value, fmt::format("{}: windows are larger than int64 can count", op));
    TENON_CHECK(
        p <= k / 2, Value,
        fmt::format("{}: `padding` must be at most half of `kernel_size`, got padding {} and kernel_size {}",
                    op, p, k));
    TENON_CHECK(!__builtin_add_overflow(size, 2 * p - extent, &last), Shape,
                fmt::format("{}: `self` is larger than int64 can count", op));
    int64_t n = 0;
    if (last >= 0 || ceil_mode) {
      const int64_t reach = last + (ceil_mode ? s - 1 : 0);
      n = reach < 0 ? 0 : reach / s + 1;
      // The last window begins inside of the input or of the padding before it.
      if (ceil_mode && n > 0 && (n - 1) * s >= size + p) --n;
    }
    TENON_CHECK(n >= 1, Shape,
                fmt::format("{}: a window of {} does not fit into dimension {} of `self` {} with padding {}",
                            op, extent, sizes.size() - rank + i, to_string(sizes), p));
    // A window that begins before the input has its first tap at begin modulo dilation.
    for (int64_t begin = -p, o = 0; d > size && o < n && begin < 0; ++o, begin += s) {
      TENON_CHECK(
          (begin % d + d) % d < size, Value,
          fmt::format("{}: with padding {} and dilation {} a window lies beside dimension {} of `self` "
                      "{}, and has no elements",
                      op, p, d, sizes.size() - rank + i, to_string(sizes)));
    }
    w.outputs.push_back(n);
  }
  return w;
}

Windows average_windows(IntArrayRef sizes, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                        bool ceil_mode, std::optional<int64_t> divisor_override) {
  const Dims once{1};
  Windows w = checked_windows("avg_pool", sizes, kernel_size, stride, padding, once, ceil_mode);
  TENON_CHECK(!divisor_override || *divisor_override != 0, Value,
              fmt::format("{}: `divisor_override` must not be zero", w.op));
  return w;
}

/// Axes of means: sums of windows, divided by how many elements each has.
std::vector<Axis> average_axes(const Windows& w, bool count_include_pad,
                               std::optional<int64_t> divisor_override) {
  std::vector<Axis> axes = w.axes();
  for (size_t i = 0; i < axes.size(); ++i) {
    Axis& a = axes[i];
    a.divisors.reserve(static_cast<size_t>(a.outputs));
    for (int64_t o = 0; o < a.outputs; ++o) {
      const int64_t begin = o * a.stride - a.pad, end = std::min(begin + a.kernel, a.inputs + a.pad);
      const int64_t count =
          count_include_pad ? end - begin : std::min(end, a.inputs) - std::max<int64_t>(begin, 0);
      const int64_t divisor = !divisor_override ? count : i == 0 ? *divisor_override : 1;
      a.divisors.push_back(static_cast<double>(divisor));
    }
  }
  return axes;
}

std::vector<Axis> adaptive_axes(IntArrayRef inputs, IntArrayRef outputs) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < inputs.size(); ++i) axes.push_back(Axis::adaptive(inputs[i], outputs[i]));
  return axes;
}

/// The sizes of an adaptive result. `no_channels`: there may be none, but for three axes, as in PyTorch.
Dims checked_adaptive(const char* name, IntArrayRef sizes, IntArrayRef output_size,
                      bool no_channels = false) {
  const size_t rank = checked_rank(output_size.size(), name, "output_size");
  const std::string op = with_rank(name, rank);
  check_spatial(sizes, rank, op.c_str(), false, no_channels && rank < 3);
  for (size_t i = 0; i < rank; ++i) {
    int64_t ends = 0;
    TENON_CHECK(output_size[i] >= 0 &&
                    !__builtin_mul_overflow(output_size[i] + 1, sizes[sizes.size() - rank + i], &ends),
                Value,
                fmt::format("{}: `output_size` must not be negative or beyond int64, got {}", op,
                            to_string(output_size)));
  }
  return with_spatial(sizes, output_size);
}

void transpose(std::vector<Axis>& axes) {
  for (Axis& axis : axes) axis = axis.transposed();
}

/// Adaptive windows have as many elements as their axis says.
void divide_by_counts(std::vector<Axis>& axes) {
  for (Axis& a : axes) {
    a.divisors.reserve(static_cast<size_t>(a.outputs));
    for (int64_t o = 0; o < a.outputs; ++o)
      a.divisors.push_back(static_cast<double>(a.adaptive_end(o) - a.adaptive_begin(o)));
  }
}

void check_ordered(HeaderRef self, const std::string& op) {
  const DType dtype = self.dtype();
  TENON_CHECK(!is_complex(dtype) && dtype != DType::Bool && dtype != DType::UInt64, NotImplemented,
              fmt::format("{}: not implemented for {}", op, name(dtype)));
  check_arithmetic(self, op.c_str());
}

}  // namespace

namespace shape {

void avg_pool(OutputSpecs& out, HeaderRef self, IntArrayRef kernel_size, IntArrayRef stride,
              IntArrayRef padding, bool ceil_mode, bool, std::optional<int64_t> divisor_override) {
  const Windows w = average_windows(self.sizes(), kernel_size, stride, padding, ceil_mode, divisor_override);
  check_inexact(self.dtype(), false, w.op.c_str());
  set_spatial(out, 0, self, with_spatial(self.sizes(), w.outputs), self.dtype());
}

void avg_pool_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef input_size, IntArrayRef kernel_size,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool,
                       std::optional<int64_t> divisor_override) {
  checked_numel(input_size, kThisCall);
  const Windows w = average_windows(input_size, kernel_size, stride, padding, ceil_mode, divisor_override);
  const std::string op = w.op + "_backward";
  check_gradient_sizes(grad, with_spatial(input_size, w.outputs), op.c_str());
  check_inexact(grad.dtype(), false, op.c_str());
  set_spatial(out, 0, grad, input_size, grad.dtype());
}

void max_pool(OutputSpecs& out, HeaderRef self, IntArrayRef kernel_size, IntArrayRef stride,
              IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const Windows w =
      checked_windows("max_pool", self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  check_ordered(self, w.op);
  const Dims sizes = with_spatial(self.sizes(), w.outputs);
  set_spatial(out, 0, self, sizes, self.dtype());
  set_spatial(out, 1, self, sizes, DType::Int64);
}

void max_pool_values(OutputSpecs& out, HeaderRef self, IntArrayRef kernel_size, IntArrayRef stride,
                     IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  const Windows w =
      checked_windows("max_pool", self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  check_ordered(self, w.op);
  set_spatial(out, 0, self, with_spatial(self.sizes(), w.outputs), self.dtype());
}

void adaptive_avg_pool(OutputSpecs& out, HeaderRef self, IntArrayRef output_size) {
  const Dims sizes = checked_adaptive("adaptive_avg_pool", self.sizes(), output_size, true);
  check_inexact(self.dtype(), false, with_rank("adaptive_avg_pool", output_size.size()).c_str());
  set_spatial(out, 0, self, sizes, self.dtype());
}

void adaptive_avg_pool_backward(OutputSpecs& out, HeaderRef grad, IntArrayRef input_size,
                                IntArrayRef output_size) {
  checked_numel(input_size, kThisCall);
  const Dims expected = checked_adaptive("adaptive_avg_pool", input_size, output_size, true);
  const std::string op = with_rank("adaptive_avg_pool", output_size.size()) + "_backward";
  check_gradient_sizes(grad, expected, op.c_str());
  check_inexact(grad.dtype(), false, op.c_str());
  set_spatial(out, 0, grad, input_size, grad.dtype());
}

void adaptive_max_pool(OutputSpecs& out, HeaderRef self, IntArrayRef output_size) {
  const Dims sizes = checked_adaptive("adaptive_max_pool", self.sizes(), output_size);
  check_ordered(self, with_rank("adaptive_max_pool", output_size.size()));
  set_spatial(out, 0, self, sizes, self.dtype());
  set_spatial(out, 1, self, sizes, DType::Int64);
}

}  // namespace shape

void avg_pool(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
              bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override, Tensor& out) {
  if (out.numel() == 0) return;
  const Windows w = average_windows(self.sizes(), kernel_size, stride, padding, ceil_mode, divisor_override);
  axes_sum_stub(self.device(), self, average_axes(w, count_include_pad, divisor_override), false, out);
}

void avg_pool_backward(const Tensor& grad, IntArrayRef input_size, IntArrayRef kernel_size,
                       IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                       std::optional<int64_t> divisor_override, Tensor& out) {
  if (out.numel() == 0) return;
  const Windows w = average_windows(input_size, kernel_size, stride, padding, ceil_mode, divisor_override);
  std::vector<Axis> axes = average_axes(w, count_include_pad, divisor_override);
  transpose(axes);
  axes_sum_stub(grad.device(), grad, axes, false, out);
}

void max_pool(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
              IntArrayRef dilation, bool ceil_mode, Tensor& values, Tensor& indices) {
  if (values.numel() == 0) return;
  const Windows w =
      checked_windows("max_pool", self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  axes_max_stub(self.device(), self, w.axes(), values, indices);
}

void max_pool_values(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding,
                     IntArrayRef dilation, bool ceil_mode, Tensor& out) {
  if (out.numel() == 0) return;
  const Windows w =
      checked_windows("max_pool", self.sizes(), kernel_size, stride, padding, dilation, ceil_mode);
  if (axes_max_values_stub.has_own(self.device().backend)) {
    axes_max_values_stub(self.device(), self, w.axes(), out);
  } else {
    Tensor indices = make_empty(out.sizes(), DType::Int64, self.device());
    axes_max_stub(self.device(), self, w.axes(), out, indices);
  }
}

void adaptive_avg_pool(const Tensor& self, IntArrayRef output_size, Tensor& out) {
  if (out.numel() == 0) return;
  std::vector<Axis> axes = adaptive_axes(spatial_sizes(self.sizes(), output_size.size()), output_size);
  divide_by_counts(axes);
  axes_sum_stub(self.device(), self, axes, false, out);
}

void adaptive_avg_pool_backward(const Tensor& grad, IntArrayRef input_size, IntArrayRef output_size,
                                Tensor& out) {
  if (out.numel() == 0) return;
  std::vector<Axis> axes = adaptive_axes(spatial_sizes(input_size, output_size.size()), output_size);
  divide_by_counts(axes);
  transpose(axes);
  axes_sum_stub(grad.device(), grad, axes, false, out);
}

void adaptive_max_pool(const Tensor& self, IntArrayRef output_size, Tensor& values, Tensor& indices) {
  if (values.numel() == 0) return;
  axes_max_stub(self.device(), self,
                adaptive_axes(spatial_sizes(self.sizes(), output_size.size()), output_size), values, indices);
}

Tensor max_pool_backward(const Tensor& grad, IntArrayRef input_size, const Tensor& indices, int64_t spatial) {
  const auto ndim = static_cast<int64_t>(input_size.size());
  TENON_CHECK(spatial >= 1 && spatial <= 3 && ndim > spatial && grad.dim() == ndim, Shape,
              fmt::format("max_pool backward: the gradient {} does not fit an input of sizes {}",
                          to_string(grad.sizes()), to_string(input_size)));
  TENON_CHECK(grad.sizes() == indices.sizes(), Shape,
              fmt::format("max_pool backward: expected `indices` of shape {} as the gradient, got {}",
                          to_string(grad.sizes()), to_string(indices.sizes())));
  const auto rank = static_cast<size_t>(spatial);
  int64_t plane = 1;
  for (const int64_t n : spatial_sizes(input_size, rank)) plane *= n;
  // Without a batch, four sizes may have the strides of two-dimensional images in channels-last order.
  if (ndim != spatial + 2 || !shape::lies_channels_last(grad.sizes(), grad.strides())) {
    Dims flat(input_size.data(), input_size.size() - rank);
    flat.push_back(plane);
    const Tensor added =
        tenon::gather_backward(grad.flatten(-spatial, -1), flat, -1, indices.flatten(-spatial, -1));
    return added.reshape(input_size);
  }
  // Channels last: the same with planes before channels.
  Dims order(input_size.size(), 0), back(input_size.size(), 0);
  for (int64_t d = 1; d < ndim; ++d) order[static_cast<size_t>(d)] = d + 1 < ndim ? d + 1 : 1;
  for (int64_t d = 1; d < ndim; ++d) back[static_cast<size_t>(d)] = d == 1 ? ndim - 1 : d - 1;
  Dims sizes = input_size.to_dims();
  for (int64_t d = 0; d < ndim; ++d)
    sizes[static_cast<size_t>(d)] = input_size[static_cast<size_t>(order[static_cast<size_t>(d)])];
  const Tensor added =
      tenon::gather_backward(grad.permute(order).flatten(1, spatial), {input_size[0], plane, input_size[1]},
                             1, indices.permute(order).flatten(1, spatial));
  return added.reshape(sizes).permute(back);
}

Tensor average(size_t rank, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
               IntArrayRef padding, bool ceil_mode, bool count_include_pad,
               std::optional<int64_t> divisor_override) {
  const std::string op = with_rank("avg_pool", rank);
  return tenon::_avg_pool(self, per_axis(kernel_size, rank, op.c_str(), "kernel_size"), stride, padding,
                          ceil_mode, count_include_pad, divisor_override);
}
Tensor average_backward(size_t rank, const Tensor& grad, const Tensor& self, IntArrayRef kernel_size,
                        IntArrayRef stride, IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                        std::optional<int64_t> divisor_override) {
  const std::string op = with_rank("avg_pool", rank) + "_backward";
  check_gradient_of(grad, self, op.c_str());
  return tenon::_avg_pool_backward(grad, self.sizes(), per_axis(kernel_size, rank, op.c_str(), "kernel_size"),
                                   stride, padding, ceil_mode, count_include_pad, divisor_override);
}
std::tuple<Tensor, Tensor> maximum(size_t rank, const Tensor& self, IntArrayRef kernel_size,
                                   IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                   bool ceil_mode) {
  const std::string op = with_rank("max_pool", rank);
  return tenon::_max_pool(self, per_axis(kernel_size, rank, op.c_str(), "kernel_size"), stride, padding,
                          dilation, ceil_mode);
}
Tensor maximum_values(size_t rank, const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride,
                      IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  if (thread_state.grad_enabled && self.requires_grad())
    return std::get<0>(maximum(rank, self, kernel_size, stride, padding, dilation, ceil_mode));
  const std::string op = with_rank("max_pool", rank);
  return tenon::_max_pool_values(self, per_axis(kernel_size, rank, op.c_str(), "kernel_size"), stride,
                                 padding, dilation, ceil_mode);
}
Tensor maximum_backward(size_t rank, const Tensor& grad, const Tensor& self, IntArrayRef kernel_size,
                        IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation, bool ceil_mode,
                        const Tensor& indices) {
  const std::string op = with_rank("max_pool", rank) + "_backward";
  const Windows w =
      checked_windows("max_pool", self.sizes(), per_axis(kernel_size, rank, op.c_str(), "kernel_size"),
                      stride, padding, dilation, ceil_mode);
  check_gradient_sizes(grad, with_spatial(self.sizes(), w.outputs), op.c_str());
  check_gradient_of(grad, self, op.c_str());
  return tenon::_max_pool_backward(grad, self.sizes(), indices, static_cast<int64_t>(rank));
}
Dims adaptive_size(const char* name, size_t rank, IntArrayRef output_size) {
  return per_axis(output_size, rank, with_rank(name, rank).c_str(), "output_size");
}
Tensor adaptive_average_gradient(const Tensor& grad, IntArrayRef input_size, IntArrayRef output_size) {
  double count = 1;
  for (const int64_t n : spatial_sizes(input_size, output_size.size())) count *= static_cast<double>(n);
  if (std::ranges::all_of(output_size, [](int64_t n) { return n == 1; }) && count > 0)
    return tenon::add(tenon::div(grad, Scalar(count)), Scalar(0)).expand(input_size).contiguous();  // no -0
  return tenon::_adaptive_avg_pool_backward(grad, input_size, output_size);
}
Tensor adaptive_average_backward(size_t rank, const Tensor& grad, const Tensor& self) {
  TENON_CHECK(
      grad.dim() == self.dim() && self.sizes().size() > rank, Shape,
      fmt::format("{}_backward: the gradient {} and `self` {} differ in rank",
                  with_rank("adaptive_avg_pool", rank), to_string(grad.sizes()), to_string(self.sizes())));
  check_gradient_of(grad, self, "adaptive_avg_pool backward");
  return tenon::_adaptive_avg_pool_backward(grad, self.sizes(), spatial_sizes(grad.sizes(), rank));
}
Tensor adaptive_maximum_backward(size_t rank, const Tensor& grad, const Tensor& self, const Tensor& indices) {
  check_gradient_of(grad, self, (with_rank("adaptive_max_pool", rank) + "_backward").c_str());
  return tenon::_max_pool_backward(grad, self.sizes(), indices, static_cast<int64_t>(rank));
}

}  // namespace tenon::ops
