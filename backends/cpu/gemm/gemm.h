// Tenon's own matrix product: C = alpha * op(A) op(B) + beta * C, with the same bits on every CPU and thread
// count. Used by the matmul family of operators. Knows pointers, element strides and C++ types; nothing of
// tensors or shapes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tenon/core/half.h"

namespace tenon::cpu {

/// Columns of a panel of a packed right matrix: 128 bytes, two vectors of the widest instruction set.
template <class T>
inline constexpr int64_t kGemmPanel = 128 / sizeof(T);

/// One product. Strides count elements. Those of A and B may be negative or zero; those of C may be negative,
/// but the elements of C must not overlap each other, A or B. A transposed matrix has its strides swapped;
/// there is no flag for it.
template <class T>
struct GemmArgs {
  int64_t m = 0;  ///< rows of A and C
  int64_t n = 0;  ///< columns of B and C
  int64_t k = 0;  ///< columns of A, rows of B
  const T* a = nullptr;
  int64_t a_row = 0, a_col = 0;  ///< strides of A, [m, k]
  const T* b = nullptr;
  int64_t b_row = 0, b_col = 0;  ///< strides of B, [k, n]
  T* c = nullptr;
  int64_t c_row = 0, c_col = 0;  ///< strides of C, [m, n]
  T alpha = T(1);
  T beta = T(0);  ///< 0: C is written without being read
  /// Not null: [n], of float or double, added to each row of alpha * A B; beta is 0, and c_col 1.
  const T* bias = nullptr;
  /// Not null: [m], likewise: one number for each row of C, added to all of the row.
  const T* row_bias = nullptr;
  /// Not 0: B, of float or double, is packed, as panels that are so far apart, each [k, kGemmPanel]; what the
  /// last one has after the last column is not used. c_col is 1.
  int64_t b_panel = 0;
};

/// Length of the fixed blocks of k. Part of the definition of the result, so it is one constant for every
/// CPU.
inline constexpr int64_t kGemmBlock = 256;

/// C = alpha * A B + beta * C.
///
/// The bits of an element depend on its row of A, its column of B, alpha, beta and itself, and on nothing
/// else: within each block of kGemmBlock, s = fma(a, b, s) in ascending k from s = 0; the blocks' sums are
/// added in order; the total t becomes alpha * t + beta * c, or alpha * t + bias (of either kind), each
/// operation rounded. Integers wrap. k = 0 gives beta * C (zeros for beta = 0), or the bias. Runs on several
/// threads when the product is large enough to pay for them. T: float, double, int32_t, int64_t.
template <class T>
void gemm(const GemmArgs<T>& args);

/// `batch` products whose operands are at fixed distances (elements; 0 broadcasts A or B).
template <class T>
struct BatchedGemmArgs {
  GemmArgs<T> one;  ///< the first product
  int64_t batch = 0;
  int64_t a_batch = 0, b_batch = 0, c_batch = 0;
};

/// One gemm per batch entry, in parallel over entries when there are enough of them. T: as gemm.
template <class T>
void gemm_batched(const BatchedGemmArgs<T>& args);

/// alpha and beta for half types, whose GemmArgs members of these names are not used.
struct HalfGemmScale {
  float alpha = 1.0f;
  float beta = 0.0f;
};

/// The product of float16: elements are converted to float32 and multiplied as float32, and alpha * t +
/// beta * c, computed in float32, is rounded once.
void gemm(const GemmArgs<Half>& args, HalfGemmScale scale);

/// Length of the blocks of k that products of bfloat16 add.
inline constexpr int64_t kBFloat16Block = 32;

/// The product of bfloat16, as matrix units (Intel's AMX) compute it, on every CPU: k is filled up with zeros
/// to blocks of kBFloat16Block; in each, two sums in float32, one of the even k and one of the odd,
/// s = fma(a, b, s) in ascending k from s = 0; t = t + (even + odd), from t = 0 on. Of all these, operands
/// and results below 2^-126 are zeros of their sign. alpha * t + beta * c is computed and rounded as of
/// float16.
void gemm(const GemmArgs<BFloat16>& args, HalfGemmScale scale);
void gemm_batched(const BatchedGemmArgs<Half>& args, HalfGemmScale scale);
void gemm_batched(const BatchedGemmArgs<BFloat16>& args, HalfGemmScale scale);

extern template void gemm(const GemmArgs<float>&);
extern template void gemm(const GemmArgs<double>&);
extern template void gemm(const GemmArgs<int32_t>&);
extern template void gemm(const GemmArgs<int64_t>&);
extern template void gemm_batched(const BatchedGemmArgs<float>&);
extern template void gemm_batched(const BatchedGemmArgs<double>&);
extern template void gemm_batched(const BatchedGemmArgs<int32_t>&);
extern template void gemm_batched(const BatchedGemmArgs<int64_t>&);

}  // namespace tenon::cpu
