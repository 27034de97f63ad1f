// Definitions of complex functions. Special values follow ISO C99, annex G, where the sign of a zero or NaN
// does not decide.
#include "tenon/expr/complex_functions.h"

namespace tenon::expr {

namespace {

// Smith's quotient (1962) with the operands scaled as Baudin and Smith (2012, arXiv:1210.4539) have it.
constexpr std::string_view kDiv = R"(
  let a0 = real(x);
  let b0 = imag(x);
  let c0 = real(y);
  let d0 = imag(y);
  let p = max(abs(a0), abs(b0));
  let q = max(abs(c0), abs(d0));
  let m = where(p > large, shrink, where(p < small, grow, 1));
  let n = where(q > large, shrink, where(q < small, grow, 1));
  let a = a0 * m;
  let b = b0 * m;
  let c = c0 * n;
  let d = d0 * n;
  let wide = abs(c) >= abs(d);
  let r = where(wide, d, c) / where(wide, c, d);
  let den = where(wide, fma(d, r, c), fma(c, r, d));
  let re = where(wide, fma(b, r, a), fma(a, r, b)) / den;
  let im = where(wide, fma(-a, r, b), fma(b, r, -a)) / den;
  let zero = (c0 == 0) & (d0 == 0);
  let far = ((abs(c0) == inf) | (abs(d0) == inf)) & (p < inf);
  let sign = copysign(inf, c0);
  let e = where(abs(c0) == inf, copysign(1, c0), copysign(0, c0));
  let f = where(abs(d0) == inf, copysign(1, d0), copysign(0, d0));
  complex(where(zero, sign * a0, where(far, 0 * (a0 * e + b0 * f), re / m * n)),
          where(zero, sign * b0, where(far, 0 * (b0 * e - a0 * f), im / m * n))))";

// exp(a) may overflow where exp(a) * cos(b) does not.
constexpr std::string_view kExp = R"(
  let a = real(x);
  let b = imag(x);
  let m = exp(a);
  let h = exp(0.5 * a);
  let s = sin(b);
  let c = cos(b);
  let over = (m == inf) & (a < inf);
  let circle = abs(b) < inf;
  let re = where(over, h * c * h, m * c);
  let im = where(over, h * s * h, m * s);
  complex(where(b == 0, m, where(circle, re, where(a == -inf, 0, where(a == inf, inf, nan)))),
          where(b == 0, b, where(circle, im, where(a == -inf, 0, nan)))))";

// e^x - 1 = (e^a - 1) cos b - 2 sin^2(b / 2) + i e^a sin b.
constexpr std::string_view kExpm1 = R"(
  let a = real(x);
  let b = imag(x);
  let s = sin(0.5 * b);
  let e = exp(x);
  let near = fma(expm1(a), cos(b), -2 * s * s);
  complex(where(b == 0, expm1(a), where(abs(a) < 1, near, real(e) - 1)), imag(e)))";

// log|x|. Around the unit circle |x|^2 - 1 in twice the precision: the logarithm of a rounded |x| would lose
// all digits there.
constexpr std::string_view kLogAbs = R"(
  let p = abs(real(x));
  let q = abs(imag(x));
  let m = max(p, q);
  let n = min(p, q);
  let mm = m * m;
  let nn = n * n;
  let e = mm - 1;
  let s = e + nn;
  let back = s - e;
  let lost = (e - (s - back)) + (nn - back) + (mm - (e + 1));
  let near = 0.5 * log1p(s + (lost + (fma(m, m, -mm) + fma(n, n, -nn))));
  let k = where(m > large, shrink, where(m < small, grow, 1));
  let log_k = where(m > large, log_shrink, where(m < small, log_grow, 0));
  let far = log(hypot(p * k, q * k)) - log_k;
  where((p == inf) | (q == inf), inf, where((m > 0.7) & (m < 1.4), near, far)))";

constexpr std::string_view kLog1p = R"(
  let a = real(x);
  let b = imag(x);
  let u = 1 + a;
  let near = 0.5 * log1p(fma(a, 2 + a, b * b));
  let far = log_abs(complex(u, b));
  complex(where((abs(a) < 0.5) & (abs(b) < 0.5), near, far), atan2(b, u)))";

constexpr std::string_view kSqrt = R"(
  let a = real(x);
  let b = imag(x);
  let p = abs(a);
  let q = abs(b);
  let m = max(p, q);
  let k = where(m > large, shrink, where(m < small, grow, 1));
  let t = sqrt(0.5 * (p * k + hypot(p * k, q * k))) / sqrt(k);
  let u = q / (2 * t);
  let right = copysign(1, a) > 0;
  let re = where(right, t, u);
  let im = where(right, u, t);
  complex(where(q == inf, inf, where((p == 0) & (q == 0), 0, re)),
          where((q == inf) | ((p == 0) & (q == 0)), b, copysign(im, b))))";

