// The rows of functions.cc, by family. Used by functions.cc only.
#pragma once

#include <span>

#include "tenon/expr/function.h"

namespace tenon::expr {

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
