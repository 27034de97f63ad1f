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

constexpr Function kRows[] = {
    {.name = "sign",
     .body = "where(x > 0, 1, where(x < 0, -1, 0))",
     .doc = "-1, 0 or 1; 0 for NaN, as PyTorch"},
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
    {.name = "rsqrt", .derivative = {"-0.5 * result / x"}, .body_float = kRsqrt, .doc = "1 / sqrt(x)"},
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

std::span<const Function> basic_functions() noexcept { return kRows; }

}  // namespace tenon::expr
