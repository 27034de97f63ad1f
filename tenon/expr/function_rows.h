// The rows of functions.cc, by family, and short ways to write some. Used by functions.cc and the files of
// rows.
#pragma once

#include <span>

#include "tenon/expr/function.h"

namespace tenon::expr {

/// A part of functions of float64, which only their definitions call; `costly_part`, `called_part` and
/// `costly_called_part` are `costly` and `apart`.
constexpr Function part(std::string_view name, uint8_t arity, Text body_f64, std::string_view doc = {}) {
  return {.name = name, .arity = arity, .body_f64 = body_f64, .internal = true, .doc = doc};
}
constexpr Function costly_part(std::string_view name, uint8_t arity, Text body_f64) {
  return {.name = name, .arity = arity, .body_f64 = body_f64, .internal = true, .costly = true};
}
constexpr Function called_part(std::string_view name, uint8_t arity, Text body_f64) {
  return {.name = name, .arity = arity, .body_f64 = body_f64, .internal = true, .apart = true};
}
constexpr Function costly_called_part(std::string_view name, uint8_t arity, Text body_f64) {
  return {
      .name = name, .arity = arity, .body_f64 = body_f64, .internal = true, .costly = true, .apart = true};
}

std::span<const Function> basic_functions() noexcept;
std::span<const Function> exponential_functions() noexcept;
std::span<const Function> logarithm_functions() noexcept;
std::span<const Function> power_functions() noexcept;
std::span<const Function> trigonometric_functions() noexcept;
std::span<const Function> special_functions() noexcept;
std::span<const Function> probability_functions() noexcept;
std::span<const Function> gamma_functions() noexcept;
std::span<const Function> bessel_functions() noexcept;
std::span<const Function> hankel_functions() noexcept;

}  // namespace tenon::expr
