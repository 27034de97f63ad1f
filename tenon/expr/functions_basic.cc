// Functions that need no series: signs, tests, division with a rounding, and the activations made of
// comparisons.
#include "tenon/expr/function_rows.h"

namespace tenon::expr {

namespace {

// PyTorch's floor_divide: from the exact remainder, so that (x // y) * y + x % y comes back to x.
constexpr std::string_view kFloorDivideFloat = R"(
  let m = fmod(x, y);
  let q = (x - m) / y - where((m != 0) & ((y < 0) != (m < 0)), 1, 0);
  let f = floor(q);
  let near = where(q - f > 0.5, f + 1, f);
  where(y == 0, x / y, where(q == 0, copysign(0, x / y), near)))";

// 1 / sqrt(x) rounds twice; one Newton step on the exact residual 1 - x * y^2 repairs it.
constexpr std::string_view kRsqrt = R"(
  let y = 1 / sqrt(x);
  let p = x * y;
  let lost = fma(x, y, -p);
  let residual = fma(-lost, y, fma(-p, y, 1));
  where((y > 0) & (y < inf), fma(0.5 * y, residual, y), y))";

// sqrt(x^2 + y^2) with its rounding repaired (Borges, 2019, arXiv:1904.09481), and scaled where the squares
// would leave the normal numbers.
constexpr std::string_view kHypot = R"(
  let p = abs(x);
  let q = abs(y);
  let most = max(p, q);
  let k = where(most > square_above, square_shrink, where(most < square_below, square_grow, 1));
  let m = most * k;
  let n = min(p, q) * k;
  let h = sqrt(fma(m, m, n * n));
  let hh = h * h;
  let mm = m * m;
  let c = fma(-n, n, hh - mm) + fma(h, h, -hh) - fma(m, m, -mm);
  where((p == inf) | (q == inf), inf, where(h == 0, h, h - c / (2 * h)) / k))";

constexpr Function kBasicFunctions[] = {
    {.name = "hypot",
     .arity = 2,
     .derivative = {"where(result == 0, 0, x / result)", "where(result == 0, 0, y / result)"},
     .body_float = kHypot,
     .doc = "sqrt(x * x + y * y), without overflow"},
    {.name = "sign",
     .body = "where(x > 0, 1, where(x < 0, -1, 0))",
     .doc = "-1, 0 or 1; 0 for NaN, as PyTorch"},
    {.name = "sgn",
     .body = "where(x > 0, 1, where(x < 0, -1, 0))",
     .doc = "x / abs(x), 0 for 0; the sign of a real number, 0 for NaN"},
    {.name = "real", .derivative = {"1"}, .body = "x", .doc = "the real part"},
    {.name = "imag", .body = "0", .doc = "the imaginary part; 0 of a real number"},
    {.name = "conj", .derivative = {"1"}, .body = "x", .doc = "the complex conjugate"},
    {.name = "angle",
     .body_float = "where(x < 0, 2 * half_pi, where(x == x, 0, x))",
     .doc = "the angle of a complex number; 0 or pi of a real one"},
    {.name = "complex", .arity = 2, .doc = "x + y * i, of two real numbers"},
    {.name = "relu",
     .derivative = {"where(result <= 0, 0, 1)"},
     .body = "where(x < 0, 0, x)",
     .doc = "max(x, 0); NaN and -0 stay"},
    {.name = "clamp_min",
     .arity = 2,
     .derivative = {"where(x > y, 1, 0)", "where(x > y, 0, 1)"},
     .body = "where((x < y) | (y != y), y, x)",
     .doc = "x, or y where that is larger; NaN where either is; no slope by x at x == y"},
    {.name = "clamp_max",
     .arity = 2,
     .derivative = {"where(x < y, 1, 0)", "where(x < y, 0, 1)"},
     .body = "where((x > y) | (y != y), y, x)",
     .doc = "x, or y where that is smaller; NaN where either is; no slope by x at x == y"},
    {.name = "square", .derivative = {"2 * x"}, .body = "x * x", .doc = "x * x"},
    {.name = "reciprocal", .derivative = {"-result * result"}, .body_float = "1 / x", .doc = "1 / x"},
    {.name = "rsqrt",
     .derivative = {"-0.5 * result * result * result"},
     .body_float = kRsqrt,
     .doc = "1 / sqrt(x)"},
    {.name = "isnan", .body = "x != x", .mask = true, .doc = "whether x is NaN"},
    {.name = "isinf",
     .body_float = "abs(x) == inf",
     .body_int = "x != x",
     .mask = true,
     .doc = "whether x is infinite"},
    {.name = "isfinite",
     .body_float = "abs(x) < inf",
     .body_int = "x == x",
     .mask = true,
     .doc = "whether x is neither infinite nor NaN"},
    {.name = "copysign",
     .arity = 2,
     .derivative = {"where(x == 0, 0, result / x)"},
     .body_float = "from_bits((bits(x) & magnitude_mask) | (bits(y) & sign_mask))",
     .doc = "|x| with the sign of y, also of a zero or NaN"},
    {.name = "floor_divide",
     .arity = 2,
     .body_float = kFloorDivideFloat,
     .body_int = "let q = trunc_div(x, y); where((fmod(x, y) != 0) & ((x < 0) != (y < 0)), q - 1, q)",
     .doc = "x / y rounded down; integers divided by zero give 0"},
    {.name = "trunc_divide",
     .arity = 2,
     .body_float = "trunc(x / y)",
     .body_int = "trunc_div(x, y)",
     .doc = "x / y rounded toward zero; integers divided by zero give 0"},
    {.name = "remainder",
     .arity = 2,
     .derivative = {"1", "-floor(x / y)"},
     .body = "let m = fmod(x, y); where((m != 0) & ((y < 0) != (m < 0)), m + y, m)",
     .doc = "x - y * floor(x / y), exact; the sign of y"},
};

}  // namespace

std::span<const Function> basic_functions() noexcept { return kBasicFunctions; }

}  // namespace tenon::expr
