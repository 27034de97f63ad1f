// Op: the primitive operations of expressions, and the one table that describes them.
// Used by every file of this room. Functions such as exp are no ops: they are data, in function.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::expr {

/// The operations. Functions such as exp are Calls, defined over the others. The numbers are part of the
/// plug-in ABI and of keys: new ones are appended.
enum class Op : uint8_t {
  Literal,
  Load,    ///< An input's element, as its carrier.
  Number,  ///< One value for the whole call.
  Given,   ///< Of written expressions: whether an optional argument is there.
  Call,
  // Arithmetic: numbers in, number out. Integers wrap; x / 0 and x % 0 of integers are 0.
  Add,
  Sub,
  Mul,
  Div,       // floating only
  TruncDiv,  // integers only, toward zero
  Fmod,      // sign of the dividend, exact
  Neg,
  Abs,
  Sqrt,
  Fma,  // one rounding, on every target
  Min,  // a NaN operand gives NaN
  Max,
  Floor,
  Ceil,
  Trunc,
  Round,   // half to even
  IntPow,  // integers only, wraps; a negative exponent gives the truncated 1 / x^|y|
  // Comparisons: numbers in, mask out.
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  // Bits of integers, or logic of masks.
  And,
  Or,
  Xor,
  Not,
  // Choice: where(mask, a, b).
  Where,
  // Bit patterns. `bits` and `from_bits` see a float as the integer of its width.
  Bits,
  FromBits,
  ShiftLeft,          // by a literal
  ShiftRight,         // arithmetic, by a literal
  ShiftRightLogical,  // zeros come in, by a literal
  // pi_reduce(x, part) for large |x|: x less a multiple of pi/2 (0), what that rounds off (1), the multiple
  // mod 4 (2).
  PiReduce,
  // Conversions: to another type; to what storing as a dtype and loading again gives.
  Cast,
  RoundTo,
  // Of row expressions: what depends on the row, or on all of it.
  Iota,    ///< The logical number of a place; of places within the row alone so far.
  Length,  ///< How many places a row has.
  Reduce,  ///< One value of a whole row: its sum, its largest, ...
  Scan,    ///< Reserved, as are random words; `check` refuses them.
  Word32,
  Word64,
  Hold,  ///< Of written expressions: its operand, with no derivative.
};
inline constexpr int kNumOps = static_cast<int>(Op::Hold) + 1;

/// Which operands an op accepts and what comes out.
enum class TypeRule : uint8_t {
  Leaf,      ///< Literal, Load, Number, Given, Call.
  Any,       ///< Numbers of one type in, the same type out.
  Floating,  ///< As Any; integers are an error.
  Integer,   ///< As Any; floats are an error.
  Compare,   ///< Two numbers in, a mask out.
  Bitwise,   ///< Integers, or masks; the same out.
  Select,    ///< A mask and two of a kind.
  ToBits,    ///< Float in, the integer of its width out.
  FromBits,  ///< The reverse.
  BitShift,  ///< An integer (or bit pattern) and a literal count.
  Part,      ///< A float and a literal that says which part of the result.
  Convert,   ///< Cast and RoundTo.
  Row,       ///< Of row expressions: Iota, Length, Reduce and Hold.
  Reserved,  ///< Has a number and no meaning yet.
};

/// One row of the table of ops.
struct OpInfo {
  Op op;
  std::string_view name;   ///< As a function in the language, and in diagnostics.
  std::string_view infix;  ///< Empty where there is none.
  uint8_t arity;
  TypeRule rule;
  /// Derivative by each operand, in the language, over `x`, `y`, `z` (the operands) and `result`. Empty:
  /// zero.
  std::string_view derivative[3];
};

const OpInfo& info(Op op) noexcept;
/// Whether the second operand of the operation is a count, not a number of the type: of bits, or which part.
inline bool has_count(Op op) noexcept {
  return info(op).rule == TypeRule::BitShift || info(op).rule == TypeRule::Part;
}

}  // namespace tenon::expr
