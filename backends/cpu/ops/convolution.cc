// convolution and its gradient by the weight: tensors to products over windows.
#include <numeric>
#include <type_traits>
#include <vector>

#include "backends/cpu/conv/window_product.h"
#include "backends/cpu/copy/convert.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/report.h"
#include "tenon/core/copy_report.h"
#include "tenon/core/half.h"
#include "tenon/generated/convolution/kernels.h"
#include "tenon/ops/convolution/geometry.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

/// The dtype that elements are multiplied in. Narrow integers wrap, so that the low bits of wider ones do.
DType compute_dtype(DType dtype) {
  switch (dtype) {
    case DType::Float64:
    case DType::Int64:
    case DType::Float32:
    case DType::Int32:
      return dtype;
    case DType::Float16:
    case DType::BFloat16:
      return DType::Float32;
    default:
      return DType::Int32;
  }
}

template <class F>
void with_compute(DType compute, F&& f) {
  switch (compute) {
    case DType::Float64:
      return f.template operator()<double>();
    case DType::Int32:
      return f.template operator()<int32_t>();
    case DType::Int64:
      return f.template operator()<int64_t>();
    default:
      return f.template operator()<float>();
  }
}

/// A tensor [N, C, *] or [out, in, *], whose spatial dimensions are depth, height and width.
struct Image {
  char* data;
  DType dtype;
  int64_t item;
  int64_t size0, size1, stride0, stride1;  // strides in bytes
  std::array<int64_t, kWindowAxes> sizes{1, 1, 1}, strides{};

  explicit Image(const Tensor& t)
      : data(static_cast<char*>(t.data_ptr())),
        dtype(t.dtype()),
        item(static_cast<int64_t>(t.itemsize())),
        size0(t.sizes()[0]),
        size1(t.sizes()[1]),
        stride0(t.strides()[0] * item),
        stride1(t.strides()[1] * item) {
    const size_t spatial = t.sizes().size() - 2;
    for (size_t d = 0; d < spatial; ++d) {
      sizes[kWindowAxes - spatial + d] = t.sizes()[d + 2];
      strides[kWindowAxes - spatial + d] = t.strides()[d + 2] * item;
    }
  }
  PositionStrides positions() const { return {stride0, strides}; }
};

/// The numbers of a convolution for depth, height and width.
struct WindowNumbers {
  std::array<int64_t, kWindowAxes> stride{1, 1, 1}, padding{}, dilation{1, 1, 1};
  bool transposed;
  int64_t groups;

  WindowNumbers(size_t spatial, IntArrayRef s, IntArrayRef p, IntArrayRef d, bool transposed, int64_t groups)
      : transposed(transposed), groups(groups) {
    const int64_t zero = 0;
    const ops::ConvolutionNumbers n = ops::convolution_numbers(spatial, s, p, d, IntArrayRef(zero));
    for (size_t i = 0; i < spatial; ++i) {
      const size_t axis = kWindowAxes - spatial + i;
      stride[axis] = n.stride[i], padding[axis] = n.padding[i], dilation[axis] = n.dilation[i];
    }
  }
};

template <class T>
void set_scale(auto& product, int64_t alpha, int64_t beta) {
  product.alpha = static_cast<T>(alpha), product.beta = static_cast<T>(beta);
}

/// What the windows of `from` have in common for all of a convolution's products.
Windows windows_of(const Image& from, DType compute, int64_t groups) {
  Windows w;
  w.data = from.data, w.item = from.item, w.convert = convert_fn(from.dtype, compute);
  w.same_type = from.dtype == compute;
  w.batch = from.size0, w.batch_stride = from.stride0;
  w.channels = from.size1 / groups, w.channel_stride = from.stride1;
  for (size_t a = 0; a < kWindowAxes; ++a)
    w.axes[a].inputs = from.sizes[a], w.axes[a].stride = from.strides[a];
  return w;
}

/// Windows that start `stride` apart; taps are `dilation` apart.
void set_forward_axes(Windows& w, const WindowNumbers& g, const std::array<int64_t, kWindowAxes>& outputs,
                      const std::array<int64_t, kWindowAxes>& kernel) {
  for (size_t a = 0; a < kWindowAxes; ++a) {
    w.axes[a].outputs = outputs[a];
    w.axes[a].step = g.stride[a];
    w.axes[a].taps = {kernel[a], -g.padding[a], g.dilation[a]};
  }
}

