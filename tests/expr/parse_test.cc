#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tenon/core/error.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/parse.h"

namespace tenon::expr {
namespace {

const Symbol kParsedSymbols[] = {{"self", SymbolKind::Tensor},
                                 {"other", SymbolKind::Tensor},
                                 {"mask", SymbolKind::MaskTensor},
                                 {"alpha", SymbolKind::Scalar}};

double value(std::string_view text, double self = 3, double other = 5, double mask = 1, double alpha = 0.5) {
  Builder g;
  const NamedValue values[] = {{"self", self}, {"other", other}, {"mask", mask}, {"alpha", alpha}};
  return evaluate(g, parse(g, text, kParsedSymbols), values);
}

std::string error_of(std::string_view text) {
  Builder g;
  try {
    parse(g, text, kParsedSymbols);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    return e.what();
  }
  return "no error";
}

TEST(Parse, PrecedenceAndAssociativity) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("10 - 4 - 3"), 3);
  EXPECT_EQ(value("12 / 4 / 3"), 1);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("-self * 2"), -6);
  EXPECT_EQ(value("2 ** 3 ** 2"), 512);
  EXPECT_EQ(value("-2 ** 2"), -4);
  EXPECT_EQ(value("2 ** -1"), 0.5);
  EXPECT_EQ(value("1 + 1 < 3 & 2 > 1"), 1);
  EXPECT_EQ(value("self == 3 | other < 0 & mask"), 1);
  EXPECT_EQ(value("!(self > other)"), 1);
  EXPECT_EQ(value("6 & 3 ^ 8 | 1"), 11);
}

double defined(std::string_view text) {
  Builder g;
  const Binding names[] = {{"x", g.literal(2.0)}};
  return evaluate(g, parse_bound(g, text, names), {});
}

TEST(Parse, DefinitionsRepeatUpwardAndDownward) {
  EXPECT_EQ(defined("let s = 0; for k = 1 to 4 { let s = s + k; } s * x"), 20);
  EXPECT_EQ(defined("let s = 0; for k = 3 to 1 { let t = 10 * s; let s = t + k; } s"), 321);
  EXPECT_EQ(defined("let s = 1; for i = 1 to 2 { for k = 1 to 3 { let s = s * 2; } } s"), 64);
}

