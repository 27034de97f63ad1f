// The inner loops of indexed reads and writes: n places, each a row of m elements. Used by indexed.cc alone.
// They know addresses and no tensors.
#pragma once

#include <cstdint>

#include "tenon/core/dtype.h"
#include "tenon/ops/indexing/indexed.h"

namespace tenon::cpu {

/// Where the rows of one side are: row j is positions[j] * step + j * stride bytes from the first one.
struct RowPlaces {
  const int64_t* positions = nullptr;  ///< Null: zeros.
  int64_t step = 0;
  int64_t stride = 0;
  int64_t last = -1;  ///< Where positions have not been checked: the last one that is in range.
};

/// n rows of m elements, which are `to_step` and `from_step` bytes apart.
struct IndexedRows {
  char* to;
  const char* from;
  RowPlaces to_places, from_places;
  int64_t n, m;
  int64_t to_step, from_step;
};

/// False if a position that had not been checked is out of range: rows before it may have been written.
using IndexedKernel = bool (*)(const IndexedRows& rows, const Scalar& alpha);

/// The most rows of one call.
inline constexpr int64_t kIndexedBlock = 512;

/// The kernel for elements of a dtype; rows are written in order. Throws Error{NotImplemented} if it has no
/// such arithmetic, naming `op`.
IndexedKernel indexed_kernel(DType dtype, ops::Combine combine, const char* op);

}  // namespace tenon::cpu
