// Norms.
#include <fmt/format.h>

#include <array>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/embedding/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/norm/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

double epsilon(N& n, double otherwise = 1e-5) { return n.number("epsilon", otherwise); }

void batch_normalization(N& n) {
  const Tensor& x = n.tensor(0);
  Tensor weight = n.tensor(1), bias = n.tensor(2), mean = n.tensor(3), variance = n.tensor(4);
  const double eps = epsilon(n);
  if (n.opset() < 9 && !n.flag("spatial", true)) {
    // Statistics of every element of a sample.
    return n.set((x - mean) / sqrt(variance + Scalar(eps)) * weight + bias);
  }
  // One dimension is a batch of one channel.
  const bool flat = x.sizes().size() == 1;
  const Tensor input = flat ? unsqueeze(x, 1) : x;
  const bool training = n.opset() >= 14 ? n.flag("training_mode", false)
                        : n.opset() < 7 ? !n.flag("is_test", false)
                                        : n.wants(1) || n.wants(2);
  Tensor out;
  if (training) {
    const auto [y, now, rstd, var] =
        _batch_norm_training(input, weight.to(x.dtype()), bias.to(x.dtype()), eps);
    out = y;
    const double momentum = n.number("momentum", 0.9);
    const auto updated = [&](const Tensor& before, const Tensor& seen) {
      return (before * Scalar(momentum) + seen.to(before.dtype()) * Scalar(1 - momentum));
    };
    n.set(1, updated(mean, now));
    n.set(2, updated(variance, var));
  } else {
    const DType dtype = x.dtype();
    out = _batch_norm_inference(input, weight.to(dtype), bias.to(dtype), mean.to(dtype), variance.to(dtype),
                                eps);
  }
  n.set(0, flat ? squeeze(out, 1) : out);
}

void instance_normalization(N& n) {
  n.set(instance_norm(n.tensor(0), n.tensor(1), n.tensor(2), {}, {}, true, 0, epsilon(n), false));
}

void group_normalization(N& n) {
  const Tensor& x = n.tensor(0);
  const int64_t groups = n.integer("num_groups", 0), channels = x.sizes().size() > 1 ? x.sizes()[1] : 0;
  TENON_NODE_CHECK(n, groups > 0 && channels % groups == 0, Value,
                   fmt::format("attribute `num_groups` is {}, of {} channels", groups, channels));
  const auto of_channels = [&](const Tensor& t) {
    // Before version 21 each group has one.
    return n.opset() >= 21 ? t : expand(unsqueeze(t, 1), {groups, channels / groups}).reshape({channels});
  };
  n.set(group_norm(x, groups, of_channels(n.tensor(1)), of_channels(n.tensor(2)), epsilon(n)));
}

/// The last dimensions, from attribute `axis` on.
Dims last_sizes(N& n, const Tensor& x) {
  const int64_t axis = n.axis(n.integer("axis", -1), x.sizes().size());
  return Dims(x.sizes().last(x.sizes().size() - static_cast<size_t>(axis)));
}
bool has_sizes(const Tensor& t, const Dims& sizes) { return !t.defined() || t.sizes() == IntArrayRef(sizes); }

struct Normalized {
  Tensor out, mean, rstd;
};
/// With weights that may broadcast.
Normalized normalize(const Tensor& x, const Dims& sizes, const Tensor& weight, const Tensor& bias, double eps,
                     bool centered) {
  const bool is_plain = has_sizes(weight, sizes) && has_sizes(bias, sizes) && (centered || !bias.defined());
  Normalized result;
  if (centered)
    std::tie(result.out, result.mean, result.rstd) =
        native_layer_norm(x, sizes, is_plain ? weight : Tensor(), is_plain ? bias : Tensor(), eps);
  else
    std::tie(result.out, result.rstd) = _rms_norm(x, sizes, is_plain ? weight : Tensor(), eps);
  if (is_plain) return result;
  if (weight.defined()) result.out = result.out * weight;
  if (bias.defined()) result.out = result.out + bias;
  return result;
}

