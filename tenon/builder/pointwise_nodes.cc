// Nodes that compute element by element.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tenon/builder/node_call.h"
#include "tenon/core/error.h"
#include "tenon/generated/functions.h"

namespace tenon::builder {
namespace {

using T = tenon::Tensor;
using Unary = T (*)(const T&);
using Binary = T (*)(const T&, const T&);

template <T (*kFunction)(const T&)>
void unary(NodeCall& n) {
  n.set(kFunction(n.tensor(0)));
}
/// Of two tensors, or by a form of its own of a tensor and a number.
template <T (*kTensors)(const T&, const T&), T (*kNumber)(const T&, const Scalar&), bool kCommutes = false>
void binary(NodeCall& n) {
  if (n.is_value_for(1, 0)) return n.set(kNumber(n.tensor(0), n.value(1, "other")));
  if (kCommutes && n.is_value_for(0, 1)) return n.set(kNumber(n.tensor(1), n.value(0, "other")));
  const T a = n.tensor(0), b = n.tensor(1);
  n.set(kTensors(a, b));
}
template <T (*kTensors)(const T&, const T&)>
void tensors(NodeCall& n) {
  const T a = n.tensor(0), b = n.tensor(1);
  n.set(kTensors(a, b));
}

T add(const T& a, const T& b) { return tenon::add(a, b); }
T add(const T& a, const Scalar& b) { return tenon::add(a, b); }
T sub(const T& a, const T& b) { return tenon::sub(a, b); }
T sub(const T& a, const Scalar& b) { return tenon::sub(a, b); }
T div(const T& a, const T& b) { return tenon::div(a, b); }
T div(const T& a, const Scalar& b) { return tenon::div(a, b); }
T identity(const T& x) { return x; }
T gelu(const T& x) { return tenon::gelu(x); }
T gelu_tanh(const T& x) { return tenon::gelu(x, "tanh"); }
T add_square(const T& a, const T& b) { return tenon::add(a, tenon::mul(b, b)); }
T as_bool(const T& x) { return x.dtype() == DType::Bool ? x : tenon::ne(x, 0); }
T not_of(const T& x) { return tenon::logical_not(x); }

void power(NodeCall& n) {
  if (n.is_value_for(1, 0)) return n.set(tenon::pow(n.tensor(0), n.value(1, "exponent")));
  const T a = n.tensor(0), b = n.tensor(1);
  n.set(tenon::pow(a, b));
}
/// What cuDNN says of its attributes, in this order: a value below `lower_clip` becomes lower_clip +
/// negative_slope (value - lower_clip), and a value above `upper_clip`, that one too, becomes upper_clip.
struct Clips {
  Scalar low, slope;
  std::optional<Scalar> up;

  explicit Clips(const NodeCall& n)
      : low(n.scalar("lower_clip", 0)),
        slope(n.scalar("negative_slope", 0)),
        up(n.has("upper_clip") ? std::optional(n.scalar("upper_clip", 0)) : std::nullopt) {}

