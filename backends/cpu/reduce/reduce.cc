#include "backends/cpu/reduce/reduce.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/reduce/reduce_kernels.h"
#include "backends/cpu/reduce/reduce_ops.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// Chunks below which a second thread costs more than it brings.
constexpr size_t kParallelChunks = 256;

template <class T>
const ReduceKernels<T>& kernels(ReduceOp op) {
  static const CpuTarget target = cpu_target();
  return reduce_kernels<T>(target, op);
}

}  // namespace

template <class T>
T reduce_identity(ReduceOp op) noexcept {
  return detail::identity<T>(op);
}

template <class T>
Reducer<T>::Reducer(ReduceOp op) : op_(op) {
  std::fill_n(lanes_, kReduceLanes, detail::identity<T>(op));
}

template <class T>
void Reducer<T>::feed_chunk(T chunk) {
  for (uint64_t carry = chunks_; carry & 1; carry >>= 1)
    chunk = detail::combine(op_, pending_[--depth_], chunk);
  pending_[depth_++] = chunk;
  ++chunks_;
}

template <class T>
void Reducer<T>::feed(const T* p, size_t n) {
  const ReduceKernels<T>& k = kernels<T>(op_);
  if (within_ > 0) {
    const size_t take = std::min(n, kReduceChunk - within_);
    k.lanes(lanes_, within_ % kReduceLanes, p, take);
    within_ += take, p += take, n -= take;
    if (within_ < kReduceChunk) return;
    feed_chunk(k.fold(lanes_));
    within_ = 0;
    std::fill_n(lanes_, kReduceLanes, detail::identity<T>(op_));
  }
  while (n >= kReduceChunk) {
    T results[32];
    const size_t count = std::min<size_t>(n / kReduceChunk, 32);
    k.chunks(p, count, results);
    for (size_t c = 0; c < count; ++c) feed_chunk(results[c]);
    p += count * kReduceChunk, n -= count * kReduceChunk;
  }
  if (n > 0) k.lanes(lanes_, 0, p, n);
  within_ = n;
}

template <class T>
T Reducer<T>::result() const {
  size_t depth = depth_;
  T value;
  if (within_ > 0 || depth == 0) {
    value = kernels<T>(op_).fold(lanes_);
  } else {
    value = pending_[--depth];
  }
  while (depth > 0) value = detail::combine(op_, pending_[--depth], value);
  return value;
}

template <class T>
T reduce_contiguous(ReduceOp op, const T* p, size_t n) {
  Reducer<T> reducer(op);
  const size_t chunks = n / kReduceChunk;
  if (chunks < 2 * kParallelChunks || in_parallel_region() || num_threads() == 1) {
    reducer.feed(p, n);
    return reducer.result();
  }
  std::vector<T> results(chunks);
  parallel_for(0, static_cast<int64_t>(chunks), kParallelChunks, [&](int64_t begin, int64_t end) {
    kernels<T>(op).chunks(p + static_cast<size_t>(begin) * kReduceChunk, static_cast<size_t>(end - begin),
                          results.data() + begin);
  });
  for (const T chunk : results) reducer.feed_chunk(chunk);
  reducer.feed(p + chunks * kReduceChunk, n - chunks * kReduceChunk);
  return reducer.result();
}

template <class T>
OuterReducer<T>::OuterReducer(ReduceOp op, size_t outputs)
    : op_(op),
      outputs_(std::min(outputs, kReduceStrip)),
      width_((outputs_ + kReduceLanes - 1) / kReduceLanes * kReduceLanes) {}

template <class T>
void OuterReducer<T>::close_chunk() {
  const ReduceKernels<T>& k = kernels<T>(op_);
  T chunk[kReduceStrip];
  k.fold_strip(chunk, lanes_, kReduceLanes, width_);
  for (uint64_t carry = chunks_; carry & 1; carry >>= 1) {
    k.merge_strips(pending_ + --depth_ * kReduceStrip, chunk, width_);
  }
  std::copy_n(chunk, width_, pending_ + depth_++ * kReduceStrip);
  ++chunks_;
  within_ = 0;
}

template <class T>
void OuterReducer<T>::feed(const T* p, ptrdiff_t stride, size_t rows) {
  const ReduceKernels<T>& k = kernels<T>(op_);
  while (rows > 0) {
    const size_t take = std::min(rows, kReduceChunk - within_);
    k.rows(lanes_, within_, outputs_, p, stride, take);
    p += static_cast<ptrdiff_t>(take) * stride;
    rows -= take, within_ += take;
    if (within_ == kReduceChunk) close_chunk();
  }
}

template <class T>
void OuterReducer<T>::result(T* out) const {
  const ReduceKernels<T>& k = kernels<T>(op_);
  T value[kReduceStrip];
  size_t depth = depth_;
  if (within_ > 0 || depth == 0) {
    k.fold_strip(value, lanes_, std::min(within_, kReduceLanes), width_);
  } else {
    std::copy_n(pending_ + --depth * kReduceStrip, width_, value);
  }
  while (depth > 0) k.merge_strips(pending_ + --depth * kReduceStrip, value, width_);
  std::copy_n(value, outputs_, out);
}

template <class T>
void reduce_outer(ReduceOp op, const T* p, ptrdiff_t stride, size_t n, T* out, size_t outputs) {
  const int64_t strips = static_cast<int64_t>((outputs + kReduceStrip - 1) / kReduceStrip);
  const int64_t grain =
      static_cast<int64_t>(kParallelChunks * kReduceChunk / (kReduceStrip * std::max<size_t>(n, 1)));
  parallel_for(0, strips, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const size_t j = static_cast<size_t>(strip) * kReduceStrip;
      OuterReducer<T> reducer(op, outputs - j);
      reducer.feed(p + j, stride, n);
      reducer.result(out + j);
    }
  });
}

#define TENON_REDUCE_INSTANTIATE(T)                            \
  template T reduce_identity<T>(ReduceOp) noexcept;            \
  template T reduce_contiguous<T>(ReduceOp, const T*, size_t); \
  template class Reducer<T>;                                   \
  template class OuterReducer<T>;                              \
  template void reduce_outer<T>(ReduceOp, const T*, ptrdiff_t, size_t, T*, size_t);
TENON_REDUCE_INSTANTIATE(float)
TENON_REDUCE_INSTANTIATE(double)
TENON_REDUCE_INSTANTIATE(int32_t)
TENON_REDUCE_INSTANTIATE(int64_t)
TENON_REDUCE_INSTANTIATE(uint8_t)

}  // namespace tenon::cpu
