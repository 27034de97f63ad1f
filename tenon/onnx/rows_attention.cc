// Attention, and rotary embedding before it.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>

#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/attention/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/onnx/node_call.h"
#include "tenon/onnx/rows.h"

namespace tenon::onnx {
namespace {

using N = NodeCall;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [batch, length, heads * width] as [batch, heads, length, width]; what has four dimensions stays.
Tensor by_heads(N& n, const Tensor& x, std::string_view heads) {
  if (x.sizes().size() == 4) return x;
  const int64_t count = n.integer(heads, 0);
  TENON_NODE_CHECK(n, x.sizes().size() == 3 && count > 0 && x.sizes()[2] % count == 0, Shape,
                   fmt::format("an input of shape {} and {} heads", to_string(x.sizes()), count));
  return transpose(x.reshape({x.sizes()[0], x.sizes()[1], count, x.sizes()[2] / count}), 1, 2);
}
Tensor without_heads(const Tensor& x) {
  return transpose(x, 1, 2).reshape({x.sizes()[0], x.sizes()[2], x.sizes()[1] * x.sizes()[3]});
}
/// The keys or values of each query's head, where several share them.
Tensor for_heads(N& n, const Tensor& x, int64_t heads) {
  const int64_t own = x.sizes()[1];
  TENON_NODE_CHECK(n, own > 0 && heads % own == 0, Shape,
                   fmt::format("{} heads of queries and {} of keys", heads, own));
  return own == heads ? x : repeat_interleave(x, heads / own, 1);
}

/// By how many places each key precedes each query, [.., queries, keys]: query i is at place i + offset.
Tensor distances(int64_t queries, int64_t keys, const Tensor& offset) {
  const TensorOptions ints(kInt64);
  const Tensor rows = add(arange(queries, ints).reshape({queries, 1}), offset);
  return sub(rows, arange(keys, ints).reshape({1, keys}));
}

struct Scores {
  Tensor allowed;  // bool; undefined where all keys are seen
  Tensor bias;     // added; undefined where nothing is

