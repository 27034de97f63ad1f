// Attention and its gradients over blocks of queries and keys. Used by backends/cpu/ops/attention.cc. Knows
// pointers, strides and dtypes; nothing of tensors or operators.
//
// The definition of the result. The keys of a query are taken kKeyBlock at a time, in ascending order. Of
// each block: the scores are the matrix product (gemm.h) with alpha = scale, plus the mask; the largest score
// so far is subtracted, exp is that of expressions, the weights are summed by the tree of reductions, and the
// matrix product with the values is added to what there was, multiplied by exp(old largest - new largest). In
// the end the row is divided by the sum. Causal blocks end after the last query of their block of
// kQueryBlock. The gradients take blocks of keys in ascending order and, within, blocks of queries in
// ascending order. So bits depend on neither threads nor the instruction set, nor on other queries or batch
// entries.
#pragma once

#include <cstdint>

#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"

namespace tenon::cpu {

inline constexpr int64_t kQueryBlock = 64;
inline constexpr int64_t kKeyBlock = 128;

/// One matrix for each entry of the batch.
struct BatchedMatrix {
  char* data = nullptr;  ///< Null: absent.
  DType dtype = DType::Float32;
  Dims batch;                   ///< Strides of the batch's dimensions; 0 where it repeats.
  int64_t group = 1;            ///< Entries that share one along the last of them.
  int64_t row = 0, column = 0;  ///< Strides. All count bytes.
};

struct AttentionProblem {
  Dims batch;  ///< Sizes.
  int64_t queries = 0, keys = 0, size = 0, value_size = 0;
  double scale = 1;
  bool causal = false;
  double dropout = 0;
  uint64_t seed = 0, offset = 0;
  BatchedMatrix query, key, value, mask;

  int64_t entries() const noexcept;
  /// The bytes from the data of `m` to its matrix for entry `e`.
  int64_t place(const BatchedMatrix& m, int64_t e) const noexcept;
};

/// output [queries, value_size] and logsumexp, `queries` contiguous numbers of the compute type for each
/// entry. T: float (also for half types) or double.
template <class T>
void attention_forward(const AttentionProblem& p, const BatchedMatrix& output, T* logsumexp);

struct AttentionGradients {
  BatchedMatrix grad_output, output;
  BatchedMatrix query, key, value;  ///< What is added to: zeros; of the compute type.
};
template <class T>
void attention_backward(const AttentionProblem& p, const AttentionGradients& g, const T* logsumexp);

/// Adds the gradient by the mask to `gradient`, which has the geometry of the mask and the compute type.
template <class T>
void attention_mask_backward(const AttentionProblem& p, const AttentionGradients& g, const T* logsumexp,
                             const BatchedMatrix& gradient);

}  // namespace tenon::cpu
