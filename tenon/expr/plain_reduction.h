// plain_reduction: recognises a row expression that reduces one operand unchanged (`sum(self)`,
// `mean(self)`, `any(self)`), for which passes over blocks would be a detour. Used by what runs rows.
#pragma once

#include <optional>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// One operand reduced unchanged: an implementation may walk the
/// operand's memory in any order that gives the reducer's bits.
struct PlainReduction {
  /// Of complex numbers Sum is that of both parts, and Prod the product itself. Any and All ask of numbers
  /// whether they are not zero: of complex ones, whether a part is not.
  ReduceKind kind = ReduceKind::Sum;
  Type type = Type::F32;  ///< Of what is reduced; of complex numbers, of a part.
  uint16_t input = 0;     ///< The operand's slot; the imaginary parts' is the next one.
  bool complex = false;
  bool mean = false;      ///< The sums are divided by the row's length.
  bool elements = false;  ///< Of ArgMax and ArgMin: output 0 is the element there, output 1 the place.
};

/// What `e` is, if it is one. Its outputs are in the order of their slots.
std::optional<PlainReduction> plain_reduction(const Expression& e);

}  // namespace tenon::expr
