// Which regions the pipeline forms of small programs, in each position of the matcher.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tenon/core/error.h"
#include "tenon/graph/fuse/pipeline.h"
#include "tenon/graph/ir/key.h"
#include "tenon/graph/ir/verify.h"
#include "tenon/graph/text/text.h"

namespace tenon::graph::testing {
namespace {

// What the regions of a program are made of: "flat(mul, add)", by position.
std::string fusions(std::string_view text, MatcherPosition position = MatcherPosition::AfterFuser,
                    Chooser* chooser = nullptr, bool rows = false) {
  Graph graph = parse(text);
  const FusionReport report = fuse(graph, {.position = position, .chooser = chooser, .rows = rows});
  EXPECT_EQ(verify(graph).sentence, "") << to_string(graph);
  EXPECT_EQ(to_string(parse(to_string(graph))), to_string(graph));
  EXPECT_EQ(key_of(parse(to_string(graph))), key_of(graph));
  std::string summary;
  for (const FusionReport::Fusion& f : report.fusions) {
    if (!summary.empty()) summary += " ";
    summary += fmt::format("{}(", name(f.kind));
    for (size_t i = 0; i < f.operators.size(); ++i) {
      const std::string op = f.operators[i].full_name();
      summary += (i ? ", " : "") + op.substr(6, op.find('.') - 6);
    }
    summary += ")";
  }
  return summary;
}

constexpr const char* kHead = "graph 1\nstorage %0 4096 cpu input output\nstorage %1 4096 cpu input\n";

TEST(Fuse, AChainIsOneRegionThatStoresItsEndAlone) {
  const std::string text = std::string(kHead) + R"(storage %2 4096 cpu
storage %3 4096 cpu output
number $0 float
number $1 int
%2.0 float32[32, 32] = aten::mul.Scalar(%0.0 float32[32, 32], $0)
%3.0 float32[32, 32] = aten::add.Tensor(%2.0 float32[32, 32], %1.0 float32[32, 32], $1)
)";
  EXPECT_EQ(fusions(text), "flat(mul, add)");
  Graph graph = parse(text);
  const FusionReport report = fuse(graph);
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.defs(graph.nodes[0]).size(), 1u);
  EXPECT_EQ(report.fusions[0].bytes, 3 * 4096);
  EXPECT_EQ(report.fusions[0].bytes_apart, 5 * 4096);
  EXPECT_EQ(report.fusions[0].name, "region_0_mul_add");
}

TEST(Fuse, WhatIsReadLaterIsStoredToo) {
  const std::string text = std::string(kHead) + R"(storage %2 4096 cpu output
storage %3 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%3.0 float32[32, 32] = aten::neg(%2.0 float32[32, 32])
)";
  Graph graph = parse(text);
  fuse(graph);
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.defs(graph.nodes[0]).size(), 2u);
}

TEST(Fuse, CallsThatShareNothingStayApart) {
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 4096 cpu output
storage %3 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%3.0 float32[32, 32] = aten::neg(%1.0 float32[32, 32])
)"),
            "");
}

TEST(Fuse, CallsThatReadOneTensorAreOneRegion) {
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 4096 cpu output
storage %3 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%3.0 float32[32, 32] = aten::neg(%0.0 float32[32, 32])
)"),
            "flat(exp, neg)");
}

TEST(Fuse, AnotherViewOfWhatIsWrittenIsNotJoined) {
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 4096 cpu
storage %3 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%3.0 float32[32, 32] = aten::neg(%2.0 float32[32, 32]:[1, 32])
)"),
            "");
}

TEST(Fuse, WritesInPlaceAreJoinedWhereTheyAreReadAtTheSamePlaces) {
  const std::string text = std::string(kHead) + R"(storage %2 4096 cpu output
number $0 float
number $1 int
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%0.1(%0.0) float32[32, 32] = aten::add_.Tensor(%0.0 float32[32, 32], %2.0 float32[32, 32], $1)
%0.2(%0.1) float32[32, 32] = aten::mul_.Scalar(%0.1 float32[32, 32], $0)
)";
  EXPECT_EQ(fusions(text), "flat(exp, add_, mul_)");
}