  void allow(const Tensor& mask) { allowed = allowed.defined() ? logical_and(allowed, mask) : mask; }
};

/// What the mask, the lengths and the window let each query see.
Scores scores_of(N& n, int64_t queries, int64_t keys, int64_t past, DType dtype) {
  Scores out;
  if (Tensor mask = n.optional(3); mask.defined()) {
    const int64_t missing = keys - mask.sizes()[mask.sizes().size() - 1];
    const bool is_bool = mask.dtype() == kBool;
    if (missing > 0) mask = constant_pad_nd(mask, {0, missing}, is_bool ? Scalar(false) : Scalar(-kInfinity));
    if (is_bool)
      out.allow(mask);
    else
      out.bias = mask.to(dtype);
  }
  const Tensor lengths = n.optional(6);
  Tensor offset = scalar_tensor(past, TensorOptions(kInt64));
  if (lengths.defined() && !n.has(4))
    offset = sub(lengths.to(kInt64), Scalar(queries)).reshape({lengths.numel(), 1, 1, 1});
  if (n.flag("is_causal", false)) out.allow(ge(distances(queries, keys, offset), Scalar(0)));
  if (const int64_t left = n.integer("left_window_size", -1); left >= 0)
    out.allow(le(distances(queries, keys, offset), Scalar(left)));
  if (const int64_t right = n.integer("right_window_size", -1); right >= 0)
    out.allow(ge(distances(queries, keys, offset), Scalar(-right)));
  if (lengths.defined())
    out.allow(
        lt(arange(keys, TensorOptions(kInt64)), lengths.to(kInt64).reshape({lengths.numel(), 1, 1, 1})));
  return out;
}

void attention(N& n) {
  const bool is_flat = n.tensor(0).sizes().size() == 3;
  const Tensor q = by_heads(n, n.tensor(0), "q_num_heads");
  Tensor k = by_heads(n, n.tensor(1), "kv_num_heads"), v = by_heads(n, n.tensor(2), "kv_num_heads");
  TENON_NODE_CHECK(n, n.has(4) == n.has(5), Value, "`past_key` and `past_value` are given together");
  const int64_t past = n.has(4) ? n.tensor(4).sizes()[2] : 0;
  if (n.has(4)) {
    k = cat(std::vector{n.tensor(4), k}, 2);
    v = cat(std::vector{n.tensor(5), v}, 2);
  }
  n.set(1, k);
  n.set(2, v);
  const int64_t queries = q.sizes()[2], keys = k.sizes()[2];
  const double scale = n.number("scale", 1 / std::sqrt(static_cast<double>(q.sizes()[3])));
  const double cap = n.number("softcap", 0);
  const Scores scores = scores_of(n, queries, keys, past, q.dtype());
  k = for_heads(n, k, q.sizes()[1]);
  v = for_heads(n, v, q.sizes()[1]);

  if (!scores.allowed.defined() && cap == 0 && !n.wants(3)) {
    const Tensor out = scaled_dot_product_attention(q, k, v, scores.bias, 0.0, false, scale);
    return n.set(is_flat ? without_heads(out) : out);
  }
  // Both factors get the root, as the standard has it, which matters in half precision.
  const Scalar root(std::sqrt(scale));
  const int64_t mode = n.integer("qk_matmul_output_mode", 0);
  Tensor logits = matmul(mul(q, root), transpose(mul(k, root), -1, -2));
  if (mode == 0) n.set(3, logits);
  if (cap > 0) logits = mul(tanh(div(logits, Scalar(cap))), Scalar(cap));
  if (mode == 1) n.set(3, logits);
  if (scores.bias.defined()) logits = add(logits, scores.bias);
  if (scores.allowed.defined()) logits = where(scores.allowed, logits, Scalar(-kInfinity));
  if (mode == 2) n.set(3, logits);
  // A query that sees nothing gets zeros.
  const Tensor sees = gt(amax(logits, {-1}, true), Scalar(-kInfinity));
  const DType wide = n.dtype("softmax_precision").value_or(q.dtype());
  const Tensor weights = where(sees, softmax(logits.to(wide), -1), Scalar(0.0)).to(q.dtype());
  if (mode == 3) n.set(3, weights);
  const Tensor out = matmul(weights, v);
  n.set(is_flat ? without_heads(out) : out);
}

/// Pairs of elements turned by the angles of their place.
void rotary_embedding(N& n) {
  const Tensor& input = n.tensor(0);
  Tensor cosine = n.tensor(1), sine = n.tensor(2);
  const bool is_flat = input.sizes().size() == 3;
  const Tensor x = by_heads(n, input, "num_heads");
  const int64_t width = x.sizes()[3];
  int64_t turned = n.integer("rotary_embedding_dim", 0);
  if (turned == 0) turned = width;
  TENON_NODE_CHECK(n, turned % 2 == 0 && turned <= width, Shape,
                   fmt::format("{} of {} elements are turned", turned, width));
  if (n.has(3)) {
    const Tensor& places = n.tensor(3);
    const auto at_places = [&](const Tensor& all) {
      return index_select(all, 0, places.reshape({-1}).to(kInt64))
          .reshape({places.sizes()[0], places.sizes()[1], all.sizes()[1]});
    };
    cosine = at_places(cosine);
    sine = at_places(sine);
  }
  TENON_NODE_CHECK(n, cosine.sizes()[cosine.sizes().size() - 1] == turned / 2, Shape,
                   fmt::format("the cosines are of shape {}, expected {} in the last dimension",
                               to_string(cosine.sizes()), turned / 2));
  cosine = unsqueeze(cosine, 1);
  sine = unsqueeze(sine, 1);
  const bool is_interleaved = n.flag("interleaved", false);
  const auto half = [&](int64_t i) {
    return is_interleaved ? slice(x, 3, i, turned, 2) : slice(x, 3, i * turned / 2, (i + 1) * turned / 2);
  };
  const Tensor a = half(0), b = half(1);
  const Tensor first = sub(mul(cosine, a), mul(sine, b)), second = add(mul(sine, a), mul(cosine, b));
  Tensor out = is_interleaved ? flatten(stack(std::vector{first, second}, -1), -2, -1)
                              : cat(std::vector{first, second}, -1);
  if (turned < width) out = cat(std::vector{out, slice(x, 3, turned)}, -1);
  n.set(is_flat ? without_heads(out) : out);
}

/// A state of [width of keys, width of values] for each head, which each step decays, changes and reads. Half
/// types are computed in float32.
void linear_attention(N& n) {
  const DType dtype = n.tensor(0).dtype(), wide = item_size(dtype) < 4 ? kFloat32 : dtype;
  const auto input = [&](size_t i, std::string_view heads) {
    const Tensor x = n.tensor(i).to(wide);
    // One number for all heads.
    return x.sizes().size() == 3 && x.sizes()[2] == 1 ? unsqueeze(x, 1) : by_heads(n, x, heads);
  };
  const Tensor q = input(0, "q_num_heads"), k = input(1, "kv_num_heads"), v = input(2, "kv_num_heads");
  const std::string_view rule = n.text("update_rule", "gated_delta");
  const bool is_gated = rule == "gated" || rule == "gated_delta",
             is_delta = rule == "delta" || rule == "gated_delta";
  TENON_NODE_CHECK(n, is_gated || is_delta || rule == "linear", Value,
                   fmt::format("attribute `update_rule` is '{}'", rule));
  const int64_t steps = q.sizes()[2], width = k.sizes()[3], heads = k.sizes()[1];
  double scale = n.number("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(width));
  const Tensor decay = is_gated ? input(4, "kv_num_heads") : Tensor();
  const Tensor beta = is_delta ? input(5, "kv_num_heads") : Tensor();
  Tensor state = n.has(3) ? n.tensor(3).to(wide)
                          : zeros({k.sizes()[0], heads, width, v.sizes()[3]}, TensorOptions(wide));
  std::vector<Tensor> outputs;
  for (int64_t i = 0; i < steps; ++i) {
    const auto step = [&](const Tensor& x) { return unsqueeze(select(x, 2, i), -1); };  // [.., width, 1]
    const Tensor key = step(k), value = transpose(step(v), -1, -2);
    if (is_gated) state = mul(state, exp(step(decay)));
    Tensor change = value;
    if (is_delta) change = mul(sub(value, matmul(transpose(key, -1, -2), state)), step(beta));
    state = add(state, matmul(key, change));
    const Tensor query = transpose(step(q), -1, -2);
    outputs.push_back(mul(matmul(query, for_heads(n, state, q.sizes()[1])), Scalar(scale)));
  }
  TENON_NODE_CHECK(n, steps > 0, Shape, "a sequence without steps");
  n.set(without_heads(cat(outputs, 2)).to(dtype));
  n.set(1, state.to(dtype));
}

constexpr auto kAttentionRows = std::to_array<Row>({
    {"Attention", 23, attention},
    {"LinearAttention", 27, linear_attention},
    {"RotaryEmbedding", 23, rotary_embedding},
});

}  // namespace

std::span<const Row> attention_rows() noexcept { return kAttentionRows; }

}  // namespace tenon::onnx
