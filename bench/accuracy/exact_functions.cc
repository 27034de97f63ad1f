// Functions of one argument whose results are the nearest numbers to the exact ones.
#include <cmath>

#include "bench/accuracy/functions.h"
#include "bench/accuracy/references.h"

namespace tenon::accuracy {

namespace {

template <mpfr_rnd_t direction>
void rounded(mpfr_ptr out, mpfr_ptr x, mpfr_ptr) {
  mpfr_rint(out, x, direction);
}

}  // namespace

std::vector<MathFunction> exact_functions() {
  return {
      {.name = "sqrt",
       .text = "sqrt(x)",
       .op = "aten::sqrt",
       .in_double = each<[](double x) { return std::sqrt(x); }>,
       .exact = by_mpfr<mpfr_sqrt>,
       .interesting = {0.25, 4},
       .points = {1, 0x1p-1022}},
      {.name = "square",
       .text = "square(x)",
       .op = "aten::square",
       .symmetry = Symmetry::Even,
       .in_double = each<[](double x) { return x * x; }>,
       .exact = by_mpfr<mpfr_sqr>},
      {.name = "reciprocal",
       .text = "1 / x",
       .op = "aten::reciprocal",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return 1 / x; }>,
       .exact = [](mpfr_ptr out, mpfr_ptr x, mpfr_ptr) { mpfr_ui_div(out, 1, x, kNearest); }},
      {.name = "abs",
       .text = "abs(x)",
       .op = "aten::abs",
       .symmetry = Symmetry::Even,
       .in_double = each<[](double x) { return std::abs(x); }>,
       .exact = by_mpfr<mpfr_abs>},
      {.name = "neg",
       .text = "-x",
       .op = "aten::neg",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return -x; }>,
       .exact = by_mpfr<mpfr_neg>},
      {.name = "floor",
       .text = "floor(x)",
       .op = "aten::floor",
       .in_double = each<[](double x) { return std::floor(x); }>,
       .exact = rounded<MPFR_RNDD>,
       .interesting = {-100, 100}},
      {.name = "ceil",
       .text = "ceil(x)",
       .op = "aten::ceil",
       .in_double = each<[](double x) { return std::ceil(x); }>,
       .exact = rounded<MPFR_RNDU>,
       .interesting = {-100, 100}},
      {.name = "trunc",
       .text = "trunc(x)",
       .op = "aten::trunc",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::trunc(x); }>,
       .exact = rounded<MPFR_RNDZ>,
       .interesting = {-100, 100}},
      {.name = "round",
       .text = "round(x)",
       .op = "aten::round",
       .symmetry = Symmetry::Odd,
       .in_double = each<[](double x) { return std::nearbyint(x); }>,
       .exact = rounded<MPFR_RNDN>,
       .interesting = {-100, 100},
       .points = {0.5, 1.5, 2.5, -0.5, 0x1p52}},
  };
}

}  // namespace tenon::accuracy