TEST(Fuse, AStepBetweenThatDependsOnTheFirstKeepsThemApart) {
  // cumsum reads what exp writes; neg could only join exp behind it.
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 4096 cpu
storage %3 4096 cpu
storage %4 4096 cpu output
number $0 int
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%3.0 float32[32, 32] = aten::cumsum(%2.0 float32[32, 32], 0, none)
%4.0 float32[32, 32] = aten::add.Tensor(%2.0 float32[32, 32], %3.0 float32[32, 32], $0)
)"),
            "");
  // A step that writes what exp reads.
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 4096 cpu
storage %3 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%0.1(%0.0) float32[4] = aten::relu_(%0.0 float32[4])
%3.0 float32[32, 32] = aten::neg(%2.0 float32[32, 32])
)"),
            "");
  // One that has nothing to do with either moves up.
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 4096 cpu
storage %3 4096 cpu output
storage %4 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%4.0 float32[32, 32] = aten::cumsum(%1.0 float32[32, 32], 0, none)
%3.0 float32[32, 32] = aten::neg(%2.0 float32[32, 32])
)"),
            "flat(exp, neg)");
}

TEST(Fuse, ARowThatIsBroadcastJoinsNothing) {
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 128 cpu
storage %3 4096 cpu output
number $0 int
%2.0 float32[32] = aten::exp(%1.0 float32[32])
%3.0 float32[32, 32] = aten::add.Tensor(%0.0 float32[32, 32], %2.0 float32[32], $0)
)"),
            "");
}

TEST(Fuse, WhatLeadsToNothingGoes) {
  Graph graph = parse(std::string(kHead) + R"(storage %2 4096 cpu
storage %3 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%2.1(%2.0) float32[4] = aten::relu_(%2.0 float32[4])
%3.0 float32[32, 32] = aten::neg(%1.0 float32[32, 32])
)");
  fuse(graph);
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].op.full_name(), "aten::neg");
  EXPECT_EQ(verify(graph).sentence, "");
  EXPECT_EQ(to_string(parse(to_string(graph))), to_string(graph));
}

TEST(Fuse, FillsAndCastsAreJoined) {
  EXPECT_EQ(fusions(std::string(kHead) + R"(storage %2 2048 cpu
storage %3 2048 cpu
storage %4 2048 cpu output
number $0 int
%2.0 float16[32, 32] = aten::_to_copy(%0.0 float32[32, 32], float16, none, none, none, false, none)
%3.0 float16[32, 32] = aten::zeros_like(%2.0 float16[32, 32], none, none, none, none, none)
%4.0 float16[32, 32] = aten::add.Tensor(%2.0 float16[32, 32], %3.0 float16[32, 32], $0)
)"),
            "flat(_to_copy, zeros_like, add)");
}

// Rows

std::string fusions_over_rows(std::string_view text, MatcherPosition position = MatcherPosition::AfterFuser) {
  return fusions(text, position, nullptr, true);
}

// softmax, written out.
const std::string kSoftmax = R"(graph 1
storage %0 4096 cpu input
storage %1 128 cpu
storage %2 4096 cpu
storage %3 4096 cpu
storage %4 128 cpu
storage %5 4096 cpu output
number $0 int
%1.0 float32[32, 1] = aten::amax(%0.0 float32[32, 32], [-1], true)
%2.0 float32[32, 32] = aten::sub.Tensor(%0.0 float32[32, 32], %1.0 float32[32, 1], $0)
%3.0 float32[32, 32] = aten::exp(%2.0 float32[32, 32])
%4.0 float32[32, 1] = aten::sum.dim_IntList(%3.0 float32[32, 32], [-1], true, none)
%5.0 float32[32, 32] = aten::div.Tensor(%3.0 float32[32, 32], %4.0 float32[32, 1])
)";

