#include <gtest/gtest.h>

#include <iterator>
#include <random>
#include <string>

#include "tenon/schema/schema.h"
#include "tests/schema/golden.h"

namespace tenon::schema {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_schema(text);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value);
    return e.what();
  }
  return "no error";
}

std::string first_line(std::string_view text) {
  const std::string message = error_of(text);
  return message.substr(0, message.find('\n'));
}

TEST(SchemaError, ShowsTheTextAndACaretUnderTheColumn) {
  EXPECT_EQ(error_of("myadd(Tensor ) -> Tensor"),
            "schema: expected an argument name at column 14, got ')'\n"
            "  myadd(Tensor ) -> Tensor\n"
            "               ^");
  EXPECT_EQ(error_of("f(int x"),
            "schema: expected ',' or ')' after an argument at column 8, got the end of the text\n"
            "  f(int x\n"
            "         ^");
}

TEST(SchemaError, CaretStaysUnderTheColumnPastTabsAndWideCharacters) {
  EXPECT_EQ(error_of("f(str x=\"\u00e9\",\tfoo\n)"),
            "schema: unknown type 'foo' at column 14\n"
            "  f(str x=\"\u00e9\", foo )\n"
            "               ^");
}

TEST(SchemaError, NamesWhatWasExpected) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "schema: expected an operator name at column 1, got the end of the text"},
      {"9f() -> ()", "schema: expected an operator name at column 1, got '9f'"},
      {"a::(Tensor x) -> ()", "schema: expected an operator name after '::' at column 4, got '('"},
      {"a::b::c() -> ()", "schema: expected '(' before the arguments at column 5, got ':'"},
      {"f.() -> ()", "schema: expected an overload name after '.' at column 3, got '('"},
      {"f.default() -> ()",
       "schema: overload name 'default' at column 3 is taken by the overload without a name"},
      {"f.__x() -> ()", "schema: overload name '__x' at column 3 must not start with two underscores"},
      {"f(tensor x) -> ()", "schema: unknown type 'tensor' at column 3; did you mean 'Tensor'?"},
      {"f(Tensr x) -> ()", "schema: unknown type 'Tensr' at column 3; did you mean 'Tensor'?"},
      {"f(double x) -> ()", "schema: unknown type 'double' at column 3; did you mean 'float'?"},
      {"f(dtype x) -> ()", "schema: unknown type 'dtype' at column 3; did you mean 'ScalarType'?"},
      {"f(Banana x) -> ()", "schema: unknown type 'Banana' at column 3"},
      {"f(Tensor x, ) -> ()", "schema: expected a type at column 13, got ')'"},
      {"f(Tensor x, *) -> ()",
       "schema: expected ',' and a keyword-only argument after '*' at column 14, got ')'"},
      {"f(*, int x, *, int y) -> ()", "schema: second '*' at column 13; arguments turn keyword-only once"},
      {"f(*, *, int y) -> ()", "schema: second '*' at column 6; arguments turn keyword-only once"},
      {"f(int x, Tensor x) -> ()", "schema: second argument named 'x' at column 17"},
      {"f(int x=1, int y) -> ()",
       "schema: argument 'y' without a default at column 16 follows 'x', which has one"},
      {"f(int x=None) -> ()", "schema: default None at column 9 needs an optional type; write int?"},
      {"f(int x=1.5) -> ()", "schema: expected a default of type int at column 9, got '1.5'"},
      {"f(bool x=true) -> ()", "schema: expected a default of type bool at column 10, got 'true'"},
      {"f(int[] x=1) -> ()", "schema: expected a default of type int[] at column 11, got '1'"},
      {"f(int[2] x=[1, 2, 3]) -> ()", "schema: default of 3 values for int[2] at column 12"},
      {"f(int[] x=[1, 2) -> ()", "schema: expected ',' or ']' at column 16, got ')'"},
      {"f(Tensor x=1) -> ()", "schema: type Tensor has no default but None at column 12"},
      {"f(Layout x=round) -> ()", "schema: expected a default of type Layout at column 12, got 'round'"},
      {"f(int x=99999999999999999999) -> ()",
       "schema: number '99999999999999999999' out of range at column 9; an int holds 64 bits"},
      {"f(float x=1e) -> ()", "schema: expected an exponent at column 13, got ')'"},
      {"f(float x=-y) -> ()", "schema: expected a number after '-' at column 12, got 'y'"},
      {"f(str x=\"abc) -> ()", "schema: unterminated string at column 9"},
      {"f(int[0] x) -> ()", "schema: list size '0' at column 7 is not between 1 and 64"},
      {"f(int[99999999999] x) -> ()", "schema: list size '99999999999' at column 7 is not between 1 and 64"},
      {"f(int(a!) x) -> ()", "schema: alias annotation on int at column 6; only Tensor has memory"},
      {"f(Tensor(!) x) -> ()", "schema: expected an alias set at column 10, got '!'"},
      {"f(Tensor(a x) -> ()", "schema: expected ')' after an alias annotation at column 12, got 'x'"},
      {"f(Tensor x)", "schema: expected '->' at column 12, got the end of the text"},
      {"f(Tensor x) -> (Tensor, )", "schema: expected a type at column 25, got ')'"},
      {"f(Tensor x) -> Tensor Tensor y", "schema: expected the end of the schema at column 30, got 'y'"},
      {"f(Tensor x) -> (Tensor y, Tensor y)", "schema: second return named 'y' at column 34"},
      {"f(Tensor x) -> Tensor(a)", "schema: returned alias set 'a' at column 22 belongs to no argument"},
      {"f(Tensor(a) x) -> Tensor(a!)",
       "schema: returned alias set 'a!' at column 25 is written by no argument; write (a!) on the argument "
       "too"},
  };
  for (const auto& [text, message] : kCases) EXPECT_EQ(first_line(text), message) << text;
}

