// Quantized operators. Sums of products of integers are exact: products of integers of 8 bits compute them,
// or floating-point numbers where no partial sum can be rounded.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/convolution/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/iter/result_shape.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

int64_t size_of(const Tensor& x, size_t axis) { return x.sizes()[axis]; }

/// One number without dimensions, which it would give to what it is combined with; others as they are.
Tensor number_or_list(const Tensor& x) {
  return x.defined() && x.numel() == 1 && !x.sizes().empty() ? x.reshape({}) : x;
}

/// The smallest and the largest integer of a dtype of at most 32 bits.
std::pair<double, double> range_of(N& n, DType dtype) {
  TENON_NODE_CHECK(n, is_integral(dtype, false) && item_size(dtype) <= 4, NotImplemented,
                   fmt::format("quantized values of {}", name(dtype)));
  const double count = std::exp2(8.0 * static_cast<double>(item_size(dtype)));
  return is_signed(dtype) ? std::pair(-count / 2, count / 2 - 1) : std::pair(0.0, count - 1);
}
/// `real`, in units, as values of `dtype` around `zero` (undefined: 0).
Tensor saturated(N& n, const Tensor& real, const Tensor& zero, DType dtype) {
  const auto [low, high] = range_of(n, dtype);
  Tensor out = round(real);
  if (zero.defined()) out = add(out, number_or_list(zero).to(out.dtype()));
  // float32 has neither 2^31 - 1 nor 2^32 - 1.
  if (item_size(dtype) == 4) out = out.to(kFloat64);
  return clamp(out, Scalar(low), Scalar(high)).to(dtype);
}
Tensor quantized(N& n, const Tensor& real, const Tensor& scale, const Tensor& zero) {
  return saturated(n, div(real, number_or_list(scale).to(real.dtype())), zero,
                   zero.defined() ? zero.dtype() : kUInt8);
}
Tensor dequantized(const Tensor& x, const Tensor& scale, const Tensor& zero) {
  const bool is_wide = item_size(x.dtype()) >= 4;
  Tensor out = x.to(is_wide ? kInt64 : kFloat32);
  if (zero.defined()) out = sub(out, number_or_list(zero).to(out.dtype()));
  return mul(out.to(kFloat32), number_or_list(scale).to(kFloat32));
}

/// A scale or a zero point as it fits x: one for all, for each place of the axis, or for each block of
/// places.
Tensor fitted(N& n, const Tensor& x, const Tensor& scale) {
  const size_t rank = x.sizes().size();
  const int64_t block = n.integer("block_size", 0);
  if (!scale.defined() || scale.sizes().empty()) return scale;
  if (block == 0 && scale.numel() == 1) return scale.reshape({});
  const auto axis = static_cast<size_t>(n.axis(n.integer("axis", 1), rank));
  if (block == 0) {
    TENON_NODE_CHECK(n, scale.sizes().size() == 1 && size_of(scale, 0) == size_of(x, axis), Shape,
                     fmt::format("a scale of shape {}, for dimension {} of an input of shape {}",
                                 to_string(scale.sizes()), axis, to_string(x.sizes())));
    Dims sizes(rank, 1);
    sizes[axis] = scale.numel();
    return scale.reshape(sizes);
  }
  TENON_NODE_CHECK(
      n, block > 0 && scale.sizes().size() == rank, Shape,
      fmt::format("attribute `block_size` is {}, with a scale of shape {}", block, to_string(scale.sizes())));
  const Tensor place = div(arange(size_of(x, axis), TensorOptions(kInt64)), Scalar(block), "floor");
  return index_select(scale, static_cast<int64_t>(axis), place);
}

void quantize_linear(N& n) {
  const Tensor& x = n.tensor(0);
  const Tensor scale = fitted(n, x, n.tensor(1)), zero = fitted(n, x, n.optional(2));
  const DType dtype = n.dtype("output_dtype").value_or(zero.defined() ? zero.dtype() : kUInt8);
  const DType real = n.dtype("precision").value_or(x.dtype() == kFloat64 ? kFloat64 : kFloat32);
  n.set(saturated(n, div(x.to(real), scale.to(real)).to(kFloat32), zero, dtype));
}
void dequantize_linear(N& n) {
  const Tensor& x = n.tensor(0);
  const Tensor scale = fitted(n, x, n.tensor(1));
  const DType dtype = n.dtype("output_dtype").value_or(scale.dtype());
  n.set(dequantized(x, scale, fitted(n, x, n.optional(2))).to(dtype));
}