// A norm of rows, written out: the variance goes through calls on values of rows.
const std::string kNorm = R"(graph 1
storage %0 4096 cpu input
storage %1 128 cpu input
storage %2 128 cpu
storage %3 4096 cpu
storage %4 4096 cpu
storage %5 128 cpu
storage %6 128 cpu
storage %7 128 cpu output
storage %8 4096 cpu
storage %9 4096 cpu output
number $0 int
number $1 float
%2.0 float32[32, 1] = aten::mean.dim(%0.0 float32[32, 32], [-1], true, none)
%3.0 float32[32, 32] = aten::sub.Tensor(%0.0 float32[32, 32], %2.0 float32[32, 1], $0)
%4.0 float32[32, 32] = aten::mul.Tensor(%3.0 float32[32, 32], %3.0 float32[32, 32])
%5.0 float32[32, 1] = aten::mean.dim(%4.0 float32[32, 32], [-1], true, none)
%6.0 float32[32, 1] = aten::add.Scalar(%5.0 float32[32, 1], $1, $0)
%7.0 float32[32, 1] = aten::rsqrt(%6.0 float32[32, 1])
%8.0 float32[32, 32] = aten::mul.Tensor(%3.0 float32[32, 32], %7.0 float32[32, 1])
%9.0 float32[32, 32] = aten::mul.Tensor(%8.0 float32[32, 32], %1.0 float32[32])
)";

TEST(FuseRows, SoftmaxWrittenOutIsOneRegion) {
  EXPECT_EQ(fusions_over_rows(kSoftmax), "rows(amax, sub, exp, sum, div)");
  Graph graph = parse(kSoftmax);
  fuse(graph, {.rows = true});
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.uses(graph.nodes[0]).size(), 1u);
  EXPECT_EQ(graph.defs(graph.nodes[0]).size(), 1u);
  EXPECT_EQ(graph.nodes[0].op.full_name(), "tenon::region_rows");
  EXPECT_EQ(fusions(kSoftmax), "flat(sub, exp)");
}

TEST(FuseRows, ANormWrittenOutIsOneRegionThatKeepsAValueOfItsRows) {
  EXPECT_EQ(fusions_over_rows(kNorm), "rows(mean, sub, mul, mean, add, rsqrt, mul, mul)");
}

TEST(FuseRows, AValueOfRowsThatIsBroadcastAlongThemOtherwiseIsNotJoined) {
  // [32] of [32, 32]: what add reads is a row for all, not a value for each row.
  EXPECT_EQ(fusions_over_rows(std::string(kHead) + R"(storage %2 128 cpu
storage %3 4096 cpu output
number $0 int
%2.0 float32[32] = aten::sum.dim_IntList(%1.0 float32[32, 32], [1], false, none)
%3.0 float32[32, 32] = aten::add.Tensor(%1.0 float32[32, 32], %2.0 float32[32], $0)
)"),
            "");
}

TEST(FuseRows, SumsAlongTheFirstDimensionStayApart) {
  EXPECT_EQ(fusions_over_rows(std::string(kHead) + R"(storage %2 4096 cpu
storage %3 128 cpu output
%2.0 float32[32, 32] = aten::exp(%1.0 float32[32, 32])
%3.0 float32[32] = aten::sum.dim_IntList(%2.0 float32[32, 32], [0], false, none)
)"),
            "");
}

TEST(FuseRows, TwoReductionsOfOtherDimensionsStayApart) {
  EXPECT_EQ(fusions_over_rows(std::string(kHead) + R"(storage %2 128 cpu output
storage %3 4 cpu output
%2.0 float32[32] = aten::sum.dim_IntList(%1.0 float32[32, 32], [1], false, none)
%3.0 float32[] = aten::sum(%1.0 float32[32, 32], none)
)"),
            "");
}

// A chain with the sums of its rows behind it; `kept`: the chain's end is a result too.
std::string sums_of_rows(int64_t rows, int64_t length, bool kept) {
  const int64_t bytes = rows * length * 4;
  const std::string of = fmt::format("float32[{}, {}]", rows, length);
  return fusions_over_rows(fmt::format(
      "graph 1\nstorage %0 {1} cpu input\nstorage %1 {1} cpu\nstorage %2 {1} cpu{2}\nstorage %3 {3} cpu "
      "output\nnumber $0 int\n"
      "%1.0 {0} = aten::exp(%0.0 {0})\n"
      "%2.0 {0} = aten::add.Tensor(%1.0 {0}, %0.0 {0}, $0)\n"
      "%3.0 float32[{4}] = aten::sum.dim_IntList(%2.0 {0}, [1], false, none)\n",
      of, bytes, kept ? " output" : "", rows * 4, rows));
}

