// Quantized operators. Sums of products of integers are exact: they are those of floating-point numbers where
// no partial sum can be rounded.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tenon/core/thread_state.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/convolution/functions.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

int64_t size_of(const Tensor& x, size_t axis) { return x.sizes()[axis]; }

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
  if (zero.defined()) out = add(out, zero.to(out.dtype()));
  // float32 has neither 2^31 - 1 nor 2^32 - 1.
  if (item_size(dtype) == 4) out = out.to(kFloat64);
  return clamp(out, Scalar(low), Scalar(high)).to(dtype);
}
Tensor quantized(N& n, const Tensor& real, const Tensor& scale, const Tensor& zero) {
  return saturated(n, div(real, scale.to(real.dtype())), zero, zero.defined() ? zero.dtype() : kUInt8);
}
Tensor dequantized(const Tensor& x, const Tensor& scale, const Tensor& zero) {
  const bool is_wide = item_size(x.dtype()) >= 4;
  Tensor out = x.to(is_wide ? kInt64 : kFloat32);
  if (zero.defined()) out = sub(out, zero.to(out.dtype()));
  return mul(out.to(kFloat32), scale.to(kFloat32));
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
  bool is_constant = false;

  double largest() const { return values.dtype() == kInt8 && !zero.defined() ? 128 : 255; }
  Tensor centered(DType dtype) const {
    const Tensor out = values.to(dtype);
    return zero.defined() ? sub(out, zero.to(dtype)) : out;
  }
};
/// The smaller type in which no sum of `count` products of a's and b's elements is rounded, with b's in it.
Tensor exact_factor(const Operand& a, const Operand& b, int64_t count, const Dims& summed) {
  constexpr double kExact = 1 << 24;
  if (static_cast<double>(count) * a.largest() * b.largest() <= kExact) return b.centered(kFloat32);
  if (b.is_constant && b.values.numel() > 0) {
    // Weights are far from their bounds in most networks.
    const ExcludeDispatchKeyGuard at_once(DispatchKeySet(Functionality::Record));
    const Tensor out = b.centered(kFloat32);
    if (amax(sum(abs(out), IntArrayRef(summed))).item<float>() * a.largest() <= kExact) return out;
  }
  return b.centered(kFloat64);
}
/// A list of one number for each row, as a column.
Tensor column(const Tensor& x) {
  return x.defined() && x.sizes().size() == 1 && x.numel() > 1 ? x.reshape({-1, 1}) : x;
}
bool is_constant(N& n, size_t i) { return n.node().inputs[i] < 0; }