TEST(Parse, RepetitionsAreOfDefinitionsAlone) {
  EXPECT_NE(error_of("for k = 1 to 4 { let s = k; } s"), "no error");
  const auto message = [](std::string_view text) -> std::string {
    try {
      defined(text);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_NE(message("for k = x to 4 { } 1").find("malformed number"), std::string::npos);
  EXPECT_NE(message("for k = 0.5 to 4 { } 1").find("expected a whole number"), std::string::npos);
  EXPECT_NE(message("for k = 1 until 4 { } 1").find("expected `to`"), std::string::npos);
  EXPECT_NE(message("for k = 1 to 4 { let s = k; s").find("expected '}'"), std::string::npos);
}

TEST(Parse, Literals) {
  EXPECT_EQ(value("1e-3"), 1e-3);
  EXPECT_EQ(value(".5"), 0.5);
  EXPECT_EQ(value("0x1.8p+1"), 3);
  EXPECT_EQ(value("0xff"), 255);
  EXPECT_TRUE(std::signbit(value("-0.0")));
  EXPECT_EQ(value("-9223372036854775808"), -0x1p63);
  EXPECT_EQ(value("inf"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value("nan")));
  EXPECT_EQ(value("pi"), 3.14159265358979323846);
}

TEST(Parse, WhereMasksAndLet) {
  EXPECT_EQ(value("where(self > other, self, other)"), 5);
  EXPECT_EQ(value("self * (other > 1)"), 3);
  EXPECT_EQ(value("where(self, 1, 2)"), 1);
  EXPECT_EQ(value("where(mask != (self > 4), 1, 2)"), 1);
  EXPECT_EQ(value("let t = self + other; let u = t * t; u - t"), 56);
  EXPECT_EQ(value("poly(self, 1, 2, 3)"), 1 + 2 * 3 + 3 * 9);
}

TEST(Parse, SharesEqualSubexpressions) {
  Builder g;
  const NodeId root = parse(g, "exp(self + other) * exp(self + other)", kParsedSymbols);
  EXPECT_EQ(g.args(root)[0], g.args(root)[1]);
}

TEST(Parse, ErrorsPointAtTheColumn) {
  EXPECT_EQ(error_of("self * sigmod(self)"),
            "expression: unknown function 'sigmod', did you mean 'sigmoid'? at column 8\n"
            "  self * sigmod(self)\n"
            "         ^");
  EXPECT_EQ(error_of("self + othr"),
            "expression: unknown name 'othr', did you mean 'other'? at column 8\n"
            "  self + othr\n"
            "         ^");
  EXPECT_EQ(error_of("self +"),
            "expression: expected an operand, got the end at column 7\n"
            "  self +\n"
            "        ^");
  EXPECT_EQ(error_of("exp(self, other)"),
            "expression: `exp` takes 1 argument, got 2 at column 1\n"
            "  exp(self, other)\n"
            "  ^");
  EXPECT_EQ(error_of("(self"),
            "expression: expected ')', got the end at column 6\n"
            "  (self\n"
            "       ^");
  EXPECT_EQ(error_of("self < 1 < 2"),
            "expression: comparisons do not chain; use (a < b) & (b < c) at column 10\n"
            "  self < 1 < 2\n"
            "           ^");
  EXPECT_EQ(error_of("1.5.2"), "expression: malformed number at column 1\n  1.5.2\n  ^");
  EXPECT_EQ(error_of("99999999999999999999"),
            "expression: number out of range at column 1\n  99999999999999999999\n  ^");
  EXPECT_EQ(error_of("self other"), "expression: unexpected 'o' at column 6\n  self other\n       ^");
  EXPECT_NE(error_of("").find("column 1"), std::string::npos);
  EXPECT_NE(error_of("self $ 2").find("'$'"), std::string::npos);
}

TEST(Parse, InternalPartsOfDefinitionsAreNotInTheLanguage) {
  EXPECT_NE(error_of("bits(self)").find("unknown function 'bits'"), std::string::npos);
  EXPECT_NE(error_of("log_core(self, 0, 0)").find("unknown function"), std::string::npos);
}

TEST(Parse, HostileTextIsAnErrorNotACrash) {
  EXPECT_NE(error_of(std::string(4000, '(')).find("nested too deeply"), std::string::npos);
  EXPECT_NE(error_of(std::string(4000, '-') + "self").find("nested too deeply"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, '1')).find("at most 8192"), std::string::npos);
  std::string chain = "self";
  while (chain.size() < 8000) chain += "+self";
  Builder g;
  const NodeId root = parse(g, chain, kParsedSymbols);
  EXPECT_NO_THROW(check(g, root, Type::F32));
  EXPECT_NO_THROW(to_string(g, root));
}

TEST(Print, TextParsesBackToTheSameNode) {
  for (const char* text :
       {"self * sigmoid(self)", "where(self > 0, self, alpha * expm1(self))", "-(self - other) - (self - 1)",
        "self / (other / 2)", "(self < 1) & (mask | !(other == 2))", "-(-self)", "-(2)", "--2",
        "abs(self) ** -2.5", "fma(self, 1e30, -0.0)", "let t = exp(self * other); t / (1 + t) - t",
        "(self + other) * 2 - nan * inf"}) {
    Builder g;
    const NodeId root = parse(g, text, kParsedSymbols);
    const std::string printed = to_string(g, root);
    EXPECT_EQ(parse(g, printed, kParsedSymbols), root) << text << " -> " << printed;
  }
}

TEST(Print, NamesSharedSubexpressions) {
  Builder g;
  const NodeId root = parse(g, "exp(self * other) / (1 + exp(self * other))", kParsedSymbols);
  EXPECT_EQ(to_string(g, root), "let t1 = exp(self * other); t1 / (1 + t1)");
}

TEST(Types, RefuseWhatAComputeTypeCannotRun) {
  Builder g;
  const auto message = [&](std::string_view text, Type type) -> std::string {
    try {
      check(g, parse(g, text, kParsedSymbols), type);
      return "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Type);
      return e.what();
    }
  };
  EXPECT_EQ(message("exp(self)", Type::I64), "expression: `exp` needs a floating type, got int64");
  EXPECT_EQ(message("self / other", Type::I32), "expression: `div` needs a floating type, got int32");
  EXPECT_EQ(message("self & other", Type::F32), "expression: `and` needs integers or masks, got float32");
  EXPECT_EQ(message("self * 0.5", Type::I64),
            "expression: literal 0.5 is not a whole number, as int64 needs");
  EXPECT_EQ(message("self * 2.0 + floor(self)", Type::I64), "no error");
  EXPECT_EQ(message("self + 5000000000", Type::I32), "expression: literal 5000000000 does not fit 32 bits");
  EXPECT_TRUE(runs_on_integers(g, parse(g, "abs(self) * sign(other)", kParsedSymbols)));
  EXPECT_FALSE(runs_on_integers(g, parse(g, "tanh(self)", kParsedSymbols)));
}

TEST(Builder, SymbolsAndUses) {
  Builder g;
  const NodeId root = parse(g, "where(mask, self, 0) * alpha", kParsedSymbols);
  EXPECT_TRUE(uses(g, root, g.find_symbol("alpha")));
  EXPECT_FALSE(uses(g, root, g.find_symbol("other")));
  EXPECT_FALSE(uses(g, root, kNoNode));
  EXPECT_EQ(symbols_of(g, std::span(&root, 1)).size(), 3u);
  EXPECT_THROW(g.symbol("self", SymbolKind::Scalar), Error);
  EXPECT_EQ(g.find_symbol("nobody"), kNoNode);
}

}  // namespace
}  // namespace tenon::expr
