// Which regions the pipeline forms of small programs, in each position of the matcher.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tenon/core/error.h"
#include "tenon/graph/key.h"
#include "tenon/graph/pipeline.h"
#include "tenon/graph/text.h"
#include "tenon/graph/verify.h"

namespace tenon::graph::testing {
namespace {

// What the regions of a program are made of: "flat(mul, add)", by position.
std::string fusions(std::string_view text, Position position = Position::AfterFuser, Tuner* tuner = nullptr) {
  Graph graph = parse(text);
  const FusionReport report = fuse(graph, {.position = position, .tuner = tuner});
  EXPECT_EQ(verify(graph).sentence, "") << to_string(graph);
  EXPECT_EQ(to_string(parse(to_string(graph))), to_string(graph));
  EXPECT_EQ(key_of(parse(to_string(graph))), key_of(graph));
  std::string summary;
  for (const FusionReport::Fusion& f : report.fusions) {
    if (!summary.empty()) summary += " ";
    summary += fmt::format("{}(", name(f.anchor));
    for (size_t i = 0; i < f.operators.size(); ++i) {
      const std::string& op = f.operators[i];
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
  for (const Position position : kPositions) {
    EXPECT_EQ(fusions(kProduct, position), "matmul(_to_copy, mul, mm, add, relu)") << name(position);
    Graph graph = parse(kProduct);
    fuse(graph, {.position = position});
    ASSERT_EQ(graph.nodes.size(), 1u);
    EXPECT_EQ(graph.defs(graph.nodes[0]).size(), 2u);
    EXPECT_EQ(graph.nodes[0].op.full_name(), "tenon::region_matmul");
  }
}

TEST(Match, WhatTheTunerRefusesIsFusedWithoutTheProduct) {
  struct Refusing : Tuner {
    std::string refuse(const Graph&, const Node&) override { return "no engine runs it"; }
  } tuner;
  EXPECT_EQ(fusions(kProduct, Position::AfterFuser, &tuner), "flat(_to_copy, mul) flat(add, relu)");
  EXPECT_EQ(fusions(kProduct, Position::Alone, &tuner), "");
  Graph graph = parse(kProduct);
  const FusionReport report = fuse(graph, {.tuner = &tuner});
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].operator_name, "aten::mm");
  EXPECT_EQ(report.left[0].reason, "no engine runs it");
}

TEST(Pipeline, RefusesAnOrderInWhichTheTunerIsNotLast) {
  using enum PassKind;
  for (const Position position : kPositions) EXPECT_EQ(why_not(passes_of(position)), "");
  const auto said = [](std::initializer_list<PassKind> passes) {
    return why_not({passes.begin(), passes.size()});
  };
  EXPECT_EQ(said({Clean, Fuse, Tune, Match, Form}),
            "the tuner comes before 'match', which would rewrite what it has tuned");
  EXPECT_EQ(said({Clean, Fuse, Match, Tune, Form}),
            "the tuner comes before 'form', which makes what it tunes");
  EXPECT_EQ(said({Fuse, Clean, Form}), "pass 'clean' comes after 'fuse', which would fuse what is dead");
  EXPECT_EQ(said({Fuse, Form, Match}), "pass 'form' comes before 'match', which joins what is to be formed");
  EXPECT_EQ(said({Fuse, Fuse, Form}), "pass 'fuse' stands twice");
  EXPECT_EQ(said({Fuse, FuseAndMatch, Form}), "pass 'fuse and match' stands beside one that does half of it");
}

TEST(Pipeline, KnowsItsPositionsByName) {
  for (const Position position : kPositions) EXPECT_EQ(parse_position(name(position)), position);
  EXPECT_FALSE(parse_position("d"));
}

}  // namespace
}  // namespace tenon::graph::testing
