// Functions of the language: exp, sigmoid, pow, ... Each is one row of data: its definition over ops (one for
// each compute type if the constants differ) and its derivatives, all of them written in the language itself.
// Used by the parser, the differentiator and the printers. To add a function, add a row in functions_*.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tenon/expr/expr.h"

namespace tenon::expr {

/// The text of a literal in one word: a table of functions has many.
struct Text {
  constexpr Text() = default;
  constexpr Text(const char* literal) : start(literal) {}
  constexpr Text(std::string_view literal) : start(literal.data()) {}
  constexpr operator std::string_view() const { return empty() ? std::string_view() : start; }
  constexpr bool empty() const { return start == nullptr; }

  const char* start = nullptr;
};

/// One function of the language.
struct Function {
  std::string_view name;
  uint8_t arity = 1;
  /// Derivative by each parameter over `x`, `y`, `z` and `result`; an empty one is zero everywhere.
  Text derivative[3] = {};
  /// Definitions over `x`, `y`, `z`. The narrowest that fits a compute type is used; without one, the
  /// function cannot be computed in that type.
  Text body = {};        ///< Every compute type.
  Text body_float = {};  ///< float32 and float64.
  Text body_f32 = {};
  Text body_f64 = {};
  Text body_int = {};  ///< int32 and int64.
  /// The internal function of float64 by which float32 computes in float64, where fewer terms than those of
  /// `body_f64` are right to float32's last place; empty: this one.
  Text short_form = {};
  /// Whether the result is a mask (isnan) rather than a number.
  bool mask = false;
  /// Whether only other definitions may call it, and not users.
  bool internal = false;
  /// Whether an internal one has a primitive: another one's short form.
  bool kernel = false;
  /// Whether a `where` that chooses between it and something else should ask first if any element needs it.
  bool costly = false;
  /// Whether printed code calls it rather than inlining it: long definitions with several uses.
  bool apart = false;
  /// Whether machines with AVX-512 run the primitives of AVX2: long ones that are seldom called.
  bool narrow = false;
  /// The same of float64 alone, where float32 has a short definition of its own.
  bool narrow_f64 = false;
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
