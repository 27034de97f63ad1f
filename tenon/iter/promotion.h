// Promotion: the common dtype of tensors and numbers, by PyTorch's three ranks of operands. Used by the
// iterator and by operators that promote without iterating. Independent of what is computed.
#pragma once

#include <optional>

#include "tenon/core/tensor.h"

namespace tenon {

/// Collects operands; `common()` is their dtype. Tensors with dimensions outrank 0-dim tensors, which outrank
/// wrapped numbers: a lower rank matters only when its category (bool < integer < float < complex) is higher.
class Promotion {
 public:
  void add(const TensorHeader& t) {
    if (t.is_wrapped_number())
      merge(wrapped_, wrapped_dtype(t.dtype()));
    else
      merge(t.ndim() > 0 ? dim_ : zero_dim_, t.dtype());
  }
  void add(const Tensor& t) { add(*t.impl()); }
  /// Adds a number that is passed with the tensors, as Python's numbers are.
  void add(const Scalar& s) { add_number(s.dtype()); }
  void add_number(DType t) { merge(wrapped_, t); }

  /// Throws Error{Type} when two operands do not promote. Needs at least one operand.
  DType common() const;

 private:
  using Maybe = std::optional<DType>;

  static void merge(Maybe& into, DType t) {
    if (!into)
      into = t;
    else if (*into != t)
      into = promote_types(*into, t);
  }
  // A wrapped float is a Python float, whatever its stored width.
  static DType wrapped_dtype(DType t) noexcept;
  static Maybe combine(Maybe higher, Maybe lower);

  Maybe dim_, zero_dim_, wrapped_;
};

/// The common dtype of tensors, as torch.result_type computes it.
DType result_type(std::span<const Tensor* const> tensors);

}  // namespace tenon
