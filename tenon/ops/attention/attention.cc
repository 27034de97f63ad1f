// Attention over the hidden operators that compute it by blocks, and its gradients where these are to be
// differentiated again.
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "tenon/core/capture.h"
#include "tenon/core/generator.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/attention/bodies.h"
#include "tenon/generated/attention/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/ops/attention/geometry.h"
#include "tenon/ops/device_stubs.h"

namespace tenon::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// All weights and what the gradients by them are, of differentiable operators.
struct Weights {
  Tensor query, key, value;  ///< In the compute type; key and value with the heads of query.
  Tensor dropped;            ///< As they multiply the values.
  Tensor score_gradient;     ///< By query @ key.T * scale + attn_mask.
};

/// Each head of `t` as often as `group` says, one after the other.
Tensor repeat_heads(const Tensor& t, int64_t group) {
  if (group == 1) return t;
  const Tensor each = t.unsqueeze(-3);
  Dims sizes = each.sizes().to_dims();
  sizes[sizes.size() - 3] = group;
  return each.expand(sizes).flatten(-4, -3);
}

/// The sum over the heads that share one.
Tensor sum_heads(const Tensor& t, int64_t group) {
  if (group == 1) return t;
  const Dims split{t.size(-3) / group, group}, dim{-3};
  return tenon::sum(t.unflatten(-3, split), IntArrayRef(dim));
}

Weights compute_weights(const Tensor& grad_output, const Tensor& query, const Tensor& key,
                        const Tensor& value, const Tensor& attn_mask, const Tensor& output,
                        const Tensor& logsumexp, double dropout_p, bool is_causal, double scale,
                        bool enable_gqa, int64_t seed, int64_t offset) {
  const AttentionShape shape = attention_backward_shape(grad_output, query, key, value, attn_mask, output,
                                                        logsumexp, dropout_p, is_causal, enable_gqa);
  const DType type = logsumexp.dtype();
  const Tensor grad = grad_output.to(type);
  Weights w;
  w.query = query.to(type);
  w.key = repeat_heads(key.to(type), shape.key_group);
  w.value = repeat_heads(value.to(type), shape.value_group);
  Tensor scores = tenon::mul(tenon::matmul(w.query, w.key.transpose(-2, -1)), Scalar(scale));
  if (is_causal) {
    const TensorOptions on = TensorOptions().device(query.device());
    const Tensor future =
        tenon::gt(tenon::arange(shape.keys, on), tenon::arange(shape.queries, on).unsqueeze(1));
    scores = tenon::masked_fill(scores, future, -kInfinity);
  } else if (attn_mask.defined() && attn_mask.dtype() == DType::Bool) {
    scores = tenon::masked_fill(scores, tenon::logical_not(attn_mask), -kInfinity);
  } else if (attn_mask.defined()) {
    scores = tenon::add(scores, attn_mask.to(type));
  }
  const Tensor blind = tenon::eq(logsumexp, Scalar(-kInfinity)).unsqueeze(-1);
  Tensor weights = tenon::softmax(tenon::masked_fill(scores, blind, 0), -1);
  weights = tenon::masked_fill(weights, blind, 0);
  w.dropped = weights;
  Tensor weight_gradient = tenon::matmul(grad, w.value.transpose(-2, -1));
  if (dropout_p > 0) {
    Tensor kept = tenon::empty_like(scores.detach(), {}, MemoryFormat::Contiguous);
    kept._philox_bernoulli_(1 - dropout_p, seed, offset);
    if (dropout_p < 1) kept.div_(Scalar(1 - dropout_p));
    w.dropped = tenon::mul(weights, kept);
    weight_gradient = tenon::mul(weight_gradient, kept);
  }
  const Dims last{-1};
  const Tensor mean = tenon::sum(tenon::mul(weight_gradient, weights), IntArrayRef(last), true);
  w.score_gradient = tenon::mul(weights, tenon::sub(weight_gradient, mean));
  return w;
}

bool is_differentiated(std::initializer_list<Tensor> tensors) {
  return thread_state.grad_enabled && std::any_of(tensors.begin(), tensors.end(), [](const Tensor& t) {
           return t.defined() && t.requires_grad();
         });
}

}  // namespace

constinit Stub<int64_t(const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, bool,
                       std::optional<double>, bool)>
    _fused_sdp_choice_stub(
        "_fused_sdp_choice",
        "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, float dropout_p, bool "
        "is_causal, float? scale, bool enable_gqa) -> int");
namespace {

constexpr int64_t kByOperators = 0, kByBlocks = 1;

int64_t by_blocks(const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, bool,
                  std::optional<double>, bool) {
  return kByBlocks;
}
const tenon::detail::StubListing choice_listing(_fused_sdp_choice_stub, &by_blocks);
[[maybe_unused]] const bool choice_otherwise =
    (_fused_sdp_choice_stub.set_otherwise(&by_blocks, [](Backend b) { return b != kMetaBackend; }), true);

/// Attention by differentiable operators. A query that sees nothing gives zeros.
Tensor attention_by_operators(const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& attn_mask, double dropout_p, bool is_causal, double scale,
                              bool enable_gqa) {
  const AttentionShape shape =
      attention_shape(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa);
  const Tensor keys = repeat_heads(key, shape.key_group);
  Tensor scores = tenon::mul(tenon::matmul(query, keys.transpose(-2, -1)), Scalar(scale));
  if (is_causal) {
    const TensorOptions on = TensorOptions().device(query.device());
    const Tensor future =
        tenon::gt(tenon::arange(shape.keys, on), tenon::arange(shape.queries, on).unsqueeze(1));
    scores = tenon::masked_fill(scores, future, -kInfinity);
  } else if (attn_mask.defined()) {
    scores = attn_mask.dtype() == DType::Bool
                 ? tenon::masked_fill(scores, tenon::logical_not(attn_mask), -kInfinity)
                 : tenon::add(scores, attn_mask);
  }
  const Dims last{-1};
  const Tensor blind = tenon::eq(tenon::amax(scores, IntArrayRef(last), true), Scalar(-kInfinity));
  Tensor weights = tenon::softmax(tenon::masked_fill(scores, blind, 0), -1);
  weights = tenon::masked_fill(weights, blind, 0);
  if (dropout_p > 0) weights = tenon::dropout(weights, dropout_p, true);
  return tenon::matmul(weights, repeat_heads(value, shape.value_group));
}

}  // namespace

