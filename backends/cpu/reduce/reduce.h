// Reductions over blocks of elements, by one fixed tree: the same bits for every CPU, thread count and
// stride. Used by the reduction operators and softmax. Knows pointers and C++ types; nothing of tensors,
// dimensions or dtypes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "tenon/core/dims.h"

namespace tenon::cpu {

/// Sum and Prod wrap for integers. Max and Min do not depend on the order of elements: NaN if any is one, and
/// 0 is larger than -0. Of `uint8_t`, used for bool, there are Max (any) and Min (all) only.
enum class ReduceOp : uint8_t { Sum, Prod, Max, Min };

/// Elements that are converted as they are loaded, without a copy; the bits are those of converting first.
enum class ReduceSource : uint8_t { Float16, BFloat16, Bool, UInt8, Int8, Int16, Int32 };
inline constexpr size_t kNumReduceSources = 7;
/// Whether there is an operation on T from elements of this kind: float from half types, but for Prod, and
/// sums of int64 from narrower integers.
template <class T>
constexpr bool reduces_from(ReduceSource source, ReduceOp op) noexcept {
  const bool half = source == ReduceSource::Float16 || source == ReduceSource::BFloat16;
  if (std::is_same_v<T, float>) return half && op != ReduceOp::Prod;
  return std::is_same_v<T, int64_t> && !half && op == ReduceOp::Sum;
}

// The tree, which is part of the definition of every result. Elements in logical order are cut into chunks of
// kReduceChunk. Within a chunk, lane i % kReduceLanes takes element i, starting from the identity; the lanes
// are folded in halves (0 with 8, 1 with 9, ..., then 0 with 4, ...). Chunks are combined in pairs by their
// index, as a binary counter carries: chunks 0 and 1, 2 and 3, then those pairs...; what is left at the end
// is combined from the last to the first. The earlier operand is always the left one.
inline constexpr size_t kReduceLanes = 16;
inline constexpr size_t kReduceChunk = 1024;
/// Pending results of the counter: enough for 2^42 elements.
inline constexpr size_t kReduceLevels = 33;

/// The value that leaves others as they are, and the result for no elements: 0, 1, lowest, highest (for bool:
/// false, true).
template <class T>
T reduce_identity(ReduceOp op) noexcept;

template <class T>
struct ReduceWalks;

/// All of `n` contiguous elements; on several threads when there are very many.
template <class T>
T reduce_contiguous(ReduceOp op, const T* p, size_t n);
template <class T>
T reduce_contiguous_from(ReduceOp op, ReduceSource source, const void* p, size_t n);

/// The sums of `n` pairs: of their first elements and of their second. T is a floating-point type.
template <class T>
void sum_pairs(const T* p, size_t n, T* first, T* second);

/// The same result from elements that come in pieces of any size, in logical order: what a caller with
/// strided or converted input feeds with packed tiles.
template <class T>
class Reducer {
 public:
  explicit Reducer(ReduceOp op);
  void feed(const T* p, size_t n);
  void feed_from(ReduceSource source, const void* p, size_t n);
  /// Adds a chunk reduced elsewhere; only on a chunk's border.
  void feed_chunk(T chunk);
  /// Of all that was fed so far.
  T result() const;

 private:
  void walk(const ReduceWalks<T>& walks, const char* p, size_t item, size_t n);

  ReduceOp op_;
  size_t within_ = 0;    // elements in the open chunk
  uint64_t chunks_ = 0;  // closed chunks
  size_t depth_ = 0;     // pending results
  T lanes_[kReduceLanes];
  T pending_[kReduceLevels];
};

/// Reducers of several rows that come in pieces, side by side: their sums do not wait for one another. Each
/// has the bits of a Reducer of its own.
template <class T>
class RowsReducer {
 public:
  RowsReducer(ReduceOp op, size_t rows) : op_(op), values_(rows) {}
  /// Forgets what was fed.
  void reset();
  /// `n` further elements of each of the first `rows` rows, row r's from p[r] on. `last`: none come after.
  void feed(const T* const* p, size_t rows, size_t n, bool last);
  /// A chunk of each of the first `rows` rows that was reduced elsewhere; `only`: they have no more. Follows
  /// whole chunks alone.
  void feed_chunks(const T* chunks, size_t rows, bool only);
  /// All `n` > 0 elements of each of the first `rows` rows: element i of row r is p[r][-i].
  void feed_backward(const T* const* p, size_t rows, size_t n);
  /// Of the first `rows` rows.
  void result(T* out, size_t rows) const;

