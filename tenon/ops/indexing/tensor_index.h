// Indexing as in Python: x[1, ::-1, None, ..., mask]. Reading returns a view where possible; assigning copies
// into the selection. Used by C++ callers through Tensor::index, and by the Python binding. Resolves the list
// of indices; the operators that it calls move elements.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>

#include "tenon/core/tensor.h"

namespace tenon {

/// start:stop:step; missing parts follow Python's rules. The step may be negative.
struct Slice {
  std::optional<int64_t> start, stop;
  int64_t step = 1;

  Slice() = default;
  Slice(std::optional<int64_t> start_, std::optional<int64_t> stop_, int64_t step_ = 1)
      : start(start_), stop(stop_), step(step_) {}
};

/// NoneIndex is a new dimension of size 1 (None); EllipsisIndex is all dimensions that nothing else indexes
/// (...).
struct NoneIndex {};
struct EllipsisIndex {};
inline constexpr NoneIndex None;
inline constexpr EllipsisIndex Ellipsis;

/// One entry of x[...].
struct TensorIndex {
  enum class Kind : uint8_t { Integer, Slice, None, Ellipsis, Boolean, Tensor };

  template <std::integral T>
  TensorIndex(T i)
      : kind(std::is_same_v<T, bool> ? Kind::Boolean : Kind::Integer), integer(static_cast<int64_t>(i)) {}
  TensorIndex(tenon::Slice s) : kind(Kind::Slice), slice(s) {}
  TensorIndex(NoneIndex) : kind(Kind::None) {}
  TensorIndex(EllipsisIndex) : kind(Kind::Ellipsis) {}
  TensorIndex(tenon::Tensor t) : kind(Kind::Tensor), tensor(std::move(t)) {}

  Kind kind;
  int64_t integer = 0;
  tenon::Slice slice;
  tenon::Tensor tensor;
};

/// self[indices]. Integers, slices, None and Ellipsis return a view; if one index is a tensor (int64
/// positions or a bool mask), a copy. Throws Error{Index} for an index out of range, and for too many
/// indices.
Tensor get_item(const Tensor& self, std::span<const TensorIndex> indices);

/// self[indices] = value, broadcast and converted. Everything is checked before anything is written.
void set_item(const Tensor& self, std::span<const TensorIndex> indices, const Tensor& value);
void set_item(const Tensor& self, std::span<const TensorIndex> indices, const Scalar& value);

/// self[indices] = value, where `indices` are those of the operator index and `value` has the dtype and
/// device of `self`. One number, or one row, assigned through a mask is written where the mask is true,
/// without positions.
void assign_selected(Tensor& self, TensorList indices, const Tensor& value);

/// `value` without the leading dimensions of size 1 that self[indices], to which it is assigned, does not
/// have. `indices` are those of the operator index; an undefined one keeps its dimension whole.
Tensor without_leading_ones(Tensor value, const Tensor& self, TensorList indices = {});

}  // namespace tenon