template <class T>
WindowProduct<T> product_of(const Image& input, const Image& weight, const Image& out, const T* bias,
                            const WindowNumbers& g) {
  constexpr DType kCompute = dtype_of<T>;
  WindowProduct<T> p;
  p.groups = g.groups;
  p.rows = out.size1 / g.groups;
  p.windows = windows_of(input, kCompute, g.groups);
  p.windows_group = p.windows.channels * input.stride1;
  p.weights.data = weight.data, p.weights.item = weight.item;
  p.weights.convert = convert_fn(weight.dtype, kCompute);
  p.weights.same_type = weight.dtype == kCompute;
  p.weights.row = g.transposed ? weight.stride1 : weight.stride0;
  p.weights.channel = g.transposed ? weight.stride0 : weight.stride1;
  p.weights.tap = weight.strides;
  p.weights_group = weight.size0 / g.groups * weight.stride0;
  p.bias = bias;
  p.out = out.data, p.out_item = out.item;
  p.out_group = p.rows * out.stride1, p.out_row = out.stride1;
  p.out_positions = out.positions();
  p.out_same_type = out.dtype == kCompute;
  p.store = convert_fn(kCompute, out.dtype), p.load = convert_fn(out.dtype, kCompute);
  return p;
}

/// The results of a transposed convolution that are `stride` apart meet the same taps: along each axis, those
/// that begin at `first` are an ordinary convolution with every few of the taps, in their order.
struct Phase {
  int64_t outputs, tap, tap_step;
  TapRun taps;

  Phase(int64_t first, int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation)
      : outputs((size - first + stride - 1) / stride), tap(0), tap_step(stride / std::gcd(stride, dilation)) {
    while (tap < std::min(kernel, tap_step) && (first + padding - tap * dilation) % stride != 0) ++tap;
    if (tap >= std::min(kernel, tap_step)) {
      taps.count = 0;
      return;
    }
    taps = {(kernel - tap + tap_step - 1) / tap_step, (first + padding - tap * dilation) / stride,
            -(tap_step * dilation / stride)};
  }
};

/// The product of the results that begin at `first` along each axis.
template <class T>
WindowProduct<T> product_of_phase(WindowProduct<T> p, const std::array<int64_t, kWindowAxes>& first,
                                  const Image& weight, const Image& out, const WindowNumbers& g) {
  for (size_t a = 0; a < kWindowAxes; ++a) {
    const Phase phase(first[a], out.sizes[a], weight.sizes[a], g.stride[a], g.padding[a], g.dilation[a]);
    p.out += first[a] * out.strides[a];
    p.out_positions.axes[a] = out.strides[a] * g.stride[a];
    p.windows.axes[a].outputs = phase.outputs;
    if (phase.taps.count == 0) {  // nothing but the bias
      p.windows.channels = 0;
      continue;
    }
    p.windows.axes[a].taps = phase.taps;
    p.weights.data += phase.tap * weight.strides[a];
    p.weights.tap[a] = weight.strides[a] * phase.tap_step;
  }
  return p;
}

template <class T>
size_t convolve_transposed(const WindowProduct<T>& all, const Image& weight, const Image& out,
                           const WindowNumbers& g) {
  constexpr size_t kAtOnce = 512;  // large strides have many phases
  std::vector<WindowProduct<T>> products;
  size_t copied = 0;
  const auto run = [&] {
    copied += window_products(std::span<WindowProduct<T>>(products));
    products.clear();
  };
  const auto phases = [&](size_t axis) { return std::min(g.stride[axis], out.sizes[axis]); };
  for (int64_t d = 0; d < phases(0); ++d) {
    for (int64_t h = 0; h < phases(1); ++h) {
      for (int64_t w = 0; w < phases(2); ++w) {
        products.push_back(product_of_phase(all, {d, h, w}, weight, out, g));
        if (products.size() == kAtOnce) run();
      }
    }
  }
  run();
  return copied;
}

/// Whether all positions of an image are evenly spaced, `step` bytes apart; `step` becomes the size of the
/// image.
bool evenly_spaced(const Image& t, int64_t& step) {
  bool even = true;
  for (size_t a = kWindowAxes; a-- > 0;) {
    even &= t.sizes[a] == 1 || t.strides[a] == step;
    step *= t.sizes[a];
  }
  return even;
}

/// Whether all positions of all images are evenly spaced with the channels inside, as in channels-last.
bool channels_inside(const Image& t) {
  int64_t step = t.strides[2];
  return t.stride1 == t.item && step % t.item == 0 && step >= t.size1 * t.item && evenly_spaced(t, step) &&
         (t.size0 == 1 || t.stride0 == step);
}

/// Whether the positions of each channel are side by side, in whole elements from channel to channel.
bool positions_inside(const Image& t) {
  int64_t step = t.item;
  return t.stride1 % t.item == 0 && t.stride0 % t.item == 0 && evenly_spaced(t, step);
}