 private:
  ReduceOp op_;
  size_t within_ = 0;                 // elements in the open chunks
  bool fed_ = false, whole_ = false;  // rows of one chunk: that is the result
  SmallVector<T, 8> values_;
  std::vector<Reducer<T>> states_;  // made when a row has more than a chunk
};

/// Outputs that an OuterReducer takes at a time: its sums fit the L1 cache, and a page of memory is visited
/// rarely.
inline constexpr size_t kReduceStrip = 128;

/// The results of `outputs` neighbouring outputs from all of their elements, as OuterReducer gets them, where
/// there are at most kReduceLanes of each: none of them meets another in its lane. Returns false, with
/// nothing done, where there are more, or where `outputs` is no multiple of kReduceLanes.
template <class T>
bool reduce_short_strip(ReduceOp op, const T* p, ptrdiff_t stride, size_t rows, T* out, size_t outputs);

/// Reducer for up to kReduceStrip neighbouring outputs at once, vectorised across them: each has the bits of
/// a Reducer of its own.
template <class T>
class OuterReducer {
 public:
  OuterReducer(ReduceOp op, size_t outputs);
  /// Forgets what was fed.
  void reset() noexcept { within_ = 0, chunks_ = 0, depth_ = 0; }
  /// `rows` further elements of every output: output j's are p[j], p[j + stride], ...
  void feed(const T* p, ptrdiff_t stride, size_t rows);
  void feed_from(ReduceSource source, const void* p, ptrdiff_t stride, size_t rows);
  void result(T* out) const;

 private:
  void walk(const ReduceWalks<T>& walks, const char* p, ptrdiff_t item, ptrdiff_t stride, size_t rows);
  void close_chunk();

  ReduceOp op_;
  size_t outputs_;
  size_t width_;  // outputs_ in whole vectors
  size_t within_ = 0;
  uint64_t chunks_ = 0;
  size_t depth_ = 0;
  T lanes_[kReduceLanes * kReduceStrip];
  std::vector<T> pending_;  // of `depth_` chunks, each kReduceStrip; none of up to a chunk's rows
};

/// Reduces an outer dimension of `n` rows `stride` apart, each of `outputs` contiguous elements, to
/// out[outputs]. Splits over outputs on several threads when there is much to do.
template <class T>
void reduce_outer(ReduceOp op, const T* p, ptrdiff_t stride, size_t n, T* out, size_t outputs);
template <class T>
void reduce_outer_from(ReduceOp op, ReduceSource source, const void* p, ptrdiff_t stride, size_t n, T* out,
                       size_t outputs);

#define TENON_REDUCE_EXTERN(T)                                                                          \
  extern template T reduce_identity<T>(ReduceOp) noexcept;                                              \
  extern template T reduce_contiguous<T>(ReduceOp, const T*, size_t);                                   \
  extern template T reduce_contiguous_from<T>(ReduceOp, ReduceSource, const void*, size_t);             \
  extern template class Reducer<T>;                                                                     \
  extern template class RowsReducer<T>;                                                                 \
  extern template class OuterReducer<T>;                                                                \
  extern template void reduce_outer<T>(ReduceOp, const T*, ptrdiff_t, size_t, T*, size_t);              \
  extern template void reduce_outer_from<T>(ReduceOp, ReduceSource, const void*, ptrdiff_t, size_t, T*, \
                                            size_t);
TENON_REDUCE_EXTERN(float)
TENON_REDUCE_EXTERN(double)
TENON_REDUCE_EXTERN(int32_t)
TENON_REDUCE_EXTERN(int64_t)
TENON_REDUCE_EXTERN(uint8_t)
#undef TENON_REDUCE_EXTERN
extern template void sum_pairs<float>(const float*, size_t, float*, float*);
extern template void sum_pairs<double>(const double*, size_t, double*, double*);

}  // namespace tenon::cpu
