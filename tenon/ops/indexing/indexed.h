// IndexedCall: one loop that reads or writes elements at positions which index tensors hold. Every operator
// of the families indexing and embedding describes its work as one, and a device runs it (indexed_stub). Here
// are the description, what an operator builds it from, and its error. Knows no particular operator.
#pragma once

#include <vector>

#include "tenon/core/scalar.h"
#include "tenon/core/tensor.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops {

/// What is stored: the element that was read, or what it makes with the one that is there. Sums of integers
/// wrap, sums of bools are `or`, products `and`; Min and Max are NaN where either element is. Div is a mean's
/// last step: integers are rounded down, and what would be divided by 0 stays.
enum class Combine : uint8_t { Set, Add, Mul, Min, Max, Div };

/// Positions that name places in a tensor, one for each place of a loop.
struct IndexedBy {
  Tensor positions;  ///< int32 or int64.
  Dims strides;      ///< Of `positions` over the loop, in elements; 0 where it broadcasts.
  /// What a position counts: the elements of these sizes in logical order. One size, usually: that of the
  /// dimension `dim`. Several: those of the whole tensor.
  Dims sizes;
  Dims steps;  ///< The tensor's strides over `sizes`, in elements.
  int64_t dim = 0;
};

/// A tensor as the loop walks it: the element at coordinates c is first + sum of c[d] * strides[d] + where
/// the positions at c point.
struct IndexedSide {
  Tensor tensor;
  Dims strides;  ///< Over the loop, in elements; 0 along dimensions that positions replace.
  std::vector<IndexedBy> by;
};

/// For each place of a loop over `sizes`: an element of `to` becomes what it makes with one of `from`.
///
/// Where several places of the loop write one element, they do so in the loop's logical order. Before
/// anything is written, unless `to` has no other owner yet (`fresh`), all positions are checked to be
/// within [0, size), or [-size, size) if `wraps`.
struct IndexedCall {
  const char* op;        ///< As errors name it.
  const char* argument;  ///< The operator's argument that holds the positions.
  Dims sizes;
  IndexedSide to, from;
  Combine combine = Combine::Set;
  Scalar alpha = 1;    ///< With Add: by what elements of `from` are multiplied.
  bool wraps = false;  ///< Negative positions count from the end.
  bool fresh = false;
};

/// Throws the Error{Index} of a position that is out of range.
[[noreturn]] void throw_out_of_range(const IndexedCall& call, const IndexedBy& by, int64_t position);

/// Whether `out` is an operator's new result, which only the operator's call holds. Call it
/// before a side of a loop holds `out` too.
bool is_fresh(const Tensor& out);
/// `index`, or a copy of it on the device of `t`.
Tensor on_device_of(const Tensor& t, const Tensor& index);

// Sides, by how operators index.

/// A tensor without positions, broadcast to the sizes of the loop.
IndexedSide every_element(const Tensor& t, IntArrayRef sizes);
/// At index[i, j, ...] along `dim`, and at the place's own coordinates along the others: gather and scatter.
/// The loop has the sizes of `index`; a 0-dim tensor counts as a vector.
IndexedSide along(const Tensor& t, int64_t dim, const Tensor& index);
/// The slices of `dim` that a vector names: index_select, index_add. The loop has the sizes of `t` with as
/// many slices as `index` has elements (`sliced_sizes`); a 0-dim tensor counts as a vector.
IndexedSide slices(const Tensor& t, int64_t dim, const Tensor& index);
Dims sliced_sizes(IntArrayRef sizes, int64_t dim, int64_t count);
/// At positions in the flattened tensor: take and put. The loop has the sizes of `index`.
IndexedSide flattened(const Tensor& t, const Tensor& index);

/// `run(to, from)`, by which elements of `to` are combined with elements of `from`; halves in float32,
/// rounded once at the end: a sum of many would stop growing.
template <class Run>
void combine_in_compute_dtype(Tensor& to, const Tensor& from, const char* op, const Run& run) {
  const DType dtype = to.dtype();
  if (dtype != DType::Float16 && dtype != DType::BFloat16) return run(to, from);
  Tensor wide = as_dtype(to, DType::Float32);
  run(wide, as_dtype(from, DType::Float32));
  copy_elements(to, wide, op);
}

/// Runs the loop on the device of `to`. Positions and `from` may be on it or on the host, and may share
/// memory with `to`.
void run_indexed(IndexedCall&& call);

}  // namespace tenon::ops
