// Operators of one element of each input.
#include <array>

#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

template <Tensor (*F)(const Tensor&)>
void one(N& n) {
  n.set(F(n.tensor(0)));
}
/// Input 1. Before version 7, its first dimension is at an axis of input 0.
Tensor second(N& n) {
  const Tensor& b = n.tensor(1);
  if (n.opset() >= 7 || !n.has("axis")) return b;
  const size_t count = n.tensor(0).sizes().size();
  Dims sizes = b.sizes().to_dims();
  for (auto i = static_cast<size_t>(n.axis(n.integer("axis", 0), count)) + sizes.size(); i < count; ++i)
    sizes.push_back(1);
  return b.reshape(sizes);
}
template <Tensor (*F)(const Tensor&, const Tensor&)>
void two(N& n) {
  n.set(F(n.tensor(0), second(n)));
}
/// Of any number of inputs.
template <Tensor (*F)(const Tensor&, const Tensor&)>
void several(N& n) {
  Tensor out = n.tensor(0);
  for (size_t i = 1; i < n.num_inputs(); ++i) out = F(out, n.tensor(i));
  n.set(out);
}
Tensor plus(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor minus(const Tensor& a, const Tensor& b) { return sub(a, b); }

/// A number as it is in a tensor of `like`'s dtype, so that nothing is promoted.
Scalar scalar_like(const Tensor& like, double value) {
  return is_integral(like.dtype(), true) ? Scalar(static_cast<int64_t>(value)) : Scalar(value);
}

void divide(N& n) {
  const Tensor &a = n.tensor(0), b = second(n);
  n.set(is_integral(a.dtype(), true) ? div(a, b, "trunc") : div(a, b));
}
void mod(N& n) {
  n.set(n.flag("fmod", false) ? fmod(n.tensor(0), n.tensor(1)) : remainder(n.tensor(0), n.tensor(1)));
}
void power(N& n) {
  const Tensor &x = n.tensor(0), &exponent = n.tensor(1);
  // A constant, which is often 2 or 0.5.
  const bool is_number = n.is_constant(1) && !exponent.requires_grad() && exponent.numel() == 1 &&
                         exponent.sizes().size() <= x.sizes().size() && is_floating_point(x.dtype());
  n.set(is_number ? pow(x, Scalar(n.number(1))) : pow(x, second(n)).to(x.dtype()));
}
void mean_of_all(N& n) {
  Tensor out = n.tensor(0);
  for (size_t i = 1; i < n.num_inputs(); ++i) out = add(out, n.tensor(i));
  n.set(div(out, Scalar(static_cast<double>(n.num_inputs()))));
}
void clip(N& n) {
  const Tensor& x = n.tensor(0);
  if (n.opset() >= 11) {
    const Tensor low = n.optional(1), high = n.optional(2);
    return n.set(low.defined() || high.defined() ? clamp(x, low, high) : x);
  }
  std::optional<Scalar> low, high;
  if (n.has("min")) low = scalar_like(x, n.number("min", 0));
  if (n.has("max")) high = scalar_like(x, n.number("max", 0));
  n.set(low || high ? clamp(x, low, high) : x);
}
void cast(N& n) { n.set(n.tensor(0).to(*n.dtype("to"))); }
void cast_like(N& n) { n.set(n.tensor(0).to(n.tensor(1).dtype())); }
void bit_shift(N& n) {
  const std::string_view direction = n.text("direction", "");
  TENON_NODE_CHECK(n, direction == "LEFT" || direction == "RIGHT", Value,
                   "attribute `direction` is neither LEFT nor RIGHT");
  n.set(direction == "LEFT" ? bitwise_left_shift(n.tensor(0), n.tensor(1))
                            : bitwise_right_shift(n.tensor(0), n.tensor(1)));
}
void is_inf(N& n) {
  const Tensor& x = n.tensor(0);
  const bool negative = n.flag("detect_negative", true), positive = n.flag("detect_positive", true);
  Tensor out = isinf(x);
  if (!negative) out = logical_and(out, gt(x, Scalar(0)));
  if (!positive) out = logical_and(out, lt(x, Scalar(0)));
  n.set(out);
}

void elu_of(N& n) { n.set(elu(n.tensor(0), n.number("alpha", 1))); }
void selu_of(N& n) {
  n.set(elu(n.tensor(0), n.number("alpha", 1.67326319217681884765625),
            n.number("gamma", 1.05070102214813232421875)));
}
void celu_of(N& n) { n.set(celu(n.tensor(0), n.number("alpha", 1))); }
void leaky(N& n) { n.set(leaky_relu(n.tensor(0), n.number("alpha", 0.01))); }
void hard_sigmoid(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(clamp(add(mul(x, Scalar(n.number("alpha", 0.2))), Scalar(n.number("beta", 0.5))), Scalar(0),
              Scalar(1)));
}
void thresholded_relu(N& n) { n.set(threshold(n.tensor(0), n.number("alpha", 1), 0)); }
void softsign(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(div(x, add(abs(x), Scalar(1))));
}
void prelu_of(N& n) {
  const Tensor &x = n.tensor(0), &slope = n.tensor(1);
  // Before version 7, slopes are of channels.
  const bool by_channel = n.opset() < 7 && slope.numel() > 1;
  Dims sizes(x.sizes().size(), 1);
  if (by_channel) sizes[1] = -1;
  n.set(_prelu_kernel(x, by_channel ? slope.reshape(sizes) : slope));
}
void gelu_of(N& n) { n.set(gelu(n.tensor(0), n.text("approximate", "none"))); }
void swish(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(mul(x, sigmoid(mul(x, Scalar(n.number("alpha", 1))))));
}
void swiglu(N& n) {
  const Tensor& x = n.tensor(0);
  n.set(mul(mul(x, sigmoid(mul(x, Scalar(n.number("alpha", 1))))), n.tensor(1)));
}
void shrink(N& n) {
  const Tensor& x = n.tensor(0);
  const double bound = n.number("lambd", 0.5), bias = n.number("bias", 0);
  const Tensor low = lt(x, Scalar(-bound)), high = gt(x, Scalar(bound));
  n.set(where(low, add(x, scalar_like(x, bias)), where(high, sub(x, scalar_like(x, bias)), zeros_like(x))));
}
void choose(N& n) { n.set(where(n.tensor(0), n.tensor(1), n.tensor(2))); }
void softplus_of(N& n) { n.set(softplus(n.tensor(0))); }

constexpr auto kPointwiseRows = std::to_array<Row>({
    {"Abs", 1, one<abs>},
    {"Acos", 7, one<acos>},
    {"Acosh", 9, one<acosh>},
    {"Add", 1, two<plus>},
    {"And", 1, two<logical_and>},
    {"Asin", 7, one<asin>},
    {"Asinh", 9, one<asinh>},
    {"Atan", 7, one<atan>},
    {"Atanh", 9, one<atanh>},
    {"BitShift", 11, bit_shift},
    {"BitwiseAnd", 18, two<bitwise_and>},
    {"BitwiseNot", 18, one<bitwise_not>},
    {"BitwiseOr", 18, two<bitwise_or>},
    {"BitwiseXor", 18, two<bitwise_xor>},
    {"Cast", 1, cast},
    {"CastLike", 15, cast_like},
    {"Ceil", 1, one<ceil>},
    {"Celu", 12, celu_of},
    {"Clip", 1, clip},
    {"Cos", 7, one<cos>},
    {"Cosh", 9, one<cosh>},
    {"Div", 1, divide},
    {"Elu", 1, elu_of},
    {"Equal", 1, two<eq>},
    {"Erf", 9, one<erf>},
    {"Exp", 1, one<exp>},
    {"Floor", 1, one<floor>},
    {"Gelu", 20, gelu_of},
    {"Greater", 1, two<gt>},
    {"GreaterOrEqual", 12, two<ge>},
    {"HardSigmoid", 1, hard_sigmoid},
    {"HardSwish", 14, one<hardswish>},
    {"IsInf", 10, is_inf},
    {"IsNaN", 9, one<isnan>},
    {"LeakyRelu", 1, leaky},
    {"Less", 1, two<lt>},
    {"LessOrEqual", 12, two<le>},
    {"Log", 1, one<log>},
    {"Max", 6, several<maximum>},
    {"Mean", 6, mean_of_all},
    {"Min", 6, several<minimum>},
    {"Mish", 18, one<mish>},
    {"Mod", 10, mod},
    {"Mul", 1, two<mul>},
    {"Neg", 1, one<neg>},
    {"Not", 1, one<logical_not>},
    {"Or", 1, two<logical_or>},
    {"PRelu", 1, prelu_of},
    {"Pow", 1, power},
    {"Reciprocal", 1, one<reciprocal>},
    {"Relu", 1, one<relu>},
    {"Round", 11, one<round>},
    {"Selu", 1, selu_of},
    {"Shrink", 9, shrink},
    {"Sigmoid", 1, one<sigmoid>},
    {"Sign", 9, one<sign>},
    {"Sin", 7, one<sin>},
    {"Sinh", 9, one<sinh>},
    {"Softplus", 1, softplus_of},
    {"Softsign", 1, softsign},
    {"Sqrt", 1, one<sqrt>},
    {"Sub", 1, two<minus>},
    {"Sum", 6, several<plus>},
    {"SwiGLU", 28, swiglu},
    {"Swish", 24, swish},
    {"Tan", 7, one<tan>},
    {"Tanh", 1, one<tanh>},
    {"ThresholdedRelu", 10, thresholded_relu},
    {"Where", 9, choose},
    {"Xor", 1, two<logical_xor>},
});

}  // namespace

std::span<const Row> pointwise_rows() noexcept { return kPointwiseRows; }

}  // namespace tenon::onnx