struct Dynamic {
  Tensor values, scale, zero;
};
/// As uint8, with a scale that x's range gives, which holds 0.
Dynamic dynamically_quantized(N& n, const Tensor& x) {
  const Tensor low = clamp_max(amin(x), Scalar(0)), high = clamp_min(amax(x), Scalar(0));
  const Tensor range = div(sub(high, low), Scalar(255));
  const Tensor scale = where(eq(range, Scalar(0)), ones_like(range), range);
  const Tensor zero = clamp(round(div(neg(low), scale)), Scalar(0), Scalar(255)).to(kUInt8);
  return {saturated(n, div(x, scale), zero, kUInt8), scale, zero};
}
void dynamic_quantize_linear(N& n) {
  const Dynamic out = dynamically_quantized(n, n.tensor(0));
  n.set(0, out.values);
  n.set(1, out.scale);
  n.set(2, out.zero);
}

/// An operand of a product: integers and what they count from.
struct Operand {
  Tensor values, zero;

  Operand(const Tensor& of, const Tensor& from) : values(of), zero(number_or_list(from)) {}

  Tensor centered(DType dtype) const {
    const Tensor out = values.to(dtype);
    return zero.defined() ? sub(out, zero.to(dtype)) : out;
  }
};
/// A list of one number for each row, as a column.
Tensor column(const Tensor& x) {
  return x.defined() && x.sizes().size() == 1 && x.numel() > 1 ? x.reshape({-1, 1}) : x;
}
/// Whether a zero is one number, or one for each of `count`.
bool is_list(const Tensor& zero, int64_t count) {
  return !zero.defined() || zero.numel() == 1 || (zero.numel() == count && zero.sizes().size() == 1);
}

/// As many as `sizes`, then a matrix.
Tensor batch_of(const Tensor& x, const Dims& sizes) {
  Dims all = sizes;
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  const int64_t rows = size_of(x, x.sizes().size() - 2), columns = x.sizes().back();
  all.push_back(rows);
  all.push_back(columns);
  return x.expand(all).reshape({count, rows, columns});
}
/// The exact sums, int32. Where b is constant, so is what it is packed to.
Tensor integer_product(N& n, const Operand& a, const Operand& b) {
  TENON_NODE_CHECK(n, !b.values.sizes().empty() && !a.values.sizes().empty(), Shape,
                   "a product with a number");
  const Tensor left = a.values.sizes().size() == 1 ? unsqueeze(a.values, 0) : a.values;
  const Tensor right = b.values.sizes().size() == 1 ? unsqueeze(b.values, 1) : b.values;
  const size_t rank = left.sizes().size(), right_rank = right.sizes().size();
  const int64_t rows = size_of(left, rank - 2), columns = right.sizes().back();
  if (!is_list(a.zero, rows) || !is_list(b.zero, columns))
    return matmul(Operand{a.values, column(a.zero)}.centered(kInt32), b.centered(kInt32));
  const Dims batch =
      broadcast_shapes(left.sizes().first(rank - 2), right.sizes().first(right_rank - 2), "matmul");
  const Tensor packed = _int8_pack(right_rank == 2 ? right : batch_of(right, batch), b.zero);
  const Tensor out = _int8_product(rank == 2 ? left : batch_of(left, batch), packed, columns, a.zero);
  Dims sizes = batch;
  if (a.values.sizes().size() > 1) sizes.push_back(rows);
  if (b.values.sizes().size() > 1) sizes.push_back(columns);
  return out.reshape(sizes);
}
void matmul_integer(N& n) {
  n.set(integer_product(n, {n.tensor(0), n.optional(2)}, {n.tensor(1), n.optional(3)}));
}
void qlinear_matmul(N& n) {
  const Operand a{n.tensor(0), n.tensor(2)}, b{n.tensor(3), n.tensor(5)};
  const auto scale_of = [&](size_t i) { return number_or_list(n.tensor(i)).to(kFloat32); };
  const Tensor scale = div(mul(column(scale_of(1)), scale_of(4)), scale_of(6));
  n.set(saturated(n, mul(integer_product(n, a, b).to(kFloat32), scale), n.tensor(7), n.tensor(7).dtype()));
}
/// float32 of exact sums: a scale for all of a, one for all or for each column of b.
void scaled_product(N& n, const Operand& a, const Tensor& a_scale, const Operand& b, const Tensor& b_scale,
                    const Tensor& bias) {
  Tensor out =
      mul(integer_product(n, a, b).to(kFloat32), mul(number_or_list(a_scale), number_or_list(b_scale)));
  n.set(bias.defined() ? add(out, bias) : out);
}
void dynamic_quantize_matmul(N& n) {
  const Dynamic a = dynamically_quantized(n, n.tensor(0));
  scaled_product(n, {a.values, a.zero}, a.scale, {n.tensor(1), n.optional(3)}, n.tensor(2), n.optional(4));
}
void matmul_integer_to_float(N& n) {
  scaled_product(n, {n.tensor(0), n.optional(4)}, n.tensor(2), {n.tensor(1), n.optional(5)}, n.tensor(3),
                 n.optional(6));
}
/// (alpha a b + c) of real numbers; c has their scale, and the result is quantized if it has one.
void qgemm(N& n) {
  const auto matrix = [&](size_t i, const char* turned) {
    const Tensor& x = n.tensor(i);
    return n.flag(turned, false) ? transpose(x, 0, 1) : x;
  };
  Tensor out = integer_product(n, {matrix(0, "transA"), n.optional(2)}, {matrix(3, "transB"), n.optional(5)});
  if (n.has(6)) out = add(out, n.tensor(6));
  Tensor scale =
      mul(mul(number_or_list(n.tensor(1)), number_or_list(n.tensor(4))), Scalar(n.number("alpha", 1)));
  if (!n.has(7)) return n.set(mul(out.to(kFloat32), scale));
  scale = div(scale, number_or_list(n.tensor(7)));
  n.set(saturated(n, mul(out.to(kFloat32), scale), n.optional(8),
                  n.has(8) ? n.tensor(8).dtype() : n.tensor(0).dtype()));
}