// cosh and sinh of the imaginary part may overflow where the products do not.
constexpr std::string_view kSin = R"(
  let a = real(x);
  let b = imag(x);
  let h = exp(0.5 * abs(b));
  let s = sin(a);
  let c = cos(a);
  let over = abs(b) > 88;
  let line = abs(a) < inf;
  complex(where(a == 0, a, where(over, 0.5 * h * s * h, s * cosh(b))),
          where(b == 0, where(line, c * b, b),
                where(!line & (abs(b) == inf), b, where(over, copysign(0.5 * h, b) * c * h, c * sinh(b))))))";
constexpr std::string_view kCos = R"(
  let a = real(x);
  let b = imag(x);
  let h = exp(0.5 * abs(b));
  let s = sin(a);
  let c = cos(a);
  let over = abs(b) > 88;
  let line = abs(a) < inf;
  complex(where(!line & (abs(b) == inf), inf, where(over, 0.5 * h * c * h, c * cosh(b))),
          where((a == 0) | (b == 0), where(line, -s * copysign(0, b), 0),
                where(over, -copysign(0.5 * h, b) * s * h, -s * sinh(b)))))";

// Kahan (1987), "Branch cuts for complex elementary functions".
constexpr std::string_view kTanh = R"(
  let a = real(x);
  let b = imag(x);
  let t = tan(b);
  let s = sinh(a);
  let beta = 1 + t * t;
  let den = 1 + beta * s * s;
  let big = abs(a) > tanh_above;
  let circle = abs(b) < inf;
  let known = circle | (abs(a) == inf);
  let tail = where(circle, 4 * sin(b) * cos(b) * exp(-2 * abs(a)), where(known, 0, nan));
  complex(where(a == 0, a, where(big, where(known, copysign(1, a), nan), beta * cosh(a) * s / den)),
          where(b == 0, b, where(big, tail, t / den))))";

// Kahan's too: both terms of each sum have one sign. Far out they are log(2|z|) and the angle.
constexpr std::string_view kAsin = R"(
  let a = real(x);
  let b = imag(x);
  let far = (abs(a) > large) | (abs(b) > large);
  let z = where(far, 0, x);
  let p = sqrt(complex(1 - real(z), -b));
  let q = sqrt(complex(1 + real(z), b));
  let near = asinh(real(p) * imag(q) - imag(p) * real(q));
  let known = (a == 0) & (b != b);
  complex(where(known, a, atan2(a, where(far, abs(b), real(p) * real(q) - imag(p) * imag(q)))),
          where(far, copysign(log_abs(x) + 0.6931471805599453, b), near)))";
constexpr std::string_view kAcos = R"(
  let a = real(x);
  let b = imag(x);
  let far = (abs(a) > large) | (abs(b) > large);
  let z = where(far, 0, x);
  let p = sqrt(complex(1 - real(z), -b));
  let q = sqrt(complex(1 + real(z), b));
  let near = asinh(real(q) * imag(p) - imag(q) * real(p));
  let known = (a == 0) & (b != b);
  complex(where(known, half_pi, where(far, atan2(abs(b), a), 2 * atan2(real(p), real(q)))),
          where(far, copysign(log_abs(x) + 0.6931471805599453, -b), near)))";
constexpr std::string_view kAcosh = R"(
  let a = real(x);
  let b = imag(x);
  let far = (abs(a) > large) | (abs(b) > large);
  let z = where(far, 0, x);
  let p = sqrt(complex(real(z) - 1, b));
  let q = sqrt(complex(real(z) + 1, b));
  let near = asinh(real(p) * real(q) + imag(p) * imag(q));
  complex(where(far, log_abs(x) + 0.6931471805599453, near),
          where((a == 0) & (b != b), half_pi, where(far, atan2(b, a), 2 * atan2(imag(p), real(q))))))";
// A quarter of the logarithm of |1 + z|^2 / |1 - z|^2, and half of the angle between the two.
constexpr std::string_view kAtanh = R"(
  let a = abs(real(x));
  let b = imag(x);
  let far = (a > large) | (abs(b) > large);
  let t = 1 - a;
  let close = 0.5 * (log(hypot(2, b)) - log(abs(b)));
  let near = where(a == 1, close, 0.25 * log1p(4 * a / fma(t, t, b * b)));
  let known = ((a == a) & (b == b)) | (abs(b) == inf);
  let out = where((a == inf) | (abs(b) == inf), 0, real(1 / complex(a, b)));
  complex(where(real(x) == 0, real(x), copysign(where(far, out, near), real(x))),
          where(far, where(known, copysign(half_pi, b), nan), 0.5 * atan2(2 * b, t * (1 + a) - b * b))))";