/// Parses; anything but success or an Error{Value} whose column lies in the text fails the test.
void check_survives(const std::string& text) {
  try {
    const FunctionSchema schema = parse_schema(text);
    const std::string printed = to_string(schema);
    EXPECT_EQ(to_string(parse_schema(printed)), printed) << text;
    for (const Argument& a : schema.arguments) {
      EXPECT_FALSE(cpp_type(a).empty());
      EXPECT_FALSE(python_type(a).empty());
      EXPECT_EQ(cpp_default(a).empty(), !a.default_value.given() || cpp_type(a) == "Tensor&");
      EXPECT_EQ(python_default(a).empty(), !a.default_value.given());
    }
    EXPECT_FALSE(cpp_return_type(schema).empty());
    EXPECT_FALSE(python_return_type(schema).empty());
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Value) << text;
    const std::string message = e.what();
    // The last line is the caret's: two spaces, then column - 1 more.
    const size_t caret = message.size() - message.rfind('\n') - 1 - 2;
    EXPECT_GE(caret, 1u) << message;
    EXPECT_LE(caret, text.size() + 1) << message;
    EXPECT_NE(message.find(" at column " + std::to_string(caret)), std::string::npos) << message;
  }
}

TEST(SchemaError, EveryTruncationParsesOrPointsIntoTheText) {
  for (const std::string text : kGolden) {
    for (size_t n = 0; n <= text.size(); ++n) check_survives(text.substr(0, n));
  }
}

TEST(SchemaError, EveryMutationParsesOrPointsIntoTheText) {
  const std::string kPieces[] = {"(",
                                 ")",
                                 "[",
                                 "]",
                                 "?",
                                 "*",
                                 "!",
                                 "->",
                                 "=",
                                 ",",
                                 ".",
                                 "::",
                                 "|",
                                 " ",
                                 "\"",
                                 "'",
                                 "\\",
                                 "-",
                                 "None",
                                 "True",
                                 "1",
                                 "1e",
                                 "9999999999",
                                 "inf",
                                 "Tensor",
                                 "int",
                                 "x",
                                 "\n",
                                 std::string(1, '\0'),
                                 "\xff",
                                 "\xc3\xa9",
                                 "[]",
                                 "(a!)",
                                 "Mean",
                                 "cpu:1"};
  std::mt19937 rng(20240607);
  const auto below = [&](size_t n) { return static_cast<size_t>(rng() % n); };
  for (int round = 0; round < 6000; ++round) {
    std::string text = kGolden[below(std::size(kGolden))];
    for (size_t edits = 1 + below(4); edits > 0; --edits) {
      const size_t at = below(text.size() + 1);
      const size_t length = std::min(below(6), text.size() - at);
      switch (below(4)) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, kPieces[below(std::size(kPieces))]);
          break;
        case 2:
          text.replace(at, length, kPieces[below(std::size(kPieces))]);
          break;
        default:
          text.insert(below(text.size() + 1), text.substr(at, 20));
          break;
      }
    }
    check_survives(text);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace tenon::schema