/// What is added to both ends of the axes by `pads` or `auto_pad`, the last axis first.
Dims padding(N& n, const Tensor& x, IntArrayRef kernel, const Dims& strides, const Dims& dilations) {
  const size_t axes = kernel.size();
  const std::string_view automatic = n.text("auto_pad", "NOTSET");
  const Dims given = n.ints("pads").value_or(Dims(2 * axes, 0));
  TENON_NODE_CHECK(n, given.size() == 2 * axes, Value,
                   fmt::format("attribute `pads` has {} numbers, expected {}", given.size(), 2 * axes));
  Dims out;
  for (size_t i = axes; i-- > 0;) {
    int64_t before = given[i], after = given[axes + i];
    if (automatic.starts_with("SAME")) {
      const int64_t size = size_of(x, 2 + i), count = (size + strides[i] - 1) / strides[i];
      const int64_t all =
          std::max<int64_t>((count - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 - size, 0);
      before = automatic == "SAME_LOWER" ? all - all / 2 : all / 2;
      after = all - before;
    }
    if (automatic == "VALID") before = after = 0;
    out.push_back(before);
    out.push_back(after);
  }
  return out;
}
/// One number for each channel of the weights, or for each channel of a result.
Tensor of_channels(const Tensor& x, size_t rank, size_t channel) {
  if (!x.defined() || x.numel() == 1) return x.defined() ? x.reshape({}) : x;
  Dims sizes(rank, 1);
  sizes[channel] = x.numel();
  return x.reshape(sizes);
}
/// What a convolution of integers does, besides its operands.
struct Convolution {
  Dims strides, dilations, pads;
  int64_t groups = 1;
};
/// Its sums by products of floating-point numbers in which no partial sum is rounded.
Tensor real_convolution(const Operand& x, const Operand& w, const Convolution& c) {
  constexpr int64_t kExact = 1 << 24, kLargest = 255 * 255;
  const int64_t sums = w.values.numel() / std::max<int64_t>(1, size_of(w.values, 0));
  const DType dtype = sums * kLargest <= kExact ? kFloat32 : kFloat64;
  const size_t rank = w.values.sizes().size();
  const Operand weights{w.values, of_channels(w.zero, rank, 0)};
  // Zeros around what is centered: the zero point.
  return convolution(constant_pad_nd(x.centered(dtype), c.pads, 0), weights.centered(dtype), Tensor(),
                     c.strides, Dims(rank - 2, 0), c.dilations, false, Dims(rank - 2, 0), c.groups)
      .to(kInt32);
}
/// Its sums by products of integers: the weights times the windows of each image, which are padded by `zero`.
Tensor window_products(const Operand& x, const Operand& w, const Convolution& c, double zero) {
  const size_t axes = c.strides.size();
  const int64_t images = size_of(x.values, 0), rows = size_of(w.values, 0) / c.groups;
  Tensor windows = x.values;
  if (std::ranges::any_of(c.pads, [](int64_t pad) { return pad != 0; }))
    windows = constant_pad_nd(windows, c.pads, Scalar(zero));
  Dims sizes{images * c.groups, size_of(w.values, 1)};
  for (size_t i = 0; i < axes; ++i) sizes.push_back(size_of(windows, 2 + i));
  windows = windows.reshape(sizes);
  // Each axis of places is followed by one of taps, at the end.
  sizes = {images, size_of(w.values, 0)};
  int64_t places = 1, depth = size_of(w.values, 1);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t taps = size_of(w.values, 2 + i), hole = c.dilations[i], axis = static_cast<int64_t>(2 + i);
    windows = slice(windows.unfold(axis, (taps - 1) * hole + 1, c.strides[i]), -1, 0, std::nullopt, hole);
    sizes.push_back(size_of(windows, 2 + i));
    places *= sizes.back();
    depth *= taps;
  }
  if (axes == 1) windows = unsqueeze(unsqueeze(windows, 2), -2);
  windows = permute(windows, {0, 1, 4, 5, 2, 3});
  Tensor weights = w.values.reshape({c.groups, rows, depth});
  weights = c.groups == 1 ? select(weights, 0, 0) : batch_of(weights, {images, c.groups});
  return _int8_product(weights, _int8_pack(windows, x.zero), places, w.zero).reshape(sizes);
}
/// The exact sums of a convolution, int32. The zeros are inputs `x_zero` and `w_zero`.
Tensor integer_convolution(N& n, const Tensor& values, size_t x_zero, const Tensor& weights, size_t w_zero) {
  const size_t rank = weights.sizes().size();
  TENON_NODE_CHECK(n, rank >= 3 && values.sizes().size() == rank, Shape,
                   fmt::format("an input of {} dimensions, weights of {}", values.sizes().size(), rank));
  const size_t axes = rank - 2;
  Convolution c{.strides = n.ints("strides").value_or(Dims(axes, 1)),
                .dilations = n.ints("dilations").value_or(Dims(axes, 1)),
                .groups = n.integer("group", 1)};
  TENON_NODE_CHECK(n,
                   c.strides.size() == axes && c.dilations.size() == axes &&
                       std::ranges::min(c.strides) > 0 && std::ranges::max(c.strides) <= INT32_MAX &&
                       std::ranges::min(c.dilations) > 0 && std::ranges::max(c.dilations) <= INT32_MAX,
                   Value, "attribute `strides` or `dilations` does not fit the weights");
  c.pads = padding(n, values, weights.sizes().subspan(2), c.strides, c.dilations);
  const Operand x{values, n.optional(x_zero)}, w{weights, n.optional(w_zero)};
  TENON_NODE_CHECK(
      n, !x.zero.defined() || x.zero.sizes().empty(), Shape,
      fmt::format("a zero point of shape {} for its input, expected one number", to_string(x.zero.sizes())));
  // Few products with a window do not pay for its copy. Pads are numbers.
  constexpr int64_t kLeastRows = 4;
  const bool has_number = !x.zero.defined() || n.is_constant(x_zero);
  const bool has_list = is_list(w.zero, c.groups == 1 ? size_of(weights, 0) : 1);
  bool fits = axes <= 2 && has_number && has_list && c.groups > 0 && x.values.numel() > 0 &&
              size_of(weights, 0) >= kLeastRows * c.groups && size_of(weights, 0) % c.groups == 0 &&
              size_of(weights, 1) * c.groups == size_of(values, 1);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t size = size_of(values, 2 + i) + c.pads[2 * (axes - 1 - i)] + c.pads[2 * (axes - 1 - i) + 1];
    fits = fits && (size_of(weights, 2 + i) - 1) * c.dilations[i] < size;
  }
  if (!fits) return real_convolution(x, w, c);
  return window_products(x, w, c, x.zero.defined() ? n.number(x_zero) : 0);
}
void conv_integer(N& n) { n.set(integer_convolution(n, n.tensor(0), 2, n.tensor(1), 3)); }
void qlinear_conv(N& n) {
  const size_t rank = n.tensor(3).sizes().size();
  Tensor out = integer_convolution(n, n.tensor(0), 2, n.tensor(3), 5);
  if (n.has(8)) out = add(out, of_channels(n.tensor(8), rank, 1));
  const Tensor scale =
      div(mul(number_or_list(n.tensor(1)), of_channels(n.tensor(4), rank, 1)), number_or_list(n.tensor(6)));
  n.set(saturated(n, mul(out.to(kFloat32), scale), n.tensor(7), n.tensor(7).dtype()));
}

