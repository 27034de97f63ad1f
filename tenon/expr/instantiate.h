// instantiate: a written expression and what a call brings, to a typed expression.
// Used by opgen, by pointwise calls and by whatever compiles expressions. What a call's dtypes are follows
// from its entry's rules (promotion, result), which are not known here.
#pragma once

#include <span>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// What a call brings. Empty lists: every operand and result is of the compute type.
struct CallTypes {
  Type compute = Type::F32;             ///< What `same` is; U64 is computed in int64's registers.
  Type wide = Type::Open;               ///< What `wide` is; Open: float64 with floats, int64 with integers.
  std::span<const DType> inputs = {};   ///< As stored; complex ones become two slots.
  std::span<const DType> results = {};  ///< What each result is rounded to.
  std::span<const DType> outs = {};     ///< What it is stored as, where that is another dtype.
  bool complex_inputs = false;          ///< Real inputs are complex ones whose imaginary part is zero.
  uint64_t complex_numbers = 0;         ///< Bit i: number i has an imaginary part, a slot of its own.
  uint64_t conjugated = 0;              ///< Bit i: the expression sees the conjugate of complex input i.
  bool conjugated_results = false;      ///< The results are conjugated.
  uint64_t absent_inputs = 0;           ///< Bit i: optional input i is not there, and has no slot.
  uint64_t absent_numbers = 0;
  /// Slots are of the compute type, masks 1 and 0 of it: who runs it converts what is stored otherwise, and
  /// the dtypes above say only what stored() rounds to.
  bool dense = false;
  bool definition = false;  ///< Of a function: only these may look at the bits of floats.
  bool relaxed = false;     ///< Rounding to half types inside the expression may be dropped.
};

/// The typed expression in canonical form: loads of the operands' dtypes, casts to what is computed with,
/// rounding before what is stored. Throws Error{Type} naming the function or op that does not run in the
/// call's types, Error{NotImplemented} for what complex numbers do not have, Error{Value} for an absent
/// operand whose value is used.
ExpressionPtr instantiate(const Expression& written, const CallTypes& types);

/// The typed expression of a call whose operands and result are all of one half type, as they are stored.
ExpressionPtr instantiate_stored(const Expression& written, DType half);

/// What a written expression asks of a call besides the compute type.
struct Asks {
  bool dtypes = false;         ///< stored(x), wide(x): its instances differ by dtypes.
  bool typed_numbers = false;  ///< float64(p): a number has a slot in a type of its own.
};
Asks asks_of(const Expression& written);

}  // namespace tenon::expr
