#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenon/core/error.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/function.h"

namespace tenon::expr {
namespace {

const Symbol kSymbols[] = {{"x", SymbolKind::Tensor}, {"y", SymbolKind::Tensor}, {"s", SymbolKind::Scalar}};

double at(const Builder& g, NodeId root, double x, double y, double s = 0.7) {
  const NamedValue values[] = {{"x", x}, {"y", y}, {"s", s}, {"grad", 2.0}};
  return evaluate(g, root, values);
}

// Ridders' extrapolation of central differences: about 1e-10 where the function is smooth.
double slope(const Builder& g, NodeId root, double x, double y, bool by_x) {
  double table[8][8];
  double h = 0.01, best = 0, error = std::numeric_limits<double>::max();
  for (int i = 0; i < 8; ++i, h /= 1.8) {
    const double up = by_x ? at(g, root, x + h, y) : at(g, root, x, y + h);
    const double down = by_x ? at(g, root, x - h, y) : at(g, root, x, y - h);
    table[0][i] = (up - down) / (2 * h);
    double factor = 1.8 * 1.8;
    for (int j = 1; j <= i; ++j, factor *= 1.8 * 1.8) {
      table[j][i] = (table[j - 1][i] * factor - table[j - 1][i - 1]) / (factor - 1);
      const double e =
          std::max(std::abs(table[j][i] - table[j - 1][i]), std::abs(table[j][i] - table[j - 1][i - 1]));
      if (e < error) error = e, best = table[j][i];
    }
  }
  return best;
}

void expect_slopes(std::string_view text, std::initializer_list<std::pair<double, double>> points) {
  Builder g;
  const NodeId root = parse(g, text, kSymbols);
  for (const bool by_x : {true, false}) {
    const NodeId wrt = g.symbol(by_x ? "x" : "y");
    const NodeId d = derivative(g, root, wrt);
    for (const auto& [x, y] : points) {
      const double want = slope(g, root, x, y, by_x);
      const double got = d == kNoNode ? 0 : at(g, d, x, y);
      EXPECT_NEAR(got, want, 1e-7 * std::max(1.0, std::abs(want)))
          << text << " by " << (by_x ? "x" : "y") << " at " << x << ", " << y << ": "
          << (d == kNoNode ? "none" : to_string(g, d));
    }
  }
}

TEST(Derivative, OfEveryFunctionMatchesDifferences) {
  for (const Function& f : functions()) {
    if (f.internal || f.mask || !f.runs_in(Type::F64)) continue;
    const std::string args = f.arity == 1 ? "x" : "x, y";
    const std::string text = std::string(f.name) + "(" + args + ")";
    if (f.name == "asin" || f.name == "acos" || f.name == "atanh") {
      expect_slopes(text, {{0.37, 0}, {0.9, 0}, {-0.6, 0}});
      continue;
    }
    if (f.name == "erfinv" || f.name == "ndtri" || f.name == "logit") {
      expect_slopes(text, {{0.37, 0}, {0.8, 0}, {0.21, 0}});
      continue;
    }
    // By the second argument alone: there is no derivative by the first.
    if (f.name == "gammainc" || f.name == "gammaincc" || f.name == "zeta") {
      expect_slopes(std::string(f.name) + "(2.3, y)", {{0, 0.4}, {0, 1.7}, {0, 3.1}});
      continue;
    }
    if (f.name == "acosh") {
      expect_slopes(text, {{1.4, 0}, {2.3, 0}});
      continue;
    }
    expect_slopes(text, {{0.37, 0.81}, {2.3, 1.7}, {0.9, 3.1}});
    const bool positive_only = f.name.starts_with("log") || f.name == "rsqrt" || f.name == "xlogy" ||
                               f.name == "pow" || f.name == "xlog1py" || f.name.starts_with("bessel_y") ||
                               f.name.find("bessel_k") != f.name.npos;
    if (!positive_only || f.name == "log_sigmoid") expect_slopes(text, {{-0.6, 0.4}, {-2.2, 1.3}});
  }
}

TEST(Derivative, OfOpsMatchesDifferences) {
  for (const char* text :
       {"x + y * 3 - x * x", "x / y", "-x", "abs(x) * y", "sqrt(x * x + y * y)", "fma(x, y, x)", "min(x, y)",
        "max(x, y)", "fmod(x, y)", "floor(x) * y", "where(x > y, x * x, y * y * y)"}) {
    expect_slopes(text, {{0.37, 0.81}, {2.3, 1.7}, {-1.9, 0.6}});
  }
}

TEST(Derivative, OfCompositionsMatchesDifferences) {
  for (const char* text :
       {"x * sigmoid(x)", "where(x > 0, x, s * expm1(x))", "0.5 * x * (1 + erf(x * 0.7071067811865476))",
        "x * tanh(softplus(x))", "exp(-(x * x)) * sin(y * x)", "log1p(exp(-abs(x - y)))",
        "pow(abs(x) + 1, y)", "let t = exp(x); t / (1 + t) * t"}) {
    expect_slopes(text, {{0.37, 0.81}, {2.3, 1.7}, {-1.9, 0.6}});
  }
}

TEST(Derivative, MultipliesByGradAndUsesTheResult) {
  Builder g;
  const auto text_of = [&](std::string_view text) {
    const NodeId root = parse(g, text, kSymbols);
    return to_string(
        g, derivative(g, root, g.symbol("x"), {.grad = g.symbol("grad"), .result = g.symbol("result")}));
  };
  EXPECT_EQ(text_of("exp(x)"), "grad * result");
  EXPECT_EQ(text_of("tanh(x)"), "grad * (1 - result * result)");
  EXPECT_EQ(text_of("x + y"), "grad");
  EXPECT_EQ(text_of("y - x"), "-grad");
  EXPECT_EQ(text_of("x * y"), "grad * y");
  EXPECT_EQ(text_of("abs(x) * s"), "grad * (sign(x) * s)");
  EXPECT_EQ(text_of("relu(x)"), "where(result <= 0, 0, grad)");
  EXPECT_EQ(text_of("x / y"), "grad / y");
  EXPECT_EQ(derivative(g, parse(g, "y * floor(x)", kSymbols), g.symbol("x")), kNoNode);
  EXPECT_EQ(derivative(g, parse(g, "y", kSymbols), g.symbol("x")), kNoNode);
}

TEST(Derivative, TheBranchNotTakenContributesNothing) {
  Builder g;
  const NodeId root = parse(g, "where(x > 0, log(x), 0) + where(x >= 0, sqrt(x), x)", kSymbols);
  const NodeId d = derivative(g, root, g.symbol("x"), {.grad = g.symbol("grad")});
  EXPECT_EQ(at(g, d, -1, 0), 2);
  // sqrt's slope at 0 is infinite, log's branch is not taken there.
  EXPECT_EQ(at(g, d, 0, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(at(g, d, 4, 0), 2 * (0.25 + 0.25));
}

TEST(Derivative, KinksFollowPyTorch) {
  Builder g;
  const auto d_at = [&](std::string_view text, double x, double y) {
    return at(g, derivative(g, parse(g, text, kSymbols), g.symbol("x")), x, y);
  };
  EXPECT_EQ(d_at("abs(x)", 0, 0), 0);
  EXPECT_EQ(d_at("max(x, y)", 1, 1), 0.5);
  EXPECT_EQ(d_at("min(x, y)", 1, 1), 0.5);
  EXPECT_EQ(d_at("relu(x)", 0, 0), 0);
  EXPECT_EQ(d_at("pow(x, y)", 0, 0), 0);
  EXPECT_EQ(d_at("pow(x, y)", 0, 2), 0);
  EXPECT_EQ(d_at("x * sigmoid(x)", -800, 0), 0);
}

TEST(Derivative, OfAMaskIsAnError) {
  Builder g;
  EXPECT_THROW(derivative(g, parse(g, "x > y", kSymbols), g.symbol("x")), Error);
}

TEST(Derivative, TwiceIsTheSecondDerivative) {
  Builder g;
  const NodeId x = g.symbol("x");
  const NodeId root = parse(g, "x * x * x + exp(2 * x)", kSymbols);
  const NodeId second = derivative(g, derivative(g, root, x), x);
  EXPECT_NEAR(at(g, second, 2, 0), 12 + 4 * std::exp(4.0), 1e-12 * 250);
}

TEST(Simplify, FoldsAndDropsWhatKeepsEveryBit) {
  Builder g;
  const auto simple = [&](std::string_view text) {
    return to_string(g, simplify(g, parse(g, text, kSymbols)));
  };
  EXPECT_EQ(simple("x * 1"), "x");
  EXPECT_EQ(simple("1 * x / 1 - 0"), "x");
  EXPECT_EQ(simple("-(-x)"), "x");
  EXPECT_EQ(simple("2 * 3 + 4"), "10");
  EXPECT_EQ(simple("1 / 2"), "0.5");
  EXPECT_EQ(simple("x - -y"), "x + y");
  EXPECT_EQ(simple("where(x > 0, y, y)"), "y");
  EXPECT_EQ(simple("where(!(x > 0), x, y)"), "where(x > 0, y, x)");
  EXPECT_EQ(simple("x * -1"), "-x");
}

TEST(Simplify, KeepsWhatIeeeArithmeticNeeds) {
  Builder g;
  const auto simple = [&](std::string_view text) {
    return to_string(g, simplify(g, parse(g, text, kSymbols)));
  };
  EXPECT_EQ(simple("x * 0"), "x * 0");  // NaN, infinities, signs
  EXPECT_EQ(simple("x + 0"), "x + 0");  // -0 + 0 is 0
  EXPECT_EQ(simple("x - x"), "x - x");  // infinities
  EXPECT_EQ(simple("x / x"), "x / x");  // 0, NaN
  EXPECT_EQ(simple("0 - x"), "0 - x");  // 0 - 0 is not -0
  EXPECT_EQ(simple("x + y - y"), "x + y - y");
  EXPECT_EQ(simple("x == x"), "x == x");
}

}  // namespace
}  // namespace tenon::expr