TEST(FuseRows, AReductionJoinsWhatItSavesMemoryFor) {
  EXPECT_EQ(sums_of_rows(64, 512, false), "rows(exp, add, sum)");
  EXPECT_EQ(sums_of_rows(64, 512, true), "flat(exp, add)") << "it is stored anyway";
  EXPECT_EQ(sums_of_rows(64, 64, false), "flat(exp, add)") << "short rows would be transposed";
  EXPECT_EQ(sums_of_rows(8, 64, false), "rows(exp, add, sum)") << "a call by itself costs more";
}

// A sum of `terms` tensors, and its rows divided by their largest element.
std::string divided_rows(int64_t rows, int64_t length, int terms) {
  const std::string of = fmt::format("float32[{}, {}]", rows, length),
                    one = fmt::format("float32[{}, 1]", rows);
  std::string storages, calls;
  int next = 0;
  const auto storage = [&](int64_t bytes, const char* use) {
    storages += fmt::format("storage %{} {} cpu{}\n", next, bytes, use);
    return next++;
  };
  const int64_t bytes = rows * length * 4;
  int sum = storage(bytes, " input");
  for (int t = 1; t < terms; ++t) {
    const int term = storage(bytes, " input"), to = storage(bytes, "");
    calls += fmt::format("%{0}.0 {3} = aten::add.Tensor(%{1}.0 {3}, %{2}.0 {3}, $0)\n", to, sum, term, of);
    sum = to;
  }
  const int most = storage(rows * 4, ""), result = storage(bytes, " output");
  calls += fmt::format("%{0}.0 {3} = aten::amax(%{1}.0 {2}, [-1], true)\n", most, sum, of, one);
  calls += fmt::format("%{0}.0 {3} = aten::div.Tensor(%{1}.0 {3}, %{2}.0 {4})\n", result, sum, most, of, one);
  return fusions_over_rows("graph 1\n" + storages + "number $0 int\n" + calls);
}

TEST(FuseRows, WhatIsReadBesideShortRowsJoinsWhereItPaysForItsTransposition) {
  EXPECT_EQ(divided_rows(64, 512, 2), "rows(add, amax, div)");
  EXPECT_EQ(divided_rows(8, 64, 2), "rows(add, amax, div)");
  EXPECT_EQ(divided_rows(64, 64, 2), "") << "neither the sum's second operand nor the quotients";
}

TEST(Fuse, ATranspositionStaysByItself) {
  const auto copied = [](int64_t n) {
    const std::string of = fmt::format("float32[{0}, {0}]", n), turned = of + fmt::format(":[1, {}]", n);
    return fusions(
        fmt::format("graph 1\nstorage %0 {0} cpu input\nstorage %1 {0} cpu\nstorage %2 {0} cpu output\n"
                    "%1.0 {1} = aten::exp(%0.0 {1})\n"
                    "%2.0 {2} = aten::clone(%1.0 {1}, none)\n",
                    n * n * 4, turned, of));
  };
  EXPECT_EQ(copied(16), "flat(exp, clone)");
  EXPECT_EQ(copied(64), "");
}

