// argmax and argmin over blocks of elements.
// Used by the operators of those names. Knows pointers and C++ types; nothing of tensors or dimensions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/reduce/reduce.h"

namespace tenon::cpu {

/// The extreme element and its position. A NaN is more extreme than any number, and of equal elements (also
/// -0 and 0) the first wins. The result does not depend on the order of work, so no fixed tree is needed.
template <class T>
struct ArgResult {
  T value{};
  int64_t index = -1;  ///< -1: no elements
};

/// The position of the largest (ReduceOp::Max) or smallest (ReduceOp::Min) of `n` contiguous elements.
template <class T>
ArgResult<T> arg_reduce_contiguous(ReduceOp op, const T* p, size_t n);

/// Finds the extreme element of elements that are passed in pieces of any size, in logical order.
template <class T>
class ArgReducer {
 public:
  explicit ArgReducer(ReduceOp op) : op_(op) {}
  void feed(const T* p, size_t n);
  ArgResult<T> result() const { return best_; }

 private:
  ReduceOp op_;
  int64_t fed_ = 0;
  ArgResult<T> best_;
};

/// The same over an outer dimension of `n` >= 1 rows `stride` apart, each of `outputs` contiguous elements:
/// positions to index[outputs] and the elements to value[outputs].
template <class T>
void arg_reduce_outer(ReduceOp op, const T* p, ptrdiff_t stride, size_t n, T* value, int64_t* index,
                      size_t outputs);

#define TENON_ARG_REDUCE_EXTERN(T)                                                \
  extern template ArgResult<T> arg_reduce_contiguous(ReduceOp, const T*, size_t); \
  extern template class ArgReducer<T>;                                            \
  extern template void arg_reduce_outer(ReduceOp, const T*, ptrdiff_t, size_t, T*, int64_t*, size_t);
TENON_ARG_REDUCE_EXTERN(float)
TENON_ARG_REDUCE_EXTERN(double)
TENON_ARG_REDUCE_EXTERN(int32_t)
TENON_ARG_REDUCE_EXTERN(int64_t)
TENON_ARG_REDUCE_EXTERN(uint8_t)
#undef TENON_ARG_REDUCE_EXTERN

}  // namespace tenon::cpu