/// Whether windows are one element each, and all operands have the type in which they are multiplied.
template <class T>
bool has_one_tap(const WindowProduct<T>& p, const Image& input, const Image& weight, const Image& out,
                 const WindowNumbers& g) {
  constexpr int64_t kItem = sizeof(T);
  const std::array<int64_t, kWindowAxes> ones{1, 1, 1}, zeros{};
  return weight.sizes == ones && g.stride == ones && g.padding == zeros && input.sizes == out.sizes &&
         p.windows.same_type && p.weights.same_type && p.out_same_type &&
         (g.groups == 1 || p.windows.channels >= 16) && p.weights.row % kItem == 0 &&
         p.weights.channel % kItem == 0;
}

/// Windows of one element whose channels are inside are a matrix already, and so is the result: one
/// product for each group, with the same sums.
template <class T>
void multiply_positions(const WindowProduct<T>& p, const Image& input, const Image& weight, const Image& out,
                        const WindowNumbers& g) {
  constexpr int64_t kItem = sizeof(T);
  GemmArgs<T> m;
  m.m = input.size0 * input.sizes[0] * input.sizes[1] * input.sizes[2];
  m.n = p.rows, m.k = p.windows.channels;
  m.a_row = input.strides[2] / kItem, m.a_col = 1;
  m.b_row = p.weights.channel / kItem, m.b_col = p.weights.row / kItem;
  m.c_row = out.strides[2] / kItem, m.c_col = 1;
  m.alpha = p.alpha, m.beta = p.beta;
  for (int64_t group = 0; group < g.groups; ++group) {
    m.a = reinterpret_cast<const T*>(input.data + group * p.windows_group);
    m.b = reinterpret_cast<const T*>(weight.data + group * p.weights_group);
    m.c = reinterpret_cast<T*>(out.data + group * p.out_group);
    const bool adds = p.bias && m.beta == T(0);
    m.bias = adds ? p.bias + group * m.n : nullptr;
    gemm(m);
    if (!p.bias || adds) continue;
    for (int64_t i = 0; i < m.m; ++i) {
      T* row = m.c + i * m.c_row;
      for (int64_t j = 0; j < m.n; ++j) row[j] += p.bias[group * m.n + j];
    }
  }
}

/// Where positions are inside, each entry of the batch is such a matrix, transposed.
template <class T>
void multiply_planes(const WindowProduct<T>& p, const Image& input, const Image& weight, const Image& out,
                     const WindowNumbers& g) {
  constexpr int64_t kItem = sizeof(T);
  BatchedGemmArgs<T> all;
  GemmArgs<T>& m = all.one;
  m.m = p.rows, m.k = p.windows.channels;
  m.n = input.sizes[0] * input.sizes[1] * input.sizes[2];
  m.a_row = p.weights.row / kItem, m.a_col = p.weights.channel / kItem;
  m.b_row = input.stride1 / kItem, m.b_col = 1;
  m.c_row = out.stride1 / kItem, m.c_col = 1;
  m.alpha = p.alpha;
  all.batch = input.size0;
  all.b_batch = input.stride0 / kItem, all.c_batch = out.stride0 / kItem;
  for (int64_t group = 0; group < g.groups; ++group) {
    m.a = reinterpret_cast<const T*>(weight.data + group * p.weights_group);
    m.b = reinterpret_cast<const T*>(input.data + group * p.windows_group);
    m.c = reinterpret_cast<T*>(out.data + group * p.out_group);
    m.row_bias = p.bias ? p.bias + group * m.m : nullptr;
    gemm_batched(all);
  }
}

/// A convolution that is a product of the tensors themselves; false if it is none.
template <class T>
bool multiply(const WindowProduct<T>& p, const Image& input, const Image& weight, const Image& out,
              const WindowNumbers& g) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!has_one_tap(p, input, weight, out, g)) return false;
    if (p.windows.channels > 1 && out.size1 > 1 && channels_inside(input) && channels_inside(out)) {
      multiply_positions(p, input, weight, out, g);
      return true;
    }
    // Smaller planes leave too much of their last vectors empty.
    const bool large = input.sizes[0] * input.sizes[1] * input.sizes[2] >= 256;
    if (large && p.beta == T(0) && positions_inside(input) && positions_inside(out)) {
      multiply_planes(p, input, weight, out, g);
      return true;
    }
  }
  return false;
}

/// Returns how many bytes of the weight were copied.
template <class T>
size_t convolve(const Image& input, const Image& weight, const T* bias, const WindowNumbers& g,
                const Image& out, int64_t alpha, int64_t beta) {
  WindowProduct<T> product = product_of<T>(input, weight, out, bias, g);
  set_scale<T>(product, alpha, beta);
  if (multiply(product, input, weight, out, g)) return 0;
  if (!g.transposed) {
    set_forward_axes(product.windows, g, out.sizes, weight.sizes);
    return window_products(std::span<WindowProduct<T>>(&product, 1));
  }
  return convolve_transposed(product, weight, out, g);
}

