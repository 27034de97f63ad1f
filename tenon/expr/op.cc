#include "tenon/expr/op.h"

#include "tenon/expr/node.h"

namespace tenon::expr {

namespace {

using enum TypeRule;

// In the order of Op; the static_assert below keeps it so.
constexpr OpInfo kOps[] = {
    {Op::Literal, "literal", "", 0, Leaf, {}},
    {Op::Load, "load", "", 0, Leaf, {}},
    {Op::Number, "number", "", 0, Leaf, {}},
    {Op::Given, "given", "", 0, Leaf, {}},
    {Op::Call, "call", "", 0, Leaf, {}},
    {Op::Add, "add", "+", 2, Any, {"1", "1"}},
    {Op::Sub, "sub", "-", 2, Any, {"1", "-1"}},
    {Op::Mul, "mul", "*", 2, Any, {"y", "x"}},
    {Op::Div, "div", "/", 2, Floating, {"1 / y", "-result / y"}},
    {Op::TruncDiv, "trunc_div", "", 2, Integer, {}},
    {Op::Fmod, "fmod", "", 2, Any, {"1", "-trunc(x / y)"}},
    {Op::Neg, "neg", "-", 1, Any, {"-1"}},
    {Op::Abs, "abs", "", 1, Any, {"sign(x)"}},
    {Op::Sqrt, "sqrt", "", 1, Floating, {"0.5 / result"}},
    {Op::Fma, "fma", "", 3, Any, {"y", "x", "1"}},
    {Op::Min,
     "min",
     "",
     2,
     Any,
     {"where(x > y, 0, where(x == y, 0.5, 1))", "where(y > x, 0, where(x == y, 0.5, 1))"}},
    {Op::Max,
     "max",
     "",
     2,
     Any,
     {"where(x < y, 0, where(x == y, 0.5, 1))", "where(y < x, 0, where(x == y, 0.5, 1))"}},
    {Op::Floor, "floor", "", 1, Any, {}},
    {Op::Ceil, "ceil", "", 1, Any, {}},
    {Op::Trunc, "trunc", "", 1, Any, {}},
    {Op::Round, "round", "", 1, Any, {}},
    {Op::IntPow, "int_pow", "", 2, Integer, {}},
    {Op::Eq, "eq", "==", 2, Compare, {}},
    {Op::Ne, "ne", "!=", 2, Compare, {}},
    {Op::Lt, "lt", "<", 2, Compare, {}},
    {Op::Le, "le", "<=", 2, Compare, {}},
    {Op::Gt, "gt", ">", 2, Compare, {}},
    {Op::Ge, "ge", ">=", 2, Compare, {}},
    {Op::And, "and", "&", 2, Bitwise, {}},
    {Op::Or, "or", "|", 2, Bitwise, {}},
    {Op::Xor, "xor", "^", 2, Bitwise, {}},
    {Op::Not, "not", "~", 1, Bitwise, {}},
    {Op::Where, "where", "", 3, Select, {}},
    {Op::Bits, "bits", "", 1, ToBits, {}},
    {Op::FromBits, "from_bits", "", 1, TypeRule::FromBits, {}},
    {Op::ShiftLeft, "shift_left", "", 2, BitShift, {}},
    {Op::ShiftRight, "shift_right", "", 2, BitShift, {}},
    {Op::ShiftRightLogical, "shift_right_logical", "", 2, BitShift, {}},
    {Op::PiReduce, "pi_reduce", "", 2, TypeRule::Part, {}},
    {Op::Cast, "cast", "", 1, Convert, {}},
    {Op::RoundTo, "stored", "", 1, Convert, {}},
    {Op::Iota, "position", "", 0, Row, {}},
    {Op::Length, "length", "", 0, Row, {}},
    {Op::Reduce, "reduce", "", 1, Row, {}},
    {Op::Scan, "scan", "", 1, Reserved, {}},
    {Op::Word32, "word32", "", 3, Reserved, {}},
    {Op::Word64, "word64", "", 3, Reserved, {}},
    {Op::Hold, "hold", "", 1, Row, {}},
};

constexpr bool in_order() {
  for (int i = 0; i < kNumOps; ++i) {
    if (static_cast<int>(kOps[i].op) != i) return false;
  }
  return sizeof(kOps) / sizeof(kOps[0]) == kNumOps;
}
static_assert(in_order());

}  // namespace

const OpInfo& info(Op op) noexcept { return kOps[static_cast<int>(op)]; }

std::string_view name(ReduceKind kind) noexcept {
  constexpr std::string_view kNames[] = {"sum",    "prod",   "max",   "min",     "any",    "all",
                                         "argmax", "argmin", "first", "prod_re", "prod_im"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace tenon::expr
