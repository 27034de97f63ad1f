// Norms, softmax and attention.
#include <fmt/format.h>

#include <cmath>

#include "tenon/builder/node_call.h"
#include "tenon/core/error.h"
#include "tenon/generated/functions.h"

namespace tenon::builder {
namespace {

using T = tenon::Tensor;

/// A scale or a bias without the dimensions of size 1 in front: what a norm goes over.
T without_front(const T& scale) {
  if (!scale.defined()) return scale;
  const Dims sizes = scale.sizes().to_dims();
  size_t first = 0;
  while (first + 1 < sizes.size() && sizes[first] == 1) ++first;
  if (first == 0) return scale;
  return scale.reshape(Dims(std::span(sizes).subspan(first)));
}
Dims normalized(const NodeCall& n, const T& x, const T& scale) {
  if (n.has("axis")) {
    const int64_t axis = n.integer("axis", -1), ndim = static_cast<int64_t>(x.sizes().size());
    const int64_t first = axis < 0 ? axis + ndim : axis;
    TENON_CHECK(first >= 0 && first < ndim, Index, fmt::format("{}: `axis` is out of range", n.kind()));
    const Dims sizes = x.sizes().to_dims();
    return Dims(std::span(sizes).subspan(static_cast<size_t>(first)));
  }
  TENON_CHECK(
      scale.defined(), Value,
      fmt::format("{}: without a scale, `axis` says from which dimension on it normalises", n.kind()));
  return scale.sizes().to_dims();
}
/// Statistics are for a backward pass.
bool is_training(const NodeCall& n) {
  const std::string phase = n.text("norm_forward_phase", "INFERENCE");
  TENON_CHECK(phase == "INFERENCE" || phase == "TRAINING", Value,
              fmt::format("{}: `norm_forward_phase` is TRAINING or INFERENCE, not {}", n.kind(), phase));
  return phase == "TRAINING";
}
/// The result of a norm of `x`, whose parameters may not make it larger.
T sized_as(const NodeCall& n, const T& result, const T& x) {
  TENON_CHECK(result.sizes() == x.sizes(), Shape,
              fmt::format("{}: its parameters make a result of shape {} of an input of shape {}", n.kind(),
                          to_string(result.sizes()), to_string(x.sizes())));
  return result;
}
double epsilon(NodeCall& n, size_t input) {
  const double value = n.number(input, "eps", 1e-5);
  TENON_CHECK(value >= 0, Value,
              fmt::format("{}: `epsilon` is {}, expected a number of at least 0", n.kind(), value));
  return value;
}

void layernorm(NodeCall& n) {
  const T x = n.tensor(0), scale = without_front(n.tensor(1)), bias = without_front(n.tensor(2));
  const Dims shape = normalized(n, x, scale);
  const auto [y, mean, rstd] = tenon::native_layer_norm(x, shape, scale, bias, epsilon(n, 3));
  n.set(y);
  if (!is_training(n)) return;
  n.outputs[1] = mean;
  n.outputs[2] = rstd;
}
void rmsnorm(NodeCall& n) {
  const T x = n.tensor(0), scale = without_front(n.tensor(1)), bias = without_front(n.tensor(2));
  const Dims shape = normalized(n, x, scale);
  const auto [y, rstd] = tenon::_rms_norm(x, shape, scale, epsilon(n, 3));
  n.set(bias.defined() ? sized_as(n, tenon::add(y, bias), x) : y);
  if (is_training(n)) n.outputs[1] = rstd;
}
/// A gradient of every row, added up over all rows, as what every row has.
T over_rows(const T& gradient, const T& parameter) {
  return tenon::sum_to_size(gradient, without_front(parameter).sizes()).reshape(parameter.sizes());
}
void layernorm_backward(NodeCall& n) {
  const T grad = n.tensor(0), x = n.tensor(1), scale = n.tensor(2), mean = n.tensor(3), rstd = n.tensor(4);
  const Dims shape = normalized(n, x, without_front(scale));
  n.set(tenon::_layer_norm_backward(grad, x, mean, rstd, without_front(scale), shape));
  if (!scale.defined()) return;
  n.outputs[1] = over_rows(tenon::mul(grad, tenon::mul(tenon::sub(x, mean), rstd)), scale);
  n.outputs[2] = over_rows(grad, scale);
}
void rmsnorm_backward(NodeCall& n) {
  const T grad = n.tensor(0), x = n.tensor(1), scale = n.tensor(2), rstd = n.tensor(3);
  const Dims shape = normalized(n, x, without_front(scale));
  n.set(tenon::_rms_norm_backward(grad, x, rstd, without_front(scale), shape));
  if (scale.defined()) n.outputs[1] = over_rows(tenon::mul(grad, tenon::mul(x, rstd)), scale);
}
/// Parameters of channels: as they are if they have the image's number of dimensions, else along dimension 1.
T of_channels(const T& parameter, const T& image) {
  const size_t ndim = image.sizes().size();
  if (!parameter.defined() || parameter.sizes().size() == ndim) return parameter;
  Dims shape(ndim, 1);
  shape[1] = parameter.numel();
  return parameter.reshape(shape);
}
void batchnorm_inference(NodeCall& n) {
  const T x = n.tensor(0);
  TENON_CHECK(x.sizes().size() >= 2, Shape,
              fmt::format("batchnorm_inference: an image of shape {} has no channels", to_string(x.sizes())));
  const T mean = of_channels(n.tensor(1), x), inverse = of_channels(n.tensor(2), x);
  const T scale = of_channels(n.tensor(3), x), bias = of_channels(n.tensor(4), x);
  n.set(sized_as(n, tenon::add(tenon::mul(tenon::mul(tenon::sub(x, mean), inverse), scale), bias), x));
}
void softmax(NodeCall& n) { n.set(tenon::softmax(n.tensor(0), n.integer("axis", -1))); }

// Queries [B, H, L, E], keys [B, H, S, E], values [B, H, S, V].
struct Attention {
  bool causal, grouped;
  double scale;  // of the next call, if a run brings it
};
Attention attention_of(NodeCall& n, const T& q, const T& k, const T& bias, size_t scale) {
  TENON_CHECK(
      q.sizes().size() == 4 && k.sizes().size() == 4, Shape,
      fmt::format("{}: queries of shape {} and keys of shape {}, expected [batch, heads, length, width]",
                  n.kind(), to_string(q.sizes()), to_string(k.sizes())));
  const double otherwise = 1 / std::sqrt(static_cast<double>(q.sizes()[3]));
  TENON_CHECK(
      !bias.defined() || !n.flag("use_causal_mask", false), NotImplemented,
      fmt::format("{}: `use_causal_mask` with a bias; let the bias be -inf where keys are masked", n.kind()));
  return {n.flag("use_causal_mask", false), q.sizes()[1] != k.sizes()[1],
          n.number(scale, "scale", otherwise)};
}
void sdpa(NodeCall& n) {
  const T q = n.tensor(0), k = n.tensor(1), v = n.tensor(2), bias = n.tensor(3);
  const Attention a = attention_of(n, q, k, bias, 4);
  const auto [out, stats] = tenon::_attention_forward(q, k, v, bias, 0.0, a.causal, a.scale, a.grouped, 0, 0);
  n.set(out);
  if (n.flag("generate_stats", false)) n.outputs[1] = stats;
}
void sdpa_backward(NodeCall& n) {
  const T q = n.tensor(0), k = n.tensor(1), v = n.tensor(2), o = n.tensor(3), grad = n.tensor(4);
  const T stats = n.tensor(5), bias = n.tensor(6);
  const Attention a = attention_of(n, q, k, bias, 7);
  const auto [dq, dk, dv] =
      tenon::_attention_backward(grad, q, k, v, bias, o, stats, 0.0, a.causal, a.scale, a.grouped, 0, 0);
  n.outputs = {dq, dk, dv};
}

constexpr std::string_view kNorm = "norm_forward_phase axis";
constexpr NodeKind kNormKinds[] = {
    {"batchnorm_inference", "input mean inv_variance scale bias", "", "Y", &batchnorm_inference},
    {"layernorm", "input scale? bias? epsilon#?", kNorm, "Y MEAN INV_VARIANCE", &layernorm},
    {"layernorm_backward", "grad input scale? mean inv_variance", "axis", "DX DSCALE DBIAS",
     &layernorm_backward},
    {"rmsnorm", "input scale? bias? epsilon#?", kNorm, "Y INV_VARIANCE", &rmsnorm},
    {"rmsnorm_backward", "grad input scale? inv_variance", "axis", "DX DSCALE", &rmsnorm_backward},
    {"sdpa", "q k v bias? attn_scale#?", "use_causal_mask generate_stats", "O STATS", &sdpa},
    {"sdpa_backward", "q k v o dO stats bias? attn_scale#?", "use_causal_mask", "dQ dK dV", &sdpa_backward},
    {"softmax", "input", "axis", "Y", &softmax},
};

}  // namespace

std::span<const NodeKind> norm_kinds() { return kNormKinds; }

}  // namespace tenon::builder