/// out = alpha * convolution + beta * out + bias, of real tensors.
void convolve_real(const Tensor& input, const Tensor& weight, const Tensor& bias, const WindowNumbers& g,
                   const Tensor& out, int64_t alpha, int64_t beta) {
  with_compute(compute_dtype(input.dtype()), [&]<class T>() {
    std::vector<T> numbers;
    if (bias.defined()) {
      numbers.resize(static_cast<size_t>(bias.numel()));
      const auto item = static_cast<int64_t>(bias.itemsize());
      convert_fn(bias.dtype(), dtype_of<T>)(numbers.data(), {sizeof(T), 0}, bias.data_ptr(),
                                            {bias.strides()[0] * item, 0}, bias.numel(), 1);
    }
    const size_t copied = convolve<T>(Image(input), Image(weight), bias.defined() ? numbers.data() : nullptr,
                                      g, Image(out), alpha, beta);
    if (copied > 0)
      report_copy("convolution", "weight", "it does not lie in the order in which its products are added",
                  copied);
  });
}

template <class T>
void differentiate(const Image& grad, const Image& input, const WindowNumbers& g, const Image& out,
                   int64_t alpha, int64_t beta) {
  constexpr DType kCompute = dtype_of<T>;
  // A transposed convolution is one whose input and result have changed places.
  const Image &from = g.transposed ? grad : input, &rows = g.transposed ? input : grad;
  WindowGradient<T> w;
  w.groups = g.groups;
  w.rows = rows.size1 / g.groups;
  w.windows = windows_of(from, kCompute, g.groups);
  set_forward_axes(w.windows, g, rows.sizes, out.sizes);
  w.windows_group = w.windows.channels * from.stride1;
  w.grad = rows.data, w.grad_item = rows.item, w.convert = convert_fn(rows.dtype, kCompute);
  w.grad_group = w.rows * rows.stride1, w.grad_row = rows.stride1, w.grad_positions = rows.positions();
  w.out = out.data, w.out_item = out.item;
  w.grad_same_type = rows.dtype == kCompute, w.out_same_type = out.dtype == kCompute;
  w.store = convert_fn(kCompute, out.dtype), w.load = convert_fn(out.dtype, kCompute);
  w.out_group = w.rows * out.stride0, w.out_row = out.stride0, w.out_channel = out.stride1;
  w.out_tap = out.strides;
  set_scale<T>(w, alpha, beta);
  window_gradient(w);
}

/// The four products of complex numbers' parts, in the order of the matrix product's; f(a, b, out, alpha,
/// beta, whether it is the last one of its part).
template <class F>
void for_parts(const Tensor& a, const Tensor& b, const Tensor& out, F&& f) {
  const Tensor ar = ops::part_of(a, 0), ai = ops::part_of(a, 1);
  const Tensor br = ops::part_of(b, 0), bi = ops::part_of(b, 1);
  const Tensor re = ops::part_of(out, 0), im = ops::part_of(out, 1);
  f(ar, br, re, 1, 0, false);
  f(ai, bi, re, -1, 1, true);
  f(ar, bi, im, 1, 0, false);
  f(ai, br, im, 1, 1, true);
}

}  // namespace

void convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntArrayRef stride,
                 IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef, int64_t groups,
                 Tensor& out) {
  if (out.numel() == 0) return;
  report_kernel("convolution", TENON_KERNEL_NAMES("windows"));
  const WindowNumbers g(input.sizes().size() - 2, stride, padding, dilation, transposed, groups);
  if (!input.is_complex()) return convolve_real(input, weight, bias, g, out, 1, 0);
  int64_t part = 0;
  for_parts(input, weight, out,
            [&](const Tensor& a, const Tensor& b, const Tensor& to, int64_t alpha, int64_t beta, bool last) {
              const bool add = last && bias.defined();
              convolve_real(a, b, add ? ops::part_of(bias, part) : Tensor(), g, to, alpha, beta);
              part += last;
            });
}

void convolution_weight_gradient(const Tensor& grad_output, const Tensor& input, IntArrayRef,
                                 IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                                 bool transposed, int64_t groups, Tensor& out) {
  if (out.numel() == 0) return;
  if (grad_output.numel() == 0 || input.numel() == 0) return ops::zero_elements(out);
  report_kernel("_convolution_weight_gradient", TENON_KERNEL_NAMES("windows"));
  const WindowNumbers g(input.sizes().size() - 2, stride, padding, dilation, transposed, groups);
  const auto real = [&](const Tensor& a, const Tensor& b, const Tensor& to, int64_t alpha, int64_t beta,
                        bool) {
    with_compute(compute_dtype(a.dtype()),
                 [&]<class T>() { differentiate<T>(Image(a), Image(b), g, Image(to), alpha, beta); });
  };
  if (input.is_complex())
    for_parts(grad_output, input, out, real);
  else
    real(grad_output, input, out, 1, 0, true);
}

}  // namespace tenon::cpu
