// Graphs as text: what is printed parses back to the same text and key; what is no graph is refused with its
// place.
#include "tenon/graph/text/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tenon/core/error.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/verify.h"
#include "tests/graph/samples.h"

namespace tenon::graph::testing {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string refusal(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Value) << error.what();
    return error.what();
  }
  return "";
}

TEST(GraphText, ComesBackToTheSameTextAndKey) {
  for (const char* text : {kCalls, kRegions, "graph 1\n"}) {
    const Graph graph = parse(text);
    EXPECT_EQ(to_string(graph), text);
    EXPECT_EQ(key_of(parse(to_string(graph))), key_of(graph));
    EXPECT_EQ(to_string(graph.copy()), text);
    EXPECT_EQ(verify(graph).sentence, "");
  }
}

TEST(GraphText, CommentsAndWhiteSpaceMeanNothing) {
  std::string spaced = replaced(kCalls, "aten::relu_(", "  aten::relu_ (\n ");
  spaced = replaced(spaced, "number $1", "# a comment (\nnumber $1");
  EXPECT_EQ(to_string(parse(spaced)), kCalls);
}

TEST(GraphText, AttributesOfEveryKindComeBack) {
  const std::string text = R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu output
storage %2 4096 cpu output
storage %3 4096 cpu output
storage %4 4096 cpu output
%1.0 float32[2, 3] = aten::full([2, 3], (1.5, -inf), float32, strided, cpu, false)
%2.0 float64[2] = aten::add.Scalar(%0.0 float64[2], true, 1e-05)
%3.0 float32[4, 4] = aten::_to_copy(%0.0 float32[4, 4], none, none, none, none, false, contiguous_format)
%4.0 int64[1, 1] = aten::sum.dim_IntList(%0.0 int64[2, 2], [], true, none)
)";
  EXPECT_EQ(to_string(parse(text)), text);
}

TEST(GraphText, QuotedTextsKeepEveryByte) {
  const std::string text = replaced(kCalls, "\"tanh\"", "\"ta\\\"n\\\\h\\x0a\"");
  EXPECT_EQ(to_string(parse(text)), text);
}

TEST(GraphKey, TellsWhatComputesOtherwiseApart) {
  const expr::Key key = key_of(parse(kCalls));
  const std::pair<const char*, const char*> changes[] = {
      {"storage %1 4096 cpu output", "storage %1 4096 cpu"},
      {"storage %0 4096 cpu", "storage %0 8192 cpu"},
      {"number $0 float", "number $0 int"},
      {"aten::relu_", "aten::neg_"},
      {"float32[32, 32]:[1, 32]", "float32[32, 32]"},
      {"[-2]+7), $1", "[-2]+7, $1"},
      {", -1)", ", 1)"},
      {"\"tanh\"", "\"none\""},
      {" number, 1)", ", 1)"},
      {"float32[] number, 1", "float32[] number, 1.0"},
      {"%4.0 float32[32, 64] = aten::cat([%1.1 float32[32, 32], %3.0 float32[32, 32]]",
       "%4.0 float32[32, 64] = aten::cat([%3.0 float32[32, 32], %1.1 float32[32, 32]]"},
  };
  for (const auto& [from, to] : changes) {
    if (std::string_view(kCalls).find(from) == std::string_view::npos) continue;
    EXPECT_FALSE(key_of(parse(replaced(kCalls, from, to))) == key) << from;
  }
}

TEST(GraphKey, IsTheSameHoweverStoragesAndNumbersAreNumbered) {
  const std::string text = R"(graph 1
storage %0 64 cpu input
storage %1 64 cpu output
number $0 float
number $1 int
%1.0 float32[4] = aten::add.Scalar(%0.0 float32[4], $0, $1)
)";
  const std::string other = R"(graph 1
storage %0 16 cpu input
storage %1 64 cpu output
storage %2 64 cpu input
number $0 int
number $1 float
%1.0 float32[4] = aten::add.Scalar(%2.0 float32[4], $1, $0)
)";
  EXPECT_EQ(key_of(parse(text)), key_of(parse(other)));
}

TEST(GraphKey, NamesAndLinesOfRegionsDoNotCount) {
  EXPECT_EQ(key_of(parse(replaced(kRegions, "region_0_mul_relu", "other"))), key_of(parse(kRegions)));
  EXPECT_FALSE(key_of(parse(replaced(kRegions, "relu(mul(x0, n0))", "neg(mul(x0, n0))"))) ==
               key_of(parse(kRegions)));
}

