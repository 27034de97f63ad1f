// split_complex: complex expressions as real ones over parts, against std::complex and identities of the
// text.
#include "tenon/expr/complex.h"

#include <gtest/gtest.h>

#include <complex>
#include <random>
#include <vector>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/core/error.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/typed_text.h"

namespace tenon::expr {
namespace {

using Complex = std::complex<double>;

struct Parsed {
  Builder g;
  NodeId root;
  explicit Parsed(std::string_view text) {
    const Symbol symbols[] = {
        {"x", SymbolKind::Tensor}, {"y", SymbolKind::Tensor}, {"s", SymbolKind::Scalar}};
    root = parse(g, text, symbols);
  }
  // Over parts; `y` is complex too where `both` is set, and so are number and result.
  ExpressionPtr split(bool both = true, bool real_result = false, CallTypes types = {}) const {
    const DType inputs[] = {DType::Complex128, both ? DType::Complex128 : DType::Float64};
    const DType results[] = {real_result ? DType::Float64 : DType::Complex128};
    types.compute = Type::F64;
    types.inputs = inputs;
    types.results = results;
    types.complex_numbers = both ? 1 : 0;
    return instantiate(*g.finish({root}), types);
  }
};

// Runs `text` on complex x, y and s.
std::vector<Complex> run(std::string_view text, const std::vector<Complex>& x, const std::vector<Complex>& y,
                         Complex s, CallTypes types = {}) {
  const cpu::Program program(*Parsed(text).split(true, false, types));
  const size_t n = x.size();
  std::vector<std::vector<double>> planes(6, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) {
    planes[2][i] = x[i].real(), planes[3][i] = x[i].imag();
    planes[4][i] = y[i].real(), planes[5][i] = y[i].imag();
  }
  std::vector<void*> ptrs;
  for (auto& plane : planes) ptrs.push_back(plane.data());
  const double numbers[] = {s.real(), s.imag()};
  program.run(ptrs.data(), n, numbers);
  std::vector<Complex> out;
  for (size_t i = 0; i < n; ++i) out.emplace_back(planes[0][i], planes[1][i]);
  return out;
}

std::vector<Complex> numbers(uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<Complex> z(37);
  for (Complex& v : z) v = {normal(rng), normal(rng)};
  return z;
}

TEST(SplitComplex, OfCompositionsMatchesTheLibrary) {
  const std::vector<Complex> x = numbers(1), y = numbers(2);
  const Complex s(0.5, -2);
  const auto expect = [&](std::string_view text, auto&& f) {
    const std::vector<Complex> got = run(text, x, y, s);
    for (size_t i = 0; i < x.size(); ++i) {
      const Complex want = f(x[i], y[i]);
      EXPECT_LE(std::abs(got[i] - want), 1e-13 * std::max(1.0, std::abs(want)))
          << text << " " << x[i] << y[i];
    }
  };
  expect("x * y + s", [&](Complex a, Complex b) { return a * b + s; });
  expect("2 - x / y", [](Complex a, Complex b) { return 2.0 - a / b; });
  expect("exp(x) * conj(y) - fma(x, y, s)",
         [&](Complex a, Complex b) { return std::exp(a) * std::conj(b) - (a * b + s); });
  expect("let t = sqrt(x); t * t / abs(y)",
         [](Complex a, Complex b) { return std::sqrt(a) * std::sqrt(a) / std::abs(b); });
  expect("where(abs(x) > abs(y), log(x), 3)",
         [](Complex a, Complex b) { return std::abs(a) > std::abs(b) ? std::log(a) : Complex(3); });
  expect("complex(real(x), imag(y)) * angle(x)",
         [](Complex a, Complex b) { return Complex(a.real(), b.imag()) * std::arg(a); });
}

TEST(SplitComplex, ConjugatesOperandsAndResult) {
  const std::vector<Complex> x = numbers(3), y = numbers(4);
  const auto got = run("x * y", x, y, 0, {.conjugated = 1, .conjugated_results = true});
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(got[i] - std::conj(std::conj(x[i]) * y[i])), 1e-14 * std::abs(got[i]));
  }
}

TEST(SplitComplex, RealOperandsStayReal) {
  const ExpressionPtr parts = Parsed("x * y").split(false);
  EXPECT_EQ(to_string(*parts),
            "in x0.re: complex128, x1.im: complex128, x2: float64; number n0: f64; "
            "out.re complex128: mul(x0, x2); out.im complex128: mul(x1, x2);");
}

TEST(SplitComplex, RefusesWhatComplexNumbersDoNotHave) {
  for (const char* text : {"x < y", "max(x, y)", "floor(x)", "erf(x)", "fmod(x, y)", "relu(x)", "sign(x)"}) {
    Parsed p(text);
    try {
      p.split(true, text[1] == ' ' && text[2] == '<');
      FAIL() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::NotImplemented) << text;
      EXPECT_NE(std::string(e.what()).find("complex numbers"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(Parsed("x * x").split(true, true), Error);
}

TEST(SplitComplex, KnowsWhatIsHolomorphic) {
  for (const char* text : {"exp(x) * y", "where(x == y, x, y)", "x / y ** 2"}) {
    Parsed p(text);
    EXPECT_TRUE(is_holomorphic(p.g, p.root)) << text;
  }
  for (const char* text : {"abs(x)", "exp(conj(x))", "real(x) + y", "sgn(x)", "angle(y)"}) {
    Parsed p(text);
    EXPECT_FALSE(is_holomorphic(p.g, p.root)) << text;
  }
}

}  // namespace
}  // namespace tenon::expr
