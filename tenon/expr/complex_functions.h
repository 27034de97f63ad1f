// Functions of complex numbers as text of the expression language, over real parts and imaginary parts.
// Used by complex.cc alone.
#pragma once

#include <string_view>

namespace tenon::expr {

/// The definition of a function or op for complex operands `x` and `y`, over real(), imag(), complex() and
/// real functions. The names `large`, `small`, `shrink`, `grow` and `log_grow` are numbers of the
/// compute type: above and below which squares may leave the finite and normal numbers, and powers of four
/// that bring them back. Empty where there is none.
std::string_view complex_definition(std::string_view name) noexcept;

/// The values of those names.
struct ComplexConstant {
  std::string_view name;
  double f32, f64;
};
inline constexpr ComplexConstant kComplexConstants[] = {
    {"large", 0x1p+60, 0x1p+500},
    {"small", 0x1p-60, 0x1p-500},
    {"shrink", 0x1p-66, 0x1p-530},
    {"grow", 0x1p+90, 0x1p+600},
    {"log_shrink", -45.747713916956386, -367.368005696771},
    {"log_grow", 62.383246250395075, 415.88830833596717},
    {"half_pi", 1.5707963267948966, 1.5707963267948966},
    // Where 1 - |tanh| is less than half a unit in the last place.
    {"tanh_above", 12.0, 22.0},
};

}  // namespace tenon::expr
