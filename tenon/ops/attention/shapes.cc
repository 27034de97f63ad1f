// Shapes of attention and of its gradients.
#include <fmt/core.h>

#include "tenon/generated/attention/shapes.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/attention/geometry.h"

namespace tenon::ops {
namespace {

constexpr const char* kName = "scaled_dot_product_attention";

DType compute_dtype(DType type) { return type == DType::Float64 ? DType::Float64 : DType::Float32; }

void check_operand(HeaderRef t, HeaderRef query, const char* argument) {
  TENON_CHECK(
      t.dim() >= 2, Shape,
      fmt::format("{}: `{}` must have at least 2 dimensions, got {}", kName, argument, to_string(t.sizes())));
  TENON_CHECK(t.dtype() == query.dtype(), Type,
              fmt::format("{}: `{}` is {}, `query` is {}; expected all three to have the same dtype", kName,
                          argument, name(t.dtype()), name(query.dtype())));
}

Dims batch_of(HeaderRef t) { return Dims(t.sizes().data(), t.sizes().size() - 2); }

int64_t from_end(HeaderRef t, size_t d) { return t.sizes()[t.sizes().size() - d]; }

/// How many heads of the queries share one of `t`; `t`'s batch then has the heads of the queries.
int64_t group_heads(Dims& batch, int64_t heads, HeaderRef t, HeaderRef query, const char* argument) {
  const int64_t own = batch.back();
  TENON_CHECK(own > 0 ? heads % own == 0 : heads == 0, Shape,
              fmt::format("{}: with enable_gqa the number of heads of `query` {} must be a multiple of that "
                          "of `{}` {}, got {} and {}",
                          kName, to_string(query.sizes()), argument, to_string(t.sizes()), heads, own));
  batch.back() = heads;
  return own > 0 ? heads / own : 1;
}

void widen(Dims& batch, const Dims& other, HeaderRef query, HeaderRef t, const char* argument) {
  try {
    broadcast_to(batch, other, kName);
  } catch (const Error&) {
    throw_error(ErrorKind::Shape,
                fmt::format("{}: `query` {} and `{}` {} do not fit: the dimensions before the last two must "
                            "broadcast{}",
                            kName, to_string(query.sizes()), argument, to_string(t.sizes()),
                            batch.size() > 0 && other.size() > 0 && batch.back() != other.back()
                                ? "; heads that are shared need enable_gqa=True"
                                : ""));
  }
}

void check_mask(HeaderRef mask, HeaderRef query, const AttentionShape& shape) {
  TENON_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Float32 || mask.dtype() == query.dtype(),
              Type,
              fmt::format("{}: `attn_mask` must be bool, float32 or {} as `query`, got {}", kName,
                          name(query.dtype()), name(mask.dtype())));
  Dims weights = shape.batch;
  weights.push_back(shape.queries);
  weights.push_back(shape.keys);
  bool fits = mask.sizes().size() <= weights.size();
  for (size_t d = 1; fits && d <= mask.sizes().size(); ++d) {
    const int64_t size = from_end(mask, d);
    fits = size == 1 || size == weights[weights.size() - d];
  }
  TENON_CHECK(fits, Shape,
              fmt::format("{}: `attn_mask` {} does not broadcast to the weights {}", kName,
                          to_string(mask.sizes()), to_string(weights)));
}

}  // namespace

int64_t AttentionShape::entries() const noexcept {
  int64_t n = 1;
  for (const int64_t size : batch) n *= size;
  return n;
}

Dims AttentionShape::grouped_batch(int64_t group) const {
  Dims sizes = batch;
  if (group > 1) sizes.back() /= group;
  return sizes;
}

Dims AttentionShape::output() const {
  Dims sizes = batch;
  sizes.push_back(queries);
  sizes.push_back(value_size);
  return sizes;
}

AttentionShape attention_shape(HeaderRef query, HeaderRef key, HeaderRef value, HeaderRef attn_mask,
                               double dropout_p, bool is_causal, bool enable_gqa) {
  TENON_CHECK(is_floating_point(query.dtype()) && has_arithmetic(query.dtype()), NotImplemented,
              fmt::format("{}: not implemented for {}; convert `query`, `key` and `value` to a floating "
                          "point dtype",
                          kName, name(query.dtype())));
  check_operand(query, query, "query");
  check_operand(key, query, "key");
  check_operand(value, query, "value");
  TENON_CHECK(from_end(key, 1) == from_end(query, 1), Shape,
              fmt::format("{}: the last dimensions of `query` {} and `key` {} must be equal", kName,
                          to_string(query.sizes()), to_string(key.sizes())));
  TENON_CHECK(from_end(value, 2) == from_end(key, 2), Shape,
              fmt::format("{}: `key` {} and `value` {} must have the same size in dimension -2", kName,
                          to_string(key.sizes()), to_string(value.sizes())));
  AttentionShape shape;
  shape.batch = batch_of(query);
  shape.queries = from_end(query, 2), shape.keys = from_end(key, 2);
  shape.size = from_end(query, 1), shape.value_size = from_end(value, 1);
  Dims keys = batch_of(key), values = batch_of(value);
  if (enable_gqa) {
    TENON_CHECK(
        query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3, Shape,
        fmt::format("{}: enable_gqa needs heads in dimension -3, got `query` {}, `key` {}, `value` {}", kName,
                    to_string(query.sizes()), to_string(key.sizes()), to_string(value.sizes())));
    const int64_t heads = shape.batch.back();
    shape.key_group = group_heads(keys, heads, key, query, "key");
    shape.value_group = group_heads(values, heads, value, query, "value");
  }
  widen(shape.batch, keys, query, key, "key");
  widen(shape.batch, values, query, value, "value");
  if (attn_mask.defined()) {
    TENON_CHECK(!is_causal, Value,
                fmt::format("{}: `attn_mask` and is_causal=True exclude each other; give one", kName));
    check_mask(attn_mask, query, shape);
  }
  TENON_CHECK(dropout_p >= 0 && dropout_p <= 1, Value,
              fmt::format("{}: dropout_p must be between 0 and 1, got {}", kName, dropout_p));
  return shape;
}