constexpr std::string_view kSgn = R"(
  let m = max(abs(real(x)), abs(imag(x)));
  let k = where(m > large, shrink, where(m < small, grow, 1));
  let a = real(x) * k;
  let b = imag(x) * k;
  let r = hypot(a, b);
  complex(where(m == 0, 0, a / r), where(m == 0, 0, b / r)))";

// The small powers that people write keep their digits. A negative real base has a complex logarithm; a part
// that is zero takes no part in the product, so that an infinite other part does no harm.
constexpr std::string_view kPow = R"(
  let l = log_of_base(x);
  let p = real(y);
  let q = imag(y);
  let u = real(l);
  let v = imag(l);
  let across = (q == 0) | (v == 0);
  let power = exp(complex(p * u - where(across, 0, q * v), where(q == 0, 0, q * u) + where(v == 0, 0, p * v)));
  where(y == 0, 1, where(y == 1, x, where(y == 2, x * x, power))))";

// The argument whose real part is larger, and the logarithm of 1 and a number in the unit circle.
constexpr std::string_view kLogAddExp = R"(
  let first = real(x) >= real(y);
  let m = where(first, x, y);
  where(abs(real(m)) == inf, m, m + log1p(exp(where(first, y, x) - m))))";

// sin(pi x) / (pi x), by the distance of the real part from the nearest integer.
constexpr std::string_view kSinc = R"(
  let n = round(real(x));
  let s = sin(complex(3.141592653589793 * (real(x) - n), 3.141592653589793 * imag(x)));
  let odd = trunc(0.5 * n) != 0.5 * n;
  where(x == 0, 1, where(odd, -s, s) / (3.141592653589793 * x)))";

struct Row {
  std::string_view name, text;
};
constexpr Row kComplexRows[] = {
    {"div", kDiv},
    {"abs", "hypot(real(x), imag(x))"},
    {"acos", kAcos},
    {"acosh", kAcosh},
    {"angle", "atan2(imag(x), real(x))"},
    {"asin", kAsin},
    {"asinh", "let w = asin(complex(-imag(x), real(x))); complex(imag(w), -real(w))"},
    {"atan", "let w = atanh(complex(-imag(x), real(x))); complex(imag(w), -real(w))"},
    {"atanh", kAtanh},
    {"conj", "complex(real(x), -imag(x))"},
    {"cos", kCos},
    {"cosh", "cos(complex(-imag(x), real(x)))"},
    {"exp", kExp},
    {"exp2", "exp(x * 0.6931471805599453)"},
    {"expm1", kExpm1},
    // Of the derivative of asinh.
    {"hypot", "sqrt(x * x + y * y)"},
    {"isfinite", "isfinite(real(x)) & isfinite(imag(x))"},
    {"isinf", "isinf(real(x)) | isinf(imag(x))"},
    {"isnan", "isnan(real(x)) | isnan(imag(x))"},
    {"log", "complex(log_abs(x), atan2(imag(x), real(x)))"},
    {"log_abs", kLogAbs},
    // A real base becomes complex: a negative one has a logarithm too.
    {"log_of_base", "log(complex(real(x), imag(x)))"},
    {"log10", "log(x) * 0.4342944819032518"},
    {"log1p", kLog1p},
    {"log2", "log(x) * 1.4426950408889634"},
    {"logaddexp", kLogAddExp},
    {"pow", kPow},
    {"reciprocal", "1 / x"},
    {"rsqrt", "1 / sqrt(x)"},
    {"sgn", kSgn},
    {"sigmoid", "let left = real(x) < 0; let e = exp(where(left, x, -x)); where(left, e, 1) / (1 + e)"},
    {"silu", "x * sigmoid(x)"},
    {"sin", kSin},
    {"sinc", kSinc},
    {"sinh", "let w = sin(complex(-imag(x), real(x))); complex(imag(w), -real(w))"},
    {"sqrt", kSqrt},
    {"square", "x * x"},
    {"tan", "let w = tanh(complex(-imag(x), real(x))); complex(imag(w), -real(w))"},
    {"tanh", kTanh},
};

}  // namespace

std::string_view complex_definition(std::string_view name) noexcept {
  for (const Row& row : kComplexRows) {
    if (row.name == name) return row.text;
  }
  return {};
}

}  // namespace tenon::expr
