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
/// The last input, or an attribute.
double epsilon(NodeCall& n, size_t input) {
  if (n.is_value(input)) return n.value(input, "eps").to_double();
  return n.real("epsilon", 1e-5);
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
  n.set(bias.defined() ? tenon::add(y, bias) : y);
  if (is_training(n)) n.outputs[1] = rstd;
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
  n.set(tenon::add(tenon::mul(tenon::mul(tenon::sub(x, mean), inverse), scale), bias));
}
void softmax(NodeCall& n) { n.set(tenon::softmax(n.tensor(0), n.integer("axis", -1))); }

// Queries [B, H, L, E], keys [B, H, S, E], values [B, H, S, V].
void sdpa(NodeCall& n) {
  const T q = n.tensor(0), k = n.tensor(1), v = n.tensor(2), bias = n.tensor(3);
  TENON_CHECK(
      q.sizes().size() == 4, Shape,
      fmt::format("sdpa: queries of shape {}, expected [batch, heads, length, width]", to_string(q.sizes())));
  const bool causal = n.flag("use_causal_mask", false), grouped = q.sizes()[1] != k.sizes()[1];
  const double scale = n.real("attn_scale", 1 / std::sqrt(static_cast<double>(q.sizes()[3])));
  const auto [out, stats] = tenon::_attention_forward(q, k, v, bias, 0.0, causal, scale, grouped, 0, 0);
  n.set(out);
  if (n.flag("generate_stats", false)) n.outputs[1] = stats;
}

constexpr std::string_view kNorm = "norm_forward_phase epsilon axis";
constexpr NodeKind kKinds[] = {
    {"batchnorm_inference", "input mean inv_variance scale bias", "", "Y", &batchnorm_inference},
    {"layernorm", "input scale? bias? epsilon?", kNorm, "Y MEAN INV_VARIANCE", &layernorm},
    {"rmsnorm", "input scale? bias? epsilon?", kNorm, "Y INV_VARIANCE", &rmsnorm},
    {"sdpa", "q k v bias?", "attn_scale use_causal_mask generate_stats", "O STATS", &sdpa},
    {"softmax", "input", "axis", "Y", &softmax},
};

}  // namespace

std::span<const NodeKind> norm_kinds() { return kKinds; }

}  // namespace tenon::builder