AttentionShape attention_backward_shape(HeaderRef grad_output, HeaderRef query, HeaderRef key,
                                        HeaderRef value, HeaderRef attn_mask, HeaderRef output,
                                        HeaderRef logsumexp, double dropout_p, bool is_causal,
                                        bool enable_gqa) {
  AttentionShape shape = attention_shape(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa);
  const Dims sizes = shape.output();
  for (const HeaderRef& t : {grad_output, output}) {
    TENON_CHECK(t.sizes() == IntArrayRef(sizes) && t.dtype() == query.dtype(), Shape,
                fmt::format("{} backward: expected {} {}, got {} {}", kName, name(query.dtype()),
                            to_string(sizes), name(t.dtype()), to_string(t.sizes())));
  }
  Dims rows = shape.batch;
  rows.push_back(shape.queries);
  const DType compute = compute_dtype(query.dtype());
  TENON_CHECK(logsumexp.sizes() == IntArrayRef(rows) && logsumexp.dtype() == compute, Shape,
              fmt::format("{} backward: expected `logsumexp` {} {}, got {} {}", kName, name(compute),
                          to_string(rows), name(logsumexp.dtype()), to_string(logsumexp.sizes())));
  return shape;
}

void check_mask_gradient(HeaderRef attn_mask) {
  TENON_CHECK(is_floating_point(attn_mask.dtype()), Type,
              fmt::format("{} backward: `attn_mask` of {} has no gradient", kName, name(attn_mask.dtype())));
}

namespace shape {

void attention_forward(OutputSpecs& out, HeaderRef query, HeaderRef key, HeaderRef value, HeaderRef attn_mask,
                       double dropout_p, bool is_causal, double scale, bool enable_gqa, int64_t seed,
                       int64_t offset) {
  const AttentionShape shape =
      attention_shape(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa);
  const Dims sizes = shape.output();
  const size_t n = sizes.size();
  // In order, but for queries and heads, if there are both: merging the heads, which mostly follows, then
  // needs no copy.
  Dims strides(n, 1);
  int64_t step = 1;
  for (size_t d = n; d-- > 0;) {
    const size_t at = n < 4 || d == n - 1 || d + 3 < n ? d : d == n - 2 ? n - 3 : n - 2;
    strides[at] = step;
    step *= std::max<int64_t>(sizes[at], 1);
  }
  out.set_strided(0, sizes, strides, query.dtype());
  Dims rows = shape.batch;
  rows.push_back(shape.queries);
  out.set(1, rows, compute_dtype(query.dtype()));
}

namespace {

/// In the order of `source` in memory if that has the same sizes.
void set_gradient(OutputSpecs& out, size_t i, Dims sizes, int64_t rows, HeaderRef source) {
  sizes.push_back(rows);
  sizes.push_back(source.sizes().back());
  if (source.sizes() == IntArrayRef(sizes))
    out.set_like(i, source, source.dtype(), Elements::Zero);
  else
    out.set(i, sizes, source.dtype(), Elements::Zero);
}

}  // namespace

void attention_backward(OutputSpecs& out, HeaderRef grad_output, HeaderRef query, HeaderRef key,
                        HeaderRef value, HeaderRef attn_mask, HeaderRef output, HeaderRef logsumexp,
                        double dropout_p, bool is_causal, double scale, bool enable_gqa, int64_t seed,
                        int64_t offset) {
  const AttentionShape shape = attention_backward_shape(grad_output, query, key, value, attn_mask, output,
                                                        logsumexp, dropout_p, is_causal, enable_gqa);
  set_gradient(out, 0, shape.batch, shape.queries, query);
  set_gradient(out, 1, shape.grouped_batch(shape.key_group), shape.keys, key);
  set_gradient(out, 2, shape.grouped_batch(shape.value_group), shape.keys, value);
}

void attention_mask_backward(OutputSpecs& out, HeaderRef grad_output, HeaderRef query, HeaderRef key,
                             HeaderRef value, HeaderRef attn_mask, HeaderRef output, HeaderRef logsumexp,
                             double dropout_p, bool is_causal, double scale, bool enable_gqa, int64_t seed,
                             int64_t offset) {
  attention_backward_shape(grad_output, query, key, value, attn_mask, output, logsumexp, dropout_p, is_causal,
                           enable_gqa);
  check_mask_gradient(attn_mask);
  out.set(0, attn_mask.sizes(), attn_mask.dtype(), Elements::Zero);
}

}  // namespace shape
}  // namespace tenon::ops
