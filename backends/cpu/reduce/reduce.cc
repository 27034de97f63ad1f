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

template <class T>
const ReduceWalks<T>& walks_from(ReduceOp op, ReduceSource source) {
  return kernels<T>(op).from[static_cast<size_t>(source)];
}

constexpr size_t item_size(ReduceSource source) noexcept {
  switch (source) {
    case ReduceSource::Bool:
    case ReduceSource::UInt8:
    case ReduceSource::Int8:
      return 1;
    case ReduceSource::Float16:
    case ReduceSource::BFloat16:
    case ReduceSource::Int16:
      return 2;
    case ReduceSource::Int32:
      return 4;
  }
  return 0;
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

/// What the caches of one core hold for sure; beyond it, memory is what sums wait for.
constexpr size_t kCachedBytes = size_t{8} << 20;

template <class T>
void Reducer<T>::feed_chunk(T chunk) {
  for (uint64_t carry = chunks_; carry & 1; carry >>= 1)
    chunk = detail::combine(op_, pending_[--depth_], chunk);
  pending_[depth_++] = chunk;
  ++chunks_;
}

template <class T>
void Reducer<T>::feed(const T* p, size_t n) {
  walk(kernels<T>(op_), reinterpret_cast<const char*>(p), sizeof(T), n);
}

template <class T>
void Reducer<T>::feed_from(ReduceSource source, const void* p, size_t n) {
  walk(walks_from<T>(op_, source), static_cast<const char*>(p), item_size(source), n);
}

template <class T>
void Reducer<T>::walk(const ReduceWalks<T>& k, const char* p, size_t item, size_t n) {
  if (within_ > 0) {
    const size_t take = std::min(n, kReduceChunk - within_);
    k.lanes(lanes_, within_ % kReduceLanes, p, take);
    within_ += take, p += take * item, n -= take;
    if (within_ < kReduceChunk) return;
    feed_chunk(kernels<T>(op_).fold(lanes_));
    within_ = 0;
    std::fill_n(lanes_, kReduceLanes, detail::identity<T>(op_));
  }
  const bool ahead = n * item > kCachedBytes;
  while (n >= kReduceChunk) {
    T results[32];
    const size_t count = std::min<size_t>(n / kReduceChunk, 32);
    k.chunks(p, count, ahead, results);
    for (size_t c = 0; c < count; ++c) feed_chunk(results[c]);
    p += count * kReduceChunk * item, n -= count * kReduceChunk;
    if (n > 0) check_stop();
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

namespace {

/// Chunks of 1024 elements of `item` bytes at `p`, on several threads; `feed` adds elements to the reducer.
template <class T, class Feed>
T reduce_dense(ReduceOp op, const ReduceWalks<T>& walks, const char* p, size_t item, size_t n, Feed&& feed) {
  if (n == kReduceChunk) {
    T result;
    walks.chunks(p, 1, false, &result);
    return result;
  }
  if (n < kReduceChunk && (op == ReduceOp::Max || op == ReduceOp::Min)) {
    T lanes[kReduceLanes] = {detail::identity<T>(op)};
    walks.lanes(lanes, 0, p, n);
    return lanes[0];
  }
  Reducer<T> reducer(op);
  const size_t chunks = n / kReduceChunk;
  if (chunks < 2 * kParallelChunks || in_parallel_region() || num_threads() == 1) {
    feed(reducer, p, n);
    return reducer.result();
  }
  std::vector<T> results(chunks);
  parallel_for(0, static_cast<int64_t>(chunks), kParallelChunks, [&](int64_t begin, int64_t end) {
    walks.chunks(p + static_cast<size_t>(begin) * kReduceChunk * item, static_cast<size_t>(end - begin),
                 n * item > kCachedBytes, results.data() + begin);
  });
  for (const T chunk : results) reducer.feed_chunk(chunk);
  feed(reducer, p + chunks * kReduceChunk * item, n - chunks * kReduceChunk);
  return reducer.result();
}

}  // namespace

template <class T>
T reduce_contiguous(ReduceOp op, const T* p, size_t n) {
  const ReduceKernels<T>& k = kernels<T>(op);
  if (n > 0 && n < kReduceChunk) {
    T result;
    k.row_chunks(&p, 1, n, &result);
    return result;
  }
  return reduce_dense<T>(op, k, reinterpret_cast<const char*>(p), sizeof(T), n,
                         [](Reducer<T>& reducer, const char* from, size_t count) {
                           reducer.feed(reinterpret_cast<const T*>(from), count);
                         });
}

template <class T>
T reduce_contiguous_from(ReduceOp op, ReduceSource source, const void* p, size_t n) {
  return reduce_dense<T>(op, walks_from<T>(op, source), static_cast<const char*>(p), item_size(source), n,
                         [source](Reducer<T>& reducer, const char* from, size_t count) {
                           reducer.feed_from(source, from, count);
                         });
}

template <class T>
void sum_pairs(const T* p, size_t n, T* first, T* second) {
  const ReduceKernels<T>& k = kernels<T>(ReduceOp::Sum);
  Reducer<T> firsts(ReduceOp::Sum), seconds(ReduceOp::Sum);
  while (n >= kReduceChunk) {
    T results[2][32];
    const size_t count = std::min<size_t>(n / kReduceChunk, 32);
    k.pair_chunks(p, count, results[0], results[1]);
    for (size_t c = 0; c < count; ++c) firsts.feed_chunk(results[0][c]), seconds.feed_chunk(results[1][c]);
    p += 2 * count * kReduceChunk, n -= count * kReduceChunk;
    if (n > 0) check_stop();
  }
  T parts[2][kReduceChunk];
  for (size_t i = 0; i < n; ++i) parts[0][i] = p[2 * i], parts[1][i] = p[2 * i + 1];
  firsts.feed(parts[0], n);
  seconds.feed(parts[1], n);
  *first = firsts.result();
  *second = seconds.result();
}

template <class T>
void RowsReducer<T>::reset() {
  if (fed_ && !whole_) std::fill(states_.begin(), states_.end(), Reducer<T>(op_));
  within_ = 0;
  fed_ = whole_ = false;
}

template <class T>
void RowsReducer<T>::feed(const T* const* p, size_t rows, size_t n, bool last) {
  const ReduceKernels<T>& k = kernels<T>(op_);
  if (!fed_ && last && n > 0 && n <= kReduceChunk) {
    k.row_chunks(p, rows, n, values_.data());
    fed_ = whole_ = true;
    return;
  }
  fed_ = true;
  if (states_.empty()) states_.assign(values_.size(), Reducer<T>(op_));
  size_t done = 0;
  // Chunks of one row go side by side as well as those of several.
  constexpr size_t kFew = 4;
  std::vector<const T*> from(rows >= kFew ? rows : 0);
  while (rows >= kFew && within_ == 0 && done < n && (last || n - done >= kReduceChunk)) {
    const size_t take = std::min(n - done, kReduceChunk);
    for (size_t r = 0; r < rows; ++r) from[r] = p[r] + done;
    k.row_chunks(from.data(), rows, take, values_.data());
    // The last chunk may be open: what is combined with it, and when, is the same.
    for (size_t r = 0; r < rows; ++r) states_[r].feed_chunk(values_[r]);
    done += take;
    if (done < n) check_stop();
  }
  if (done == n) return;
  for (size_t r = 0; r < rows; ++r) states_[r].feed(p[r] + done, n - done);
  within_ = (within_ + n - done) % kReduceChunk;
}

template <class T>
void RowsReducer<T>::feed_chunks(const T* chunks, size_t rows, bool only) {
  fed_ = true;
  whole_ = only;
  if (only) {
    std::copy_n(chunks, rows, values_.data());
    return;
  }
  if (states_.empty()) states_.assign(values_.size(), Reducer<T>(op_));
  for (size_t r = 0; r < rows; ++r) states_[r].feed_chunk(chunks[r]);
}

template <class T>
void RowsReducer<T>::feed_backward(const T* const* p, size_t rows, size_t n) {
  const ReduceKernels<T>& k = kernels<T>(op_);
  SmallVector<const T*, 8> from(rows);
  for (size_t done = 0; done < n; done += kReduceChunk) {
    for (size_t r = 0; r < rows; ++r) from[r] = p[r] - done;
    k.row_chunks_backward(from.data(), rows, std::min(n - done, kReduceChunk), values_.data());
    feed_chunks(values_.data(), rows, n <= kReduceChunk);
    if (n - done > kReduceChunk) check_stop();
  }
}

template <class T>
void RowsReducer<T>::result(T* out, size_t rows) const {
  if (whole_) {
    std::copy_n(values_.data(), rows, out);
    return;
  }
  for (size_t r = 0; r < rows; ++r) out[r] = fed_ ? states_[r].result() : detail::identity<T>(op_);
}

template <class T>
bool reduce_short_strip(ReduceOp op, const T* p, ptrdiff_t stride, size_t rows, T* out, size_t outputs) {
  if (rows == 0 || rows > kReduceLanes || outputs % kReduceLanes != 0) return false;
  kernels<T>(op).fold_strip(out, p, stride, rows, outputs);
  return true;
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
  k.fold_strip(chunk, lanes_, kReduceStrip, kReduceLanes, width_);
  for (uint64_t carry = chunks_; carry & 1; carry >>= 1) {
    k.merge_strips(pending_.data() + --depth_ * kReduceStrip, chunk, width_);
  }
  pending_.resize(std::max(pending_.size(), (depth_ + 1) * kReduceStrip));
  std::copy_n(chunk, width_, pending_.data() + depth_++ * kReduceStrip);
  ++chunks_;
  within_ = 0;
}

template <class T>
void OuterReducer<T>::feed(const T* p, ptrdiff_t stride, size_t rows) {
  walk(kernels<T>(op_), reinterpret_cast<const char*>(p), sizeof(T), stride, rows);
}

template <class T>
void OuterReducer<T>::feed_from(ReduceSource source, const void* p, ptrdiff_t stride, size_t rows) {
  walk(walks_from<T>(op_, source), static_cast<const char*>(p), static_cast<ptrdiff_t>(item_size(source)),
       stride, rows);
}

template <class T>
void OuterReducer<T>::walk(const ReduceWalks<T>& k, const char* p, ptrdiff_t item, ptrdiff_t stride,
                           size_t rows) {
  while (rows > 0) {
    const size_t take = std::min(rows, kReduceChunk - within_);
    k.rows(lanes_, within_, outputs_, p, stride, take);
    p += static_cast<ptrdiff_t>(take) * stride * item;
    rows -= take, within_ += take;
    if (rows > 0) check_stop();
    if (within_ == kReduceChunk) close_chunk();
  }
}

template <class T>
void OuterReducer<T>::result(T* out) const {
  const ReduceKernels<T>& k = kernels<T>(op_);
  T value[kReduceStrip];
  size_t depth = depth_;
  if (within_ > 0 || depth == 0) {
    k.fold_strip(value, lanes_, kReduceStrip, std::min(within_, kReduceLanes), width_);
  } else {
    std::copy_n(pending_.data() + --depth * kReduceStrip, width_, value);
  }
  while (depth > 0) k.merge_strips(pending_.data() + --depth * kReduceStrip, value, width_);
  std::copy_n(value, outputs_, out);
}

namespace {

/// `feed` adds the `n` rows of the outputs from `j` on.
template <class T, class Feed>
void reduce_strips(ReduceOp op, size_t n, T* out, size_t outputs, Feed&& feed) {
  const int64_t strips = static_cast<int64_t>((outputs + kReduceStrip - 1) / kReduceStrip);
  const int64_t grain =
      static_cast<int64_t>(kParallelChunks * kReduceChunk / (kReduceStrip * std::max<size_t>(n, 1)));
  parallel_for(0, strips, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const size_t j = static_cast<size_t>(strip) * kReduceStrip;
      OuterReducer<T> reducer(op, outputs - j);
      feed(reducer, j);
      reducer.result(out + j);
    }
  });
}

}  // namespace

template <class T>
void reduce_outer(ReduceOp op, const T* p, ptrdiff_t stride, size_t n, T* out, size_t outputs) {
  reduce_strips<T>(op, n, out, outputs,
                   [&](OuterReducer<T>& reducer, size_t j) { reducer.feed(p + j, stride, n); });
}

template <class T>
void reduce_outer_from(ReduceOp op, ReduceSource source, const void* p, ptrdiff_t stride, size_t n, T* out,
                       size_t outputs) {
  reduce_strips<T>(op, n, out, outputs, [&](OuterReducer<T>& reducer, size_t j) {
    reducer.feed_from(source, static_cast<const char*>(p) + j * item_size(source), stride, n);
  });
}

#define TENON_REDUCE_INSTANTIATE(T)                                                       \
  template T reduce_identity<T>(ReduceOp) noexcept;                                       \
  template T reduce_contiguous<T>(ReduceOp, const T*, size_t);                            \
  template T reduce_contiguous_from<T>(ReduceOp, ReduceSource, const void*, size_t);      \
  template class Reducer<T>;                                                              \
  template class RowsReducer<T>;                                                          \
  template class OuterReducer<T>;                                                         \
  template bool reduce_short_strip<T>(ReduceOp, const T*, ptrdiff_t, size_t, T*, size_t); \
  template void reduce_outer<T>(ReduceOp, const T*, ptrdiff_t, size_t, T*, size_t);       \
  template void reduce_outer_from<T>(ReduceOp, ReduceSource, const void*, ptrdiff_t, size_t, T*, size_t);
TENON_REDUCE_INSTANTIATE(float)
TENON_REDUCE_INSTANTIATE(double)
TENON_REDUCE_INSTANTIATE(int32_t)
TENON_REDUCE_INSTANTIATE(int64_t)
TENON_REDUCE_INSTANTIATE(uint8_t)
template void sum_pairs<float>(const float*, size_t, float*, float*);
template void sum_pairs<double>(const double*, size_t, double*, double*);

}  // namespace tenon::cpu