// com.microsoft: what the operator without "QLinear" computes, of dequantized inputs.

template <Tensor (*F)(const Tensor&, const Tensor&)>
void qlinear_two(N& n) {
  const Tensor a = dequantized(n.tensor(0), n.tensor(1), n.optional(2));
  const Tensor b = dequantized(n.tensor(3), n.tensor(4), n.optional(5));
  n.set(saturated(n, div(F(a, b), number_or_list(n.tensor(6))), n.optional(7), n.tensor(0).dtype()));
}
Tensor sum_of(const Tensor& a, const Tensor& b) { return add(a, b); }
/// With a function of the input's dequantized values.
template <class F>
void qlinear_one(N& n, const F& f) {
  const Tensor x = dequantized(n.tensor(0), n.tensor(1), n.optional(2));
  n.set(saturated(n, div(f(x), number_or_list(n.tensor(3))), n.optional(4), n.tensor(0).dtype()));
}
void qlinear_sigmoid(N& n) {
  qlinear_one(n, [](const Tensor& x) { return sigmoid(x); });
}
void qlinear_leaky_relu(N& n) {
  qlinear_one(n, [&](const Tensor& x) { return leaky_relu(x, n.number("alpha", 0.01)); });
}
void qlinear_global_average_pool(N& n) {
  qlinear_one(n, [&](const Tensor& x) {
    const bool is_last = n.flag("channels_last", false);
    Dims axes;
    for (size_t i = is_last ? 1 : 2; i + (is_last ? 1 : 0) < x.sizes().size(); ++i)
      axes.push_back(static_cast<int64_t>(i));
    TENON_NODE_CHECK(n, !axes.empty(), Shape, "its input has no image");
    return mean(x, IntArrayRef(axes), true);
  });
}
void qlinear_average_pool(N& n) {
  qlinear_one(n, [&](const Tensor& x) {
    TENON_NODE_CHECK(n, !n.flag("channels_last", false) && !n.flag("ceil_mode", false), NotImplemented,
                     "attribute `channels_last` or `ceil_mode` is 1");
    const Dims kernel = n.ints("kernel_shape").value_or(Dims());
    const size_t axes = kernel.size();
    const Dims strides = n.ints("strides").value_or(Dims(axes, 1));
    TENON_NODE_CHECK(
        n,
        axes > 0 && x.sizes().size() == axes + 2 && strides.size() == axes && std::ranges::min(strides) > 0,
        Shape, "attribute `kernel_shape` or `strides` does not fit its input");
    const Dims pads = padding(n, x, IntArrayRef(kernel), strides, Dims(axes, 1));
    const auto sums = [&](const Tensor& t) {
      return _avg_pool(constant_pad_nd(t, pads, 0), kernel, strides, Dims(axes, 0), false, true,
                       std::nullopt);
    };
    const Tensor out = sums(x);
    return n.flag("count_include_pad", false) ? out : div(out, sums(ones_like(x)));
  });
}
void qlinear_concat(N& n) {
  std::vector<Tensor> parts;
  for (size_t i = 2; i + 2 < n.num_inputs(); i += 3)
    parts.push_back(dequantized(n.tensor(i), n.tensor(i + 1), n.optional(i + 2)));
  n.set(quantized(n, cat(parts, n.integer("axis", 0)), n.tensor(0), n.tensor(1)));
}

