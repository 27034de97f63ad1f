#include "backends/cpu/reduce/arg_reduce.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/reduce/reduce_kernels.h"
#include "backends/cpu/reduce/reduce_ops.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x != x;
  } else {
    return false;
  }
}

/// Whether a later element takes the place of the best so far.
template <class T>
bool beats(bool largest, T later, T best) {
  return (largest ? later > best : later < best) || (is_nan(later) && !is_nan(best));
}

template <class T>
size_t first_equal(const T* p, size_t n, T value) {
  if (is_nan(value)) return static_cast<size_t>(std::find_if(p, p + n, is_nan<T>) - p);
  return static_cast<size_t>(std::find(p, p + n, value) - p);
}

/// The first extreme one of a few elements, too few for vectors.
template <class T>
size_t first_extreme(bool largest, const T* p, size_t n) {
  size_t best = 0;
  for (size_t i = 1; i < n; ++i) {
    if (beats(largest, p[i], p[best])) best = i;
  }
  return best;
}

}  // namespace

template <class T>
void ArgReducer<T>::feed(const T* p, size_t n) {
  static const CpuTarget target = cpu_target();
  const ReduceKernels<T>& kernels = reduce_kernels<T>(target, op_);
  const bool largest = op_ == ReduceOp::Max;
  // The value of a block first, at full speed; its position only if the block improves on what there is.
  while (n > 0) {
    const size_t block = std::min(n, kReduceChunk);
    const bool few = block < kReduceLanes;
    size_t at = few ? first_extreme(largest, p, block) : 0;
    T value = p[at];
    if (!few) kernels.row_chunks(&p, 1, block, &value);
    if (best_.index < 0 || beats(largest, value, best_.value)) {
      if (!few) at = first_equal(p, block, value);
      best_.index = fed_ + static_cast<int64_t>(at);
      best_.value = p[at];  // of zeros, not the one of the other sign
    }
    fed_ += static_cast<int64_t>(block);
    p += block, n -= block;
    if (n > 0) check_stop();
  }
}

template <class T>
ArgResult<T> arg_reduce_contiguous(ReduceOp op, const T* p, size_t n) {
  ArgReducer<T> reducer(op);
  reducer.feed(p, n);
  return reducer.result();
}

template <class T>
void arg_reduce_outer(ReduceOp op, const T* p, ptrdiff_t stride, size_t n, T* value, int64_t* index,
                      size_t outputs) {
  const bool largest = op == ReduceOp::Max;
  const int64_t strips = static_cast<int64_t>((outputs + kReduceStrip - 1) / kReduceStrip);
  const int64_t grain = static_cast<int64_t>((size_t{1} << 17) / (kReduceStrip * std::max<size_t>(n, 1)));
  parallel_for(0, strips, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    const size_t j0 = static_cast<size_t>(begin) * kReduceStrip;
    const size_t j1 = std::min(outputs, static_cast<size_t>(end) * kReduceStrip);
    for (size_t strip = j0; strip < j1; strip += kReduceStrip) {
      const size_t last = std::min(j1, strip + kReduceStrip);
      const T* row = p;
      for (size_t j = strip; j < last; ++j) value[j] = row[j], index[j] = 0;
      for (size_t r = 1; r < n; ++r) {
        row += stride;
        if (r % kReduceChunk == 0) check_stop();
        for (size_t j = strip; j < last; ++j) {
          if (beats(largest, row[j], value[j])) value[j] = row[j], index[j] = static_cast<int64_t>(r);
        }
      }
    }
  });
}

#define TENON_ARG_REDUCE_INSTANTIATE(T)                                    \
  template ArgResult<T> arg_reduce_contiguous(ReduceOp, const T*, size_t); \
  template class ArgReducer<T>;                                            \
  template void arg_reduce_outer(ReduceOp, const T*, ptrdiff_t, size_t, T*, int64_t*, size_t);
TENON_ARG_REDUCE_INSTANTIATE(float)
TENON_ARG_REDUCE_INSTANTIATE(double)
TENON_ARG_REDUCE_INSTANTIATE(int32_t)
TENON_ARG_REDUCE_INSTANTIATE(int64_t)
TENON_ARG_REDUCE_INSTANTIATE(uint8_t)

}  // namespace tenon::cpu