// cast and scale -> mm -> bias, gelu and the sum of each row.
TEST(FuseRows, AProductWithAReductionBehindItIsOneRegion) {
  const std::string text = R"(graph 1
storage %0 2048 cpu input
storage %1 4096 cpu input
storage %2 128 cpu input
storage %3 4096 cpu
storage %4 4096 cpu
storage %5 4096 cpu
storage %6 4096 cpu
storage %7 4096 cpu output
storage %8 128 cpu output
number $0 float
number $1 int
%3.0 float32[32, 32] = aten::_to_copy(%0.0 float16[32, 32], float32, none, none, none, false, none)
%4.0 float32[32, 32] = aten::mul.Scalar(%3.0 float32[32, 32], $0)
%5.0 float32[32, 32] = aten::mm(%4.0 float32[32, 32], %1.0 float32[32, 32]:[1, 32])
%6.0 float32[32, 32] = aten::add.Tensor(%5.0 float32[32, 32], %2.0 float32[32], $1)
%7.0 float32[32, 32] = aten::silu(%6.0 float32[32, 32])
%8.0 float32[32] = aten::sum.dim_IntList(%7.0 float32[32, 32], [1], false, none)
)";
  for (const MatcherPosition position : kMatcherPositions)
    EXPECT_EQ(fusions_over_rows(text, position), "matmul(_to_copy, mul, mm, add, silu, sum)")
        << name(position);
}

// Products

// cast and scale -> mm -> bias, gelu and what is kept for backward.
const std::string kProduct = R"(graph 1
storage %0 2048 cpu input
storage %1 4096 cpu input
storage %2 128 cpu input
storage %3 4096 cpu
storage %4 4096 cpu
storage %5 4096 cpu
storage %6 4096 cpu output
storage %7 4096 cpu output
number $0 float
number $1 int
%3.0 float32[32, 32] = aten::_to_copy(%0.0 float16[32, 32], float32, none, none, none, false, none)
%4.0 float32[32, 32] = aten::mul.Scalar(%3.0 float32[32, 32], $0)
%5.0 float32[32, 32] = aten::mm(%4.0 float32[32, 32], %1.0 float32[32, 32]:[1, 32])
%6.0 float32[32, 32] = aten::add.Tensor(%5.0 float32[32, 32], %2.0 float32[32], $1)
%7.0 float32[32, 32] = aten::relu(%6.0 float32[32, 32])
)";

TEST(Match, APrologueAndAnEpilogueWithSeveralOutputsAreOneRegionInEveryPosition) {
  for (const MatcherPosition position : kMatcherPositions) {
    EXPECT_EQ(fusions(kProduct, position), "matmul(_to_copy, mul, mm, add, relu)") << name(position);
    Graph graph = parse(kProduct);
    fuse(graph, {.position = position});
    ASSERT_EQ(graph.nodes.size(), 1u);
    EXPECT_EQ(graph.defs(graph.nodes[0]).size(), 2u);
    EXPECT_EQ(graph.nodes[0].op.full_name(), "tenon::region_matmul");
  }
}

TEST(Match, WhatTheTunerRefusesIsFusedWithoutTheProduct) {
  struct Refusing : Chooser {
    std::string refuse(const Graph&, const Node&) override { return "no engine runs it"; }
  } chooser;
  EXPECT_EQ(fusions(kProduct, MatcherPosition::AfterFuser, &chooser), "flat(_to_copy, mul) flat(add, relu)");
  EXPECT_EQ(fusions(kProduct, MatcherPosition::Alone, &chooser), "");
  Graph graph = parse(kProduct);
  const FusionReport report = fuse(graph, {.chooser = &chooser});
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].op.full_name(), "aten::mm");
  EXPECT_EQ(report.left[0].reason, "no engine runs it");
}

// Programs of which positions of the matcher make different regions.

// What the fuser joined would have to pass a step that reads the product: it is taken call by call, or not.
const std::string kStepBetween = R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu input
storage %2 4096 cpu
storage %3 4096 cpu
storage %4 4096 cpu
storage %5 4096 cpu output
%2.0 float32[32, 32] = aten::mm(%0.0 float32[32, 32], %1.0 float32[32, 32])
%3.0 float32[32, 32] = aten::relu(%2.0 float32[32, 32])
%4.0 float32[32, 32] = aten::cumsum(%2.0 float32[32, 32], 0, none)
%5.0 float32[32, 32] = aten::mul.Tensor(%3.0 float32[32, 32], %4.0 float32[32, 32])
)";

