// Functions of the language: exp, sigmoid, pow, ... Each is one row of data: its definition over ops (one for
// each compute type if the constants differ) and its derivatives, all of them written in the language itself.
// Used by the parser, the differentiator and the printers. To add a function, add a row in functions_*.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// One function of the language.
struct Function {
  std::string_view name;
  uint8_t arity = 1;
  /// Derivative by each parameter over `x`, `y`, `z` and `result`; an empty one is zero everywhere.
  std::string_view derivative[3] = {};
  /// Definitions over `x`, `y`, `z`. The narrowest that fits a compute type is used; without one, the
  /// function cannot be computed in that type.
  std::string_view body = {};        ///< Every compute type.
  std::string_view body_float = {};  ///< float32 and float64.
  std::string_view body_f32 = {};
  std::string_view body_f64 = {};
  std::string_view body_int = {};  ///< int32 and int64.
  /// Whether the result is a mask (isnan) rather than a number.
  bool mask = false;
  /// Whether only other definitions may call it, and not users.
  bool internal = false;
  /// Whether a `where` that chooses between it and something else should ask first if any element needs it.
  bool costly = false;
  /// Whether printed code calls it rather than inlining it: long definitions with several uses.
  bool apart = false;
  /// Whether machines with AVX-512 run the primitive of AVX2: long ones that are seldom called.
  bool narrow = false;
  /// One line for the documentation.
  std::string_view doc = {};

  std::string_view body_for(Type t) const noexcept;
  bool runs_in(Type t) const noexcept { return !body_for(t).empty(); }
  /// Defined in float64 alone: float32 computes in it and rounds at the end.
  bool widens() const noexcept { return !runs_in(Type::F32) && runs_in(Type::F64); }
};

/// All functions, in a fixed order: a function's number is its position.
std::span<const Function> functions() noexcept;
/// kNoFunction if there is none.
inline constexpr uint16_t kNoFunction = 0xFFFF;
uint16_t find_function(std::string_view name) noexcept;

}  // namespace tenon::expr