TEST(GraphText, WhatIsNoGraphIsRefusedWithItsPlace) {
  struct Case {
    const char *from, *to, *says;
  };
  const Case cases[] = {
      {"graph 1", "graph 2", "line 1, column 7: this is not version 1"},
      {"storage %1 4096", "storage %2 4096", "line 3, column 10: storages are numbered in order: this is %1"},
      {"4096 cpu input", "4096 gpu7 input", "line 2, column 17: expected a device that is there"},
      {"number $0 float", "number $0 half", "expected bool, int, float or complex"},
      {"aten::relu_", "aten::nothing_", "line 11, column 30: there is no operator 'aten::nothing_'"},
      {"%1.1(%1.0)", "%1.0(%1.0)", "this version is written before"},
      {"%1.0 float32[32, 32] = aten::mul.Scalar(%0.0", "%1.0 float32[32, 32] = aten::mul.Scalar(%3.0",
       "line 10, column 41: this version is not written before"},
      {"aten::mul.Scalar(%0.0 ", "aten::mul.Scalar(%1.0 ", "this version is not written before"},
      {"%2.1(%2.0) float32[4]:[2]+1", "%9.1(%2.0) float32[4]:[2]+1", "there is no such storage"},
      {"$0, $1)", "$0, $7)", "there is no such number"},
      {"$0, $1)", "$0)", "expected ','"},
      {"$0, $1)", "$0, $1, none)", "expected ')'"},
      {"\"tanh\"", "tanh", "expected a quoted text"},
      {"\"tanh\"", "\"tanh", "a quoted text has no end"},
      {"], -1)", "], minus)", "expected a whole number"},
      {"float32[32, 64]", "float33[32, 64]", "expected a dtype"},
      {"float32[32, 64]", "float32[32, 6400]",
       "line 15, column 1: a tensor lies in its storage: storage %4 has 8192 bytes"},
      {"float32[32, 64]", "float32[4611686018427387904, 64]", "a tensor lies in its storage"},
      {"float32[32, 64]", "float32[-4, 64]", "a tensor lies in its storage"},
      {"[2]+1, $0", "[2]-3, $0", "a tensor lies in its storage"},
      {"_ float32[4]:[-2]+7", "_ float32[4]:[-2]+6", "a written argument is read and written at one place"},
      {"aten::cat([%1.1", "aten::cat([none, %1.1", "only lists of optional tensors have absent ones"},
      {"aten::add.Tensor(%1.1", "aten::add.Tensor(%1.0",
       "a node reads the version that its storage has then"},
      {"aten::add.Tensor(%1.1", "aten::add.Tensor(_", "an argument that is not written is read"},
      {"aten::add.Tensor(%1.1 float32[32, 32]", "aten::add.Tensor(none",
       "an argument is of its schema's type"},
      {"storage %3 4096 cpu", "storage %3 4096 cpu output\nstorage %9 1 cpu",
       "storages are numbered in order"},
      {"storage %5 4096 cpu output", "storage %5 4096 cpu output\nstorage %6 1 cpu output",
       "an output has a last version: storage %6 has none"},
      {"%5.0 float32[32, 32] = ", "", "a node has a def for each result"},
  };
  for (const Case& c : cases) {
    const std::string said = refusal(replaced(kCalls, c.from, c.to));
    EXPECT_NE(said.find(c.says), std::string::npos) << c.from << " -> " << c.to << "\nsaid " << said;
  }
}

TEST(GraphText, RegionsThatBreakARuleAreRefused) {
  struct Case {
    const char *from, *to, *says;
  };
  const Case cases[] = {
      {"region_flat", "region_rows", ""},
      {"region_1_neg_mm_relu", "region_0_mul_relu", "the name of a region is its own"},
      {"in x0: float32; number", "in x0: float64; number", "line 13, column 21: expression: rule L3"},
      {"body (0)", "body (1)", "a part reads what its region's node reads"},
      {"numbers (0.0)", "numbers (0.1)", "line 12, column 12: the member has no such number"},
      {"numbers (0.0)", "numbers (7.0)", "there is no such member"},
      {"(0) (0) (0)", "(0) (1) (0)", "a number of a part is one of its region's"},
      {"(0) (0) (0)", "(0) () (0)", "a part has a number for each of its expression"},
      {"(0) (0) (0)", "(0) (0) (1)", "a part stores what its region's node writes"},
      {"(0) (0) (0)", "(0) (0) ()", "a part stores what its region's node writes"},
      {"out float32: relu(mul", "out float32 relu(mul", "expected ':'"},
      {"relu(mul(x0, n0))", "nothing(mul(x0, n0))", "line 13, column"},
      {"anchor 1", "anchor 5", "the anchor of a region is one of its members"},
      {"  anchor 1\n", "", "the anchor of a region is one of its members"},
      {"  prologue\n", "", "a region has a prologue for each tensor of its anchor: 2, not 1"},
      {"body (0)", "body (anchor)", "only an epilogue reads the anchor's result"},
      {"  %2.0 float32[4, 4] = aten::relu(%1.0 float32[4, 4])\n", "", "no node writes %2.0"},
      {"%3.0 float32[4, 4], %2.0 float32[4, 4]:[1, 4])", "%3.0 float32[4, 4], %2.0 float32[4, 4]:[2, 1])",
       "a region's node reads what its members read"},
      {"%5.0 float32[4, 4] = aten::relu", "%5.0 float32[2, 4] = aten::relu", "the geometry of its member's"},
      {"}\n%5", "%5", "line"},
      {"aten::neg(%0.0 float32[4, 4])", "tenon::region_flat([%0.0 float32[4, 4]], [])",
       "a member of a region is no region"},
  };
  for (const Case& c : cases) {
    if (c.says[0] == '\0') continue;
    const std::string said = refusal(replaced(kRegions, c.from, c.to));
    EXPECT_NE(said.find(c.says), std::string::npos) << c.from << " -> " << c.to << "\nsaid " << said;
  }
}

TEST(GraphText, EveryPrefixIsRefusedOrAGraph) {
  for (const std::string_view text : {kCalls, kRegions}) {
    for (size_t n = 0; n < text.size(); ++n) {
      try {
        const Graph graph = parse(text.substr(0, n));
        EXPECT_EQ(verify(graph).sentence, "");
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Value) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace tenon::graph::testing