  bool is_flat() const { return slope.to_double() == 0; }
  /// Before the upper bound.
  T sloped(const T& x) const {
    if (low.to_double() == 0) return tenon::leaky_relu(x, slope);
    const T below = tenon::add(tenon::mul(tenon::sub(x, low), slope), low);
    return tenon::where(tenon::lt(x, low), below, x);
  }
};
void relu(NodeCall& n) {
  const T x = n.tensor(0);
  const Clips c(n);
  if (c.is_flat()) return n.set(n.has("lower_clip") || c.up ? tenon::clamp(x, c.low, c.up) : tenon::relu(x));
  n.set(c.up ? tenon::clamp(c.sloped(x), std::nullopt, c.up) : c.sloped(x));
}
void elu(NodeCall& n) { n.set(tenon::elu(n.tensor(0), n.real("alpha", 1))); }
void softplus(NodeCall& n) { n.set(tenon::softplus(n.tensor(0), n.real("beta", 1))); }
void swish(NodeCall& n) {
  const T x = n.tensor(0);
  const double beta = n.real("swish_beta", 1);
  n.set(beta == 1 ? tenon::silu(x) : tenon::mul(x, tenon::sigmoid(tenon::mul(x, beta))));
}
void select(NodeCall& n) {
  const T a = n.tensor(0), b = n.tensor(1);
  n.set(tenon::where(as_bool(n.raw(2)), a, b));
}
void gen_index(NodeCall& n) {
  const T x = n.raw(0);
  const auto ndim = static_cast<int64_t>(x.sizes().size());
  const int64_t axis = n.integer("axis", 0), d = axis < 0 ? axis + ndim : axis;
  TENON_CHECK(d >= 0 && d < ndim, Index, "gen_index: `axis` is out of range");
  Dims shape(static_cast<size_t>(ndim), 1);
  shape[static_cast<size_t>(d)] = x.sizes()[d];
  const DType dtype = n.wanted_dtype().value_or(DType::Int64);
  const int64_t last = std::max<int64_t>(x.sizes()[d], 1) - 1;
  TENON_CHECK(!is_integral(dtype, /*include_bool=*/false) || holds_number(dtype, last), Value,
              fmt::format("gen_index: its data type {} cannot hold the last index of dimension {}, {}",
                          name(dtype), d, last));
  n.set(tenon::arange(x.sizes()[d], tenon::TensorOptions().dtype(dtype)).view(shape).expand(x.sizes()));
}

// Gradients: of the result, and of the value that the forward node got.

void relu_backward(NodeCall& n) {
  const T grad = n.tensor(0), x = n.tensor(1);
  const Clips c(n);
  const Scalar none(int64_t{0});
  const T above = tenon::gt(x, c.low);
  const T result =
      c.is_flat() ? tenon::where(above, grad, none) : tenon::where(above, grad, tenon::mul(grad, c.slope));
  if (!c.up) return n.set(result);
  const T unbounded = c.is_flat() ? tenon::clamp(x, c.low) : c.sloped(x);
  n.set(tenon::where(tenon::lt(unbounded, *c.up), result, none));
}
void tanh_backward(NodeCall& n) {
  const T grad = n.tensor(0), y = tenon::tanh(n.tensor(1));
  n.set(tenon::mul(grad, tenon::rsub(tenon::mul(y, y), 1)));
}
void sigmoid_backward(NodeCall& n) {
  const T grad = n.tensor(0), y = tenon::sigmoid(n.tensor(1));
  n.set(tenon::mul(grad, tenon::mul(y, tenon::rsub(y, 1))));
}
void gelu_backward(NodeCall& n) {
  // x P(x) has the derivative P(x) + x p(x), with the normal distribution P and its density p.
  const T grad = n.tensor(0), x = n.tensor(1);
  const T cdf = tenon::mul(tenon::add(tenon::erf(tenon::mul(x, 1 / std::numbers::sqrt2)), 1), 0.5);
  const T pdf = tenon::mul(tenon::exp(tenon::mul(tenon::mul(x, x), -0.5)),
                           std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  n.set(tenon::mul(grad, tenon::add(cdf, tenon::mul(x, pdf))));
}
void gelu_tanh_backward(NodeCall& n) {
  const T grad = n.tensor(0), x = n.tensor(1);
  const double k = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, c = 0.044715;
  const T x2 = tenon::mul(x, x);
  const T t = tenon::tanh(tenon::mul(tenon::mul(x, tenon::add(tenon::mul(x2, c), 1)), k));
  const T inner = tenon::mul(tenon::add(tenon::mul(x2, 3 * c), 1), k);
  const T slope = tenon::mul(tenon::mul(x, tenon::rsub(tenon::mul(t, t), 1)), inner);
  n.set(tenon::mul(tenon::mul(grad, 0.5), tenon::add(tenon::add(t, 1), slope)));
}
void swish_backward(NodeCall& n) {
  const T grad = n.tensor(0), x = n.tensor(1);
  const double beta = n.real("swish_beta", 1);
  const T bx = beta == 1 ? x : tenon::mul(x, beta);
  const T s = tenon::sigmoid(bx);
  n.set(tenon::mul(grad, tenon::mul(s, tenon::add(tenon::mul(bx, tenon::rsub(s, 1)), 1))));
}
void elu_backward(NodeCall& n) {
  const T grad = n.tensor(0), x = n.tensor(1);
  const double alpha = n.real("alpha", 1);
  n.set(tenon::where(tenon::gt(x, 0), grad, tenon::mul(tenon::mul(grad, tenon::exp(x)), alpha)));
}
void softplus_backward(NodeCall& n) {
  const T grad = n.tensor(0), x = n.tensor(1);
  n.set(tenon::mul(grad, tenon::sigmoid(tenon::mul(x, n.real("beta", 1)))));
}

constexpr NodeKind kPointwiseKinds[] = {
    {"abs", "input", "", "OUT_0", &unary<&tenon::abs>},
    {"add", "a b", "", "OUT_0", &binary<&add, &add, true>},
    {"add_square", "a b", "", "OUT_0", &tensors<&add_square>},
    {"bias", "input bias", "", "OUT_0", &binary<&add, &add, true>},
    {"binary_select", "input0 input1 mask!", "", "OUT_0", &select},
    {"ceil", "input", "", "OUT_0", &unary<&tenon::ceil>},
    {"cmp_eq", "input comparison", "", "OUT_0", &binary<&tenon::eq, &tenon::eq>, Computes::Truths},
    {"cmp_ge", "input comparison", "", "OUT_0", &binary<&tenon::ge, &tenon::ge>, Computes::Truths},
    {"cmp_gt", "input comparison", "", "OUT_0", &binary<&tenon::gt, &tenon::gt>, Computes::Truths},
    {"cmp_le", "input comparison", "", "OUT_0", &binary<&tenon::le, &tenon::le>, Computes::Truths},
    {"cmp_lt", "input comparison", "", "OUT_0", &binary<&tenon::lt, &tenon::lt>, Computes::Truths},
    {"cmp_neq", "input comparison", "", "OUT_0", &binary<&tenon::ne, &tenon::ne>, Computes::Truths},
    {"cos", "input", "", "OUT_0", &unary<&tenon::cos>},
    {"div", "a b", "", "OUT_0", &binary<&div, &div>, Computes::Quotients},
    {"elu", "input", "alpha", "OUT_0", &elu},
    {"elu_backward", "loss input", "alpha", "OUT_0", &elu_backward},
    {"erf", "input", "", "OUT_0", &unary<&tenon::erf>},
    {"exp", "input", "", "OUT_0", &unary<&tenon::exp>},
    {"floor", "input", "", "OUT_0", &unary<&tenon::floor>},
    {"gelu", "input", "", "OUT_0", &unary<&gelu>},
    {"gelu_approx_tanh", "input", "", "OUT_0", &unary<&gelu_tanh>},
    {"gelu_approx_tanh_backward", "loss input", "", "OUT_0", &gelu_tanh_backward},
    {"gelu_backward", "loss input", "", "OUT_0", &gelu_backward},
    {"gen_index", "input", "axis", "OUT_0", &gen_index, Computes::Nothing},
    {"identity", "input", "", "OUT_0", &unary<&identity>},
    {"leaky_relu", "input", "negative_slope!", "OUT_0", &relu},
    {"log", "input", "", "OUT_0", &unary<&tenon::log>},
    {"logical_and", "a b", "", "OUT_0", &tensors<&tenon::logical_and>, Computes::Logic},
    {"logical_not", "input", "", "OUT_0", &unary<&not_of>, Computes::Logic},
    {"logical_or", "a b", "", "OUT_0", &tensors<&tenon::logical_or>, Computes::Logic},
    {"max", "input0 input1", "", "OUT_0", &tensors<&tenon::maximum>},
    {"min", "input0 input1", "", "OUT_0", &tensors<&tenon::minimum>},
    {"mod", "input0 input1", "", "OUT_0", &tensors<&tenon::fmod>},
    {"mul", "a b", "", "OUT_0", &binary<&tenon::mul, &tenon::mul, true>},
    {"neg", "input", "", "OUT_0", &unary<&tenon::neg>},
    {"pow", "input0 input1", "", "OUT_0", &power},
    {"reciprocal", "input", "", "OUT_0", &unary<&tenon::reciprocal>},
    {"relu", "input", "negative_slope lower_clip upper_clip", "OUT_0", &relu},
    {"relu_backward", "loss input", "negative_slope lower_clip upper_clip", "OUT_0", &relu_backward},
    {"rsqrt", "input", "", "OUT_0", &unary<&tenon::rsqrt>},
    {"scale", "input scale", "", "OUT_0", &binary<&tenon::mul, &tenon::mul, true>},
    {"sigmoid", "input", "", "OUT_0", &unary<&tenon::sigmoid>},
    {"sigmoid_backward", "loss input", "", "OUT_0", &sigmoid_backward},
    {"sin", "input", "", "OUT_0", &unary<&tenon::sin>},
    {"softplus", "input", "beta", "OUT_0", &softplus},
    {"softplus_backward", "loss input", "beta", "OUT_0", &softplus_backward},
    {"sqrt", "input", "", "OUT_0", &unary<&tenon::sqrt>},
    {"sub", "a b", "", "OUT_0", &binary<&sub, &sub>},
    {"swish", "input", "swish_beta", "OUT_0", &swish},
    {"swish_backward", "loss input", "swish_beta", "OUT_0", &swish_backward},
    {"tan", "input", "", "OUT_0", &unary<&tenon::tan>},
    {"tanh", "input", "", "OUT_0", &unary<&tenon::tanh>},
    {"tanh_backward", "loss input", "", "OUT_0", &tanh_backward},
};

}  // namespace

std::span<const NodeKind> pointwise_kinds() { return kPointwiseKinds; }

}  // namespace tenon::builder