void layer_normalization(N& n) {
  const Tensor& x = n.tensor(0);
  const auto [out, mean, rstd] = normalize(x, last_sizes(n, x), n.tensor(1), n.optional(2), epsilon(n), true);
  n.set(0, out);
  if (n.wants(1)) n.set(1, mean.to(kFloat32));
  if (n.wants(2)) n.set(2, rstd.to(kFloat32));
}
void rms_normalization(N& n) {
  const Tensor& x = n.tensor(0);
  const auto [out, mean, rstd] = normalize(x, last_sizes(n, x), n.tensor(1), {}, epsilon(n), false);
  n.set(0, out);
  n.set(1, rstd);
}
/// Of the sum with another input, and maybe with a bias.
void skip_normalization(N& n) {
  const bool centered = n.op() == "SkipLayerNormalization";
  const Tensor bias = n.optional(centered ? 4 : 3);
  Tensor sum = n.tensor(0) + n.tensor(1);
  if (bias.defined()) sum = sum + bias;
  const Dims sizes{sum.sizes()[sum.sizes().size() - 1]};
  const auto [out, mean, rstd] =
      normalize(sum, sizes, n.tensor(2), centered ? n.optional(3) : Tensor(), epsilon(n, 1e-12), centered);
  n.set(0, out);
  n.set(1, mean);
  n.set(2, rstd);
  n.set(3, sum);
}
/// The sum of the embeddings of words, places and segments, normalized.
void embed_layer_normalization(N& n) {
  const Tensor &ids = n.tensor(0), &words = n.tensor(2), &places = n.tensor(3);
  TENON_NODE_CHECK(n, ids.sizes().size() == 2, Shape, "`input_ids` is no matrix");
  const Tensor where = n.has(8) ? embedding(places, n.tensor(8)) : slice(places, 0, 0, ids.sizes()[1]);
  Tensor sum = embedding(words, ids) + where;
  if (n.has(1) && n.has(4)) sum = sum + embedding(n.tensor(4), n.tensor(1));
  const Dims sizes{sum.sizes()[2]};
  n.set(0, normalize(sum, sizes, n.tensor(5), n.tensor(6), epsilon(n, 1e-12), true).out);
  if (n.wants(1))
    n.set(1, n.has(7) ? tenon::sum(n.tensor(7), IntArrayRef{1}).to(kInt32)
                      : zeros({ids.sizes()[0]}, TensorOptions(kInt32)));
  n.set(2, sum);
}

void lp_normalization(N& n) {
  const Tensor& x = n.tensor(0);
  const Dims axis{n.axis(n.integer("axis", -1), x.sizes().size())};
  const Tensor norm = linalg_vector_norm(x, Scalar(n.integer("p", 2)), IntArrayRef(axis), true);
  n.set(x / where(norm == Scalar(0), Scalar(1), norm));
}
void mean_variance_normalization(N& n) {
  const Tensor& x = n.tensor(0);
  Dims axes = n.ints("axes").value_or(Dims{0, 2, 3});
  for (int64_t& axis : axes) axis = n.axis(axis, x.sizes().size());
  const Tensor deviation = sqrt(var(x, IntArrayRef(axes), Scalar(0), true));
  n.set((x - mean(x, IntArrayRef(axes), true)) / (deviation + Scalar(1e-9)));
}
/// By the squares of neighbouring channels.
void lrn(N& n) {
  const Tensor& x = n.tensor(0);
  TENON_NODE_CHECK(n, x.sizes().size() >= 2, Shape, "its input has no channels");
  const int64_t size = n.integer("size", 0), channels = x.sizes()[1];
  TENON_NODE_CHECK(n, size > 0, Value, fmt::format("attribute `size` is {}", size));
  const int64_t before = (size - 1) / 2;
  Dims pads(2 * (x.sizes().size() - 1), 0);
  pads[pads.size() - 2] = before;
  pads[pads.size() - 1] = size - 1 - before;
  const Tensor squares = constant_pad_nd(square(x), pads, 0);
  Tensor sum = slice(squares, 1, 0, channels);
  for (int64_t i = 1; i < size; ++i) sum = sum + slice(squares, 1, i, i + channels);
  const double alpha = n.number("alpha", 1e-4) / static_cast<double>(size);
  n.set(x / pow(sum * Scalar(alpha) + Scalar(n.number("bias", 1)), Scalar(n.number("beta", 0.75))));
}

constexpr auto kNormRows = std::to_array<Row>({
    {"BatchNormalization", 6, batch_normalization},
    {"EmbedLayerNormalization", 1, embed_layer_normalization, "com.microsoft"},
    {"GroupNormalization", 18, group_normalization},
    {"InstanceNormalization", 6, instance_normalization},
    {"LRN", 1, lrn},
    {"LayerNormalization", 17, layer_normalization},
    {"LpNormalization", 1, lp_normalization},
    {"MeanVarianceNormalization", 9, mean_variance_normalization},
    {"RMSNormalization", 23, rms_normalization},
    {"SimplifiedLayerNormalization", 1, rms_normalization},
    {"SimplifiedLayerNormalization", 1, rms_normalization, "com.microsoft"},
    {"SkipLayerNormalization", 1, skip_normalization, "com.microsoft"},
    {"SkipSimplifiedLayerNormalization", 1, skip_normalization, "com.microsoft"},
});

}  // namespace

std::span<const Row> norm_rows() noexcept { return kNormRows; }

}  // namespace tenon::onnx