// Either product may take the sum.
const std::string kTwoProducts = R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu input
storage %2 4096 cpu
storage %3 4096 cpu
storage %4 4096 cpu output
number $0 int
%2.0 float32[32, 32] = aten::mm(%0.0 float32[32, 32], %1.0 float32[32, 32])
%3.0 float32[32, 32] = aten::mm(%1.0 float32[32, 32], %0.0 float32[32, 32])
%4.0 float32[32, 32] = aten::add.Tensor(%2.0 float32[32, 32], %3.0 float32[32, 32], $0)
)";

// What makes the operand shares its input with a call that others read.
const std::string kSharedInput = R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu input
storage %2 4096 cpu
storage %3 4096 cpu output
storage %4 4096 cpu output
%2.0 float32[32, 32] = aten::exp(%0.0 float32[32, 32])
%3.0 float32[32, 32] = aten::neg(%0.0 float32[32, 32])
%4.0 float32[32, 32] = aten::mm(%2.0 float32[32, 32], %1.0 float32[32, 32])
)";

TEST(Match, PositionsFuseOtherwiseWhereAStepStandsBetween) {
  EXPECT_EQ(fusions(kStepBetween, MatcherPosition::AfterFuser), "flat(relu, mul)");
  EXPECT_EQ(fusions(kStepBetween, MatcherPosition::BeforeFuser), "matmul(mm, relu)");
  EXPECT_EQ(fusions(kStepBetween, MatcherPosition::InFuser), "matmul(mm, relu)");
  EXPECT_EQ(fusions(kStepBetween, MatcherPosition::Alone), "matmul(mm, relu)");
}

TEST(Match, PositionsFuseOtherwiseWhereTwoProductsMeet) {
  const auto which = [](MatcherPosition position) {
    Graph graph = parse(kTwoProducts);
    return fuse(graph, {.position = position}).fusions.at(0).members;
  };
  const std::vector<NodeId> first = {0, 2}, second = {1, 2};
  EXPECT_EQ(which(MatcherPosition::AfterFuser), first);
  EXPECT_EQ(which(MatcherPosition::BeforeFuser), first);
  EXPECT_EQ(which(MatcherPosition::InFuser), second);
  EXPECT_EQ(which(MatcherPosition::Alone), first);
}

TEST(Match, PositionsFuseOtherwiseWhereAnInputIsShared) {
  EXPECT_EQ(fusions(kSharedInput, MatcherPosition::AfterFuser), "flat(exp, neg)");
  EXPECT_EQ(fusions(kSharedInput, MatcherPosition::BeforeFuser), "matmul(exp, mm)");
  EXPECT_EQ(fusions(kSharedInput, MatcherPosition::InFuser), "flat(exp, neg)");
  EXPECT_EQ(fusions(kSharedInput, MatcherPosition::Alone), "matmul(exp, mm)");
}

TEST(Match, TheComparisonSaysWhatIsOtherwiseAndWhatMovesMore) {
  const Comparison comparison = compare_positions(parse(kStepBetween));
  ASSERT_EQ(comparison.reports.size(), 4u);
  EXPECT_FALSE(comparison.keys[0] == comparison.keys[1]);
  EXPECT_EQ(comparison.keys[1], comparison.keys[2]);
  ASSERT_EQ(comparison.differences.size(), 3u);
  for (const Comparison::Difference& d : comparison.differences) EXPECT_EQ(d.bytes, 4096);
  const std::string text = to_string(comparison);
  EXPECT_NE(text.find("regression: b-A fuses otherwise than a and moves 4096 bytes more"), std::string::npos)
      << text;
  EXPECT_NE(text.find("position a: 1 fusions, 3 steps"), std::string::npos) << text;
  EXPECT_NE(text.find("region_0_mm_relu (matmul): aten::mm, aten::relu"), std::string::npos) << text;
  EXPECT_NE(text.find("left aten::relu: a step between them depends on the first"), std::string::npos)
      << text;

  EXPECT_EQ(comparison.times.size(), 4u);
  EXPECT_EQ(text.find("not timed"), std::string::npos) << text;
  for (size_t at = 0, n = 0; n < 4; ++n) {
    at = text.find("  planned in ", at + 1);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_NE(text.find(" us, run in ", at), std::string::npos) << text;
  }
  EXPECT_NE(text.find("4096 bytes more; it runs in "), std::string::npos) << text;

  const Comparison better = compare_positions(parse(kSharedInput));
  ASSERT_EQ(better.differences.size(), 2u);
  EXPECT_EQ(better.differences[0].bytes, -4096);
  EXPECT_EQ(to_string(better).find("regression"), std::string::npos);
  EXPECT_TRUE(compare_positions(parse(kProduct)).differences.empty());
}