/// The sums, exact, as floating-point numbers.
Tensor integer_product(N& n, const Operand& a, const Operand& b) {
  const size_t rank = b.values.sizes().size();
  TENON_NODE_CHECK(n, rank >= 1 && !a.values.sizes().empty(), Shape, "a product with a number");
  const Dims summed{rank == 1 ? 0 : static_cast<int64_t>(rank) - 2};
  const Tensor factor = exact_factor(a, b, size_of(b.values, static_cast<size_t>(summed[0])), summed);
  return matmul(a.centered(factor.dtype()), factor);
}
void matmul_integer(N& n) {
  const Operand a{n.tensor(0), column(n.optional(2))}, b{n.tensor(1), n.optional(3), is_constant(n, 1)};
  n.set(integer_product(n, a, b).to(kInt32));
}
void qlinear_matmul(N& n) {
  const Operand a{n.tensor(0), column(n.tensor(2))}, b{n.tensor(3), n.tensor(5), is_constant(n, 3)};
  const Tensor scale =
      div(mul(column(n.tensor(1)).to(kFloat32), n.tensor(4).to(kFloat32)), n.tensor(6).to(kFloat32));
  n.set(saturated(n, mul(integer_product(n, a, b).to(kFloat32), scale), n.tensor(7), n.tensor(7).dtype()));
}
/// float32 of exact sums: a scale for all of a, one for all or for each column of b.
void scaled_product(N& n, const Operand& a, const Tensor& a_scale, const Operand& b, const Tensor& b_scale,
                    const Tensor& bias) {
  Tensor out = mul(integer_product(n, a, b).to(kFloat32), mul(a_scale, b_scale));
  n.set(bias.defined() ? add(out, bias) : out);
}
void dynamic_quantize_matmul(N& n) {
  const Dynamic a = dynamically_quantized(n, n.tensor(0));
  scaled_product(n, {a.values, a.zero}, a.scale, {n.tensor(1), n.optional(3), is_constant(n, 1)}, n.tensor(2),
                 n.optional(4));
}
void matmul_integer_to_float(N& n) {
  scaled_product(n, {n.tensor(0), n.optional(4)}, n.tensor(2),
                 {n.tensor(1), n.optional(5), is_constant(n, 1)}, n.tensor(3), n.optional(6));
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
/// The sums of a convolution, exact, as floating-point numbers.
Tensor integer_convolution(N& n, const Operand& x, const Operand& w) {
  const size_t rank = w.values.sizes().size();
  TENON_NODE_CHECK(n, rank >= 3 && x.values.sizes().size() == rank, Shape,
                   fmt::format("an input of {} dimensions, weights of {}", x.values.sizes().size(), rank));
  const size_t axes = rank - 2;
  const Dims strides = n.ints("strides").value_or(Dims(axes, 1));
  const Dims dilations = n.ints("dilations").value_or(Dims(axes, 1));
  TENON_NODE_CHECK(n,
                   strides.size() == axes && dilations.size() == axes && std::ranges::min(strides) > 0 &&
                       std::ranges::max(strides) <= INT32_MAX && std::ranges::min(dilations) > 0 &&
                       std::ranges::max(dilations) <= INT32_MAX,
                   Value, "attribute `strides` or `dilations` does not fit the weights");
  Dims summed;
  int64_t count = 1;
  for (size_t i = 1; i < rank; ++i) {
    summed.push_back(static_cast<int64_t>(i));
    count *= size_of(w.values, i);
  }
  const Tensor factor = exact_factor(x, w, count, summed);
  const Dims pads = padding(n, x.values, w.values.sizes().subspan(2), strides, dilations);
  // Zeros around what is centered: the zero point.
  return convolution(constant_pad_nd(x.centered(factor.dtype()), pads, 0), factor, Tensor(), strides,
                     Dims(axes, 0), dilations, false, Dims(axes, 0), n.integer("group", 1));
}
/// One number for each channel of the weights, or for each channel of a result.
Tensor of_channels(const Tensor& x, size_t rank, size_t channel) {
  if (!x.defined() || x.numel() == 1) return x.defined() ? x.reshape({}) : x;
  Dims sizes(rank, 1);
  sizes[channel] = x.numel();
  return x.reshape(sizes);
}
void conv_integer(N& n) {
  const Tensor& w = n.tensor(1);
  n.set(integer_convolution(n, {n.tensor(0), n.optional(2)},
                            {w, of_channels(n.optional(3), w.sizes().size(), 0), is_constant(n, 1)})
            .to(kInt32));
}
void qlinear_conv(N& n) {
  const Tensor& w = n.tensor(3);
  const size_t rank = w.sizes().size();
  Tensor out = integer_convolution(n, {n.tensor(0), n.tensor(2)},
                                   {w, of_channels(n.tensor(5), rank, 0), is_constant(n, 3)});
  if (n.has(8)) out = add(out.to(kFloat64), of_channels(n.tensor(8), rank, 1).to(kFloat64));
  const Tensor scale = div(mul(n.tensor(1), of_channels(n.tensor(4), rank, 1)), n.tensor(6));
  n.set(saturated(n, mul(out.to(kFloat32), scale), n.tensor(7), n.tensor(7).dtype()));
}

// com.microsoft: what the operator without "QLinear" computes, of dequantized inputs.

template <Tensor (*F)(const Tensor&, const Tensor&)>
void qlinear_two(N& n) {
  const Tensor a = dequantized(n.tensor(0), n.tensor(1), n.optional(2));
  const Tensor b = dequantized(n.tensor(3), n.tensor(4), n.optional(5));
  n.set(saturated(n, div(F(a, b), n.tensor(6)), n.optional(7), n.tensor(0).dtype()));
}
Tensor plus(const Tensor& a, const Tensor& b) { return add(a, b); }
/// With a function of the input's dequantized values.
template <class F>
void qlinear_one(N& n, const F& f) {
  const Tensor x = dequantized(n.tensor(0), n.tensor(1), n.optional(2));
  n.set(saturated(n, div(f(x), n.tensor(3)), n.optional(4), n.tensor(0).dtype()));
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

constexpr auto kRows = std::to_array<Row>({
    {"ConvInteger", 10, conv_integer},
    {"DequantizeLinear", 10, dequantize_linear},
    {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul, "com.microsoft"},
    {"MatMulInteger", 10, matmul_integer},
    {"MatMulIntegerToFloat", 1, matmul_integer_to_float, "com.microsoft"},
    {"QLinearAdd", 1, qlinear_two<plus>, "com.microsoft"},
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

std::span<const Row> quantized_rows() noexcept { return kRows; }

}  // namespace tenon::onnx