int64_t fused_sdp_choice(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& attn_mask,
                         double dropout_p, bool is_causal, std::optional<double> scale, bool enable_gqa) {
  const auto check_device = [&](const Tensor& t, const char* name) {
    TENON_CHECK(
        !t.defined() || same_device(t.device(), query.device()), Device,
        fmt::format("_fused_sdp_choice: `{}` is on {}, expected the same device as `query`, {}; move one "
                    "with .to()",
                    name, to_string(t.device()), to_string(query.device())));
  };
  check_device(key, "key");
  check_device(value, "value");
  check_device(attn_mask, "attn_mask");
  return _fused_sdp_choice_stub(query.device(), query, key, value, attn_mask, dropout_p, is_causal, scale,
                                enable_gqa);
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  const int64_t size = query.dim() > 0 ? query.size(-1) : 0;
  const double factor = scale ? *scale : size > 0 ? 1 / std::sqrt(static_cast<double>(size)) : 1;
  if (!query.device().is_cpu() && !query.is_meta() &&
      _fused_sdp_choice_stub(query.device(), query, key, value, attn_mask, dropout_p, is_causal, scale,
                             enable_gqa) == kByOperators)
    return attention_by_operators(query, key, value, attn_mask, dropout_p, is_causal, factor, enable_gqa);
  int64_t seed = 0, offset = 0;
  if (dropout_p != 0) {
    const AttentionShape shape =
        attention_shape(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa);
    // Weights are numbered as elements of [*batch, L, S]; two consecutive ones share a block of the stream.
    const auto weights = static_cast<uint64_t>(shape.entries()) * static_cast<uint64_t>(shape.queries) *
                         static_cast<uint64_t>(shape.keys);
    if (!query.is_meta()) {
      refuse_captured(
          current_stream(query.device()), "scaled_dot_product_attention",
          "dropout_p > 0 takes its random numbers from a position in the call's arguments, which a "
          "replay cannot change; capture it with dropout_p=0");
      const PhiloxState at = default_generator()->take(weights / 2 + weights % 2);
      seed = static_cast<int64_t>(at.seed), offset = static_cast<int64_t>(at.offset);
    }
  }
  return std::get<0>(tenon::_attention_forward(query, key, value, attn_mask, dropout_p, is_causal, factor,
                                               enable_gqa, seed, offset));
}

std::tuple<Tensor, Tensor, Tensor> attention_gradients(const Tensor& grad_output, const Tensor& query,
                                                       const Tensor& key, const Tensor& value,
                                                       const Tensor& attn_mask, const Tensor& output,
                                                       const Tensor& logsumexp, double dropout_p,
                                                       bool is_causal, double scale, bool enable_gqa,
                                                       int64_t seed, int64_t offset) {
  if (!is_differentiated({grad_output, query, key, value, attn_mask})) {
    return tenon::_attention_backward(grad_output, query, key, value, attn_mask, output, logsumexp, dropout_p,
                                      is_causal, scale, enable_gqa, seed, offset);
  }
  const Weights w = compute_weights(grad_output, query, key, value, attn_mask, output, logsumexp, dropout_p,
                                    is_causal, scale, enable_gqa, seed, offset);
  const AttentionShape shape =
      attention_shape(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa);
  const Tensor scaled = tenon::mul(w.score_gradient, Scalar(scale));
  const Tensor by_key = tenon::matmul(scaled.transpose(-2, -1), w.query);
  const Tensor by_value = tenon::matmul(w.dropped.transpose(-2, -1), grad_output.to(w.dropped.dtype()));
  return {tenon::matmul(scaled, w.key).to(query.dtype()),
          sum_heads(by_key, shape.key_group).to(query.dtype()),
          sum_heads(by_value, shape.value_group).to(query.dtype())};
}

Tensor attention_mask_gradient(const Tensor& grad_output, const Tensor& query, const Tensor& key,
                               const Tensor& value, const Tensor& attn_mask, const Tensor& output,
                               const Tensor& logsumexp, double dropout_p, bool is_causal, double scale,
                               bool enable_gqa, int64_t seed, int64_t offset) {
  if (!is_differentiated({grad_output, query, key, value, attn_mask})) {
    return tenon::_attention_mask_backward(grad_output, query, key, value, attn_mask, output, logsumexp,
                                           dropout_p, is_causal, scale, enable_gqa, seed, offset);
  }
  const Weights w = compute_weights(grad_output, query, key, value, attn_mask, output, logsumexp, dropout_p,
                                    is_causal, scale, enable_gqa, seed, offset);
  check_mask_gradient(attn_mask);
  return w.score_gradient;
}

}  // namespace tenon::ops