constexpr auto kQuantizedRows = std::to_array<Row>({
    {"ConvInteger", 10, conv_integer},
    {"DequantizeLinear", 10, dequantize_linear},
    {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, "com.microsoft"},
    {"MatMulInteger", 10, matmul_integer},
    {"MatMulIntegerToFloat", 1, matmul_integer_to_float, "com.microsoft"},
    {"QGemm", 1, qgemm, "com.microsoft"},
    {"QLinearAdd", 1, qlinear_two<sum_of>, "com.microsoft"},
    {"QLinearAveragePool", 1, qlinear_average_pool, "com.microsoft"},
    {"QLinearConcat", 1, qlinear_concat, "com.microsoft"},
    {"QLinearConv", 10, qlinear_conv},
    {"QLinearGlobalAveragePool", 1, qlinear_global_average_pool, "com.microsoft"},
    {"QLinearLeakyRelu", 1, qlinear_leaky_relu, "com.microsoft"},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"QLinearMul", 1, qlinear_two<mul>, "com.microsoft"},
    {"QLinearSigmoid", 1, qlinear_sigmoid, "com.microsoft"},
    {"QuantizeLinear", 10, quantize_linear},
});

}  // namespace

std::span<const Row> quantized_rows() noexcept { return kQuantizedRows; }

}  // namespace tenon::onnx
