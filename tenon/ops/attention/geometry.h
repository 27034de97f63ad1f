// What the shapes of attention's arguments mean. Used by its shape functions and composites and by kernels.
// Knows no elements.
#pragma once

#include "tenon/core/tensor_header.h"

namespace tenon::ops {

/// [*batch, queries, size] times [*batch, keys, size], times [*batch, keys, value_size]. The last dimension
/// of `batch` are the heads, if there is one.
struct AttentionShape {
  Dims batch;  ///< Broadcast, with the heads of the queries.
  int64_t queries = 0, keys = 0, size = 0, value_size = 0;
  /// How many consecutive heads of the queries share one of the keys, and of the values.
  int64_t key_group = 1, value_group = 1;

  int64_t entries() const noexcept;
  /// Of the gradient of key or value: `batch` with its own heads.
  Dims grouped_batch(int64_t group) const;
  Dims output() const;
};

/// Checks all arguments. Throws an Error that names scaled_dot_product_attention and the argument.
AttentionShape attention_shape(HeaderRef query, HeaderRef key, HeaderRef value, HeaderRef attn_mask,
                               double dropout_p, bool is_causal, bool enable_gqa);

/// The same for a gradient, which is given what the forward pass returned as well.
AttentionShape attention_backward_shape(HeaderRef grad_output, HeaderRef query, HeaderRef key,
                                        HeaderRef value, HeaderRef attn_mask, HeaderRef output,
                                        HeaderRef logsumexp, double dropout_p, bool is_causal,
                                        bool enable_gqa);
/// Throws Error{Type} for a mask that is not added.
void check_mask_gradient(HeaderRef attn_mask);

}  // namespace tenon::ops
