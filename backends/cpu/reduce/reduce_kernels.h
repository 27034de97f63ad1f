// The table of block reductions that each instruction set exports.
// Used by the Reducers, and by tests that compare instruction sets.
#pragma once

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/reduce/reduce.h"

namespace tenon::cpu {

/// The walks over elements of one type, which may be another than T: then they are converted as they are
/// loaded. Lengths and strides count elements.
template <class T>
struct ReduceWalks {
  /// out[c] = chunk c of `count` whole chunks. `ahead`: more follow than the caches hold, which the processor
  /// is to fetch meanwhile.
  void (*chunks)(const void* p, size_t count, bool ahead, T* out);
  /// Adds `n` elements to the lanes of an open chunk whose next lane is `at`. Extrema use the first lane
  /// alone.
  void (*lanes)(T* lanes, size_t at, const void* p, size_t n);
  /// `lanes` for `width` outputs at once: `rows` rows `stride` apart into lanes[kReduceLanes][kReduceStrip]
  /// of a chunk that has `within` elements. Here lanes need no initial value.
  void (*rows)(T* lanes, size_t within, size_t width, const void* p, ptrdiff_t stride, size_t rows);
};

/// One operation on one type: the walks over elements of this type, and what they have in common. Null where
/// reduce.h says that the type lacks the operation.
template <class T>
struct ReduceKernels : ReduceWalks<T> {
  /// The chunk's result from its lanes.
  T (*fold)(const T* lanes);
  /// out[r] = the chunk of the `n` elements (at most a chunk's) from p[r] on, for `rows` rows.
  void (*row_chunks)(const T* const* p, size_t rows, size_t n, T* out);
  /// The same of elements that go backward from p[r].
  void (*row_chunks_backward)(const T* const* p, size_t rows, size_t n, T* out);
  /// `fold` for `width` outputs (a multiple of kReduceLanes) from their first `used` lanes, `stride` elements
  /// apart, the others being empty.
  void (*fold_strip)(T* to, const T* lanes, ptrdiff_t stride, size_t used, size_t width);
  /// later[j] = earlier[j] op later[j] for `width` outputs (a multiple of kReduceLanes).
  void (*merge_strips)(const T* earlier, T* later, size_t width);
  /// Null where `reduces_from` says no.
  ReduceWalks<T> from[kNumReduceSources];
  /// `chunks` of pairs (the parts of complex numbers): those of the first elements and those of the second.
  /// Sums of floating-point types only.
  void (*pair_chunks)(const T* p, size_t count, T* first, T* second);
};

/// The table of one instruction set; the machine must have it. T: as in reduce.h.
template <class T>
const ReduceKernels<T>& reduce_kernels(CpuTarget target, ReduceOp op);

}  // namespace tenon::cpu