TEST(Match, WhatCannotRunIsNotTimed) {
  std::string text = kStepBetween;
  text.replace(text.find(" 0, none)"), 9, " 2, none)");  // of two dimensions
  EXPECT_NE(to_string(compare_positions(parse(text))).find("  not timed: "), std::string::npos);
}

TEST(Match, AConvolutionWithBiasAndReluIsOneRegion) {
  const std::string text = R"(graph 1
storage %0 3072 cpu input
storage %1 432 cpu input
storage %2 16 cpu input
storage %3 16384 cpu
storage %4 16384 cpu
storage %5 16384 cpu output
number $0 int
%3.0 float32[1, 4, 16, 16] = aten::conv2d(%0.0 float32[1, 3, 16, 16], %1.0 float32[4, 3, 3, 3], none, [1, 1], [1, 1], [1, 1], 1)
%4.0 float32[1, 4, 16, 16] = aten::add.Tensor(%3.0 float32[1, 4, 16, 16], %2.0 float32[1, 4, 1, 1], $0)
%5.0 float32[1, 4, 16, 16] = aten::relu(%4.0 float32[1, 4, 16, 16])
)";
  for (const MatcherPosition position : kMatcherPositions)
    EXPECT_EQ(fusions(text, position), "convolution(conv2d, add, relu)") << name(position);
}

TEST(Match, AnOperandThatOthersReadIsNoPrologue) {
  // Also where the epilogue reads it.
  const std::string text = R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu input
storage %2 4096 cpu
storage %3 4096 cpu
storage %4 4096 cpu output
number $0 int
%2.0 float32[32, 32] = aten::relu(%0.0 float32[32, 32])
%3.0 float32[32, 32] = aten::mm(%2.0 float32[32, 32], %1.0 float32[32, 32])
%4.0 float32[32, 32] = aten::add.Tensor(%2.0 float32[32, 32], %3.0 float32[32, 32], $0)
)";
  for (const MatcherPosition position : kMatcherPositions)
    EXPECT_EQ(fusions(text, position), "matmul(mm, add)") << name(position);
}

TEST(Pipeline, RefusesAnOrderInWhichTheChooserIsNotLast) {
  using enum PassKind;
  for (const MatcherPosition position : kMatcherPositions) EXPECT_EQ(why_not(passes_of(position)), "");
  const auto said = [](std::initializer_list<PassKind> passes) {
    return why_not({passes.begin(), passes.size()});
  };
  EXPECT_EQ(said({Clean, Fuse, Choose, Match, Form}),
            "the chooser comes before 'match', which would rewrite what it has chosen an engine for");
  EXPECT_EQ(said({Clean, Fuse, Match, Choose, Form}),
            "the chooser comes before 'form', which makes what it chooses engines for");
  EXPECT_EQ(said({Fuse, Clean, Form}), "pass 'clean' comes after 'fuse', which would fuse what is dead");
  EXPECT_EQ(said({Fuse, Form, Match}), "pass 'form' comes before 'match', which joins what is to be formed");
  EXPECT_EQ(said({Fuse, Fuse, Form}), "pass 'fuse' is there twice");
  EXPECT_EQ(said({Fuse, FuseAndMatch, Form}),
            "pass 'fuse and match' is there together with one that does half of it");
}

TEST(Pipeline, KnowsItsPositionsByName) {
  for (const MatcherPosition position : kMatcherPositions)
    EXPECT_EQ(parse_position(name(position)), position);
  EXPECT_FALSE(parse_position("d"));
}

}  // namespace
}  // namespace tenon::graph::testing
