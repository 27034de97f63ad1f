// Typed expressions as text, for tests, dumps and debugging. A canonical expression can be printed and parsed
// without loss.
//
//   in self: bfloat16, other: bfloat16; number alpha: f32;
//   out bfloat16: stored[bfloat16](add(self, mul(alpha, other)));
//
// Every operation and function is written as a call; what is used twice has a name: `let t1 = exp(self);`.
// Literals have their type: 0.5:f32, 3:i64, true. Casts are cast[f32](x). Slots that are not in their call's
// order, or parts of complex operands, say so: `in z@2.re: complex64`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tenon/expr/expression.h"

namespace tenon::expr {

/// `inputs` and `numbers` are names for the slots; without them x0, x1, ... and n0, n1, ...
std::string to_string(const Expression& e, std::span<const std::string_view> inputs = {},
                      std::span<const std::string_view> numbers = {});
/// Throws Error{Value} with the place for text that is not of that form, or what `check` throws.
ExpressionPtr parse_typed(std::string_view text);

}  // namespace tenon::expr
