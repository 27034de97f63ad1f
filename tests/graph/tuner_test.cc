// The tuner: what computes something else is not taken, what is slower loses, whatever the machine does
// meanwhile; and what it chose stands in the region.
#include "tenon/graph/plan/tuner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "tenon/core/error.h"
#include "tenon/core/parallel.h"
#include "tenon/graph/engine/loop_step.h"
#include "tenon/graph/plan/plan.h"
#include "tenon/graph/text/binary.h"
#include "tenon/graph/text/text.h"

namespace tenon::graph {
namespace {

constexpr const char* kProduct = R"(graph 1
storage %0 262144 cpu input
storage %1 65536 cpu input
storage %2 262144 cpu
storage %3 262144 cpu output
%2.0 float32[512, 128] = aten::mm(%0.0 float32[512, 128], %1.0 float32[128, 128])
%3.0 float32[512, 128] = aten::tanh(%2.0 float32[512, 128])
)";

constexpr const char* kLoop = R"(graph 1
storage %0 65536 cpu input
storage %1 65536 cpu
storage %2 65536 cpu
storage %3 65536 cpu output
number $0 float
%1.0 float32[16384] = aten::mul.Scalar(%0.0 float32[16384], $0)
%2.0 float32[16384] = aten::tanh(%1.0 float32[16384])
%3.0 float32[16384] = aten::add.Tensor(%2.0 float32[16384], %0.0 float32[16384], 1)
)";

constexpr const char* kInPlace = R"(graph 1
storage %0 65536 cpu input output
number $0 float
%0.1(%0.0) float32[16384] = aten::mul_.Scalar(%0.0 float32[16384], $0)
%0.2(%0.1) float32[16384] = aten::tanh_(%0.1 float32[16384])
)";

constexpr const char* kInsideInPlace = R"(graph 1
storage %0 65536 cpu input
storage %1 65536 cpu output
number $0 float
%0.1(%0.0) float32[16384] = aten::add_.Tensor(%0.0 float32[16384], %0.0 float32[16384], 1)
%1.0 float32[16384] = aten::mul.Scalar(%0.1 float32[16384], $0)
)";

/// With its one region.
Graph fused(const char* text) {
  set_num_threads(1);  // so that times are the region's, whatever else runs here
  Graph g = parse(text);
  const FusionReport report = fuse(g, {.rows = true});
  EXPECT_EQ(g.nodes.size(), 1u) << to_string(report);
  EXPECT_TRUE(g.nodes[0].region);
  return g;
}

/// Does what another program does, and something else besides.
class Planted final : public RegionProgram {
 public:
  Planted(std::unique_ptr<const RegionProgram> inner, std::function<void(const Arguments&)> more)
      : inner_(std::move(inner)), more_(std::move(more)) {}
  void run(const Arguments& arguments, bool& clobbered_inputs) const override {
    inner_->run(arguments, clobbered_inputs);
    more_(arguments);
  }

 private:
  std::unique_ptr<const RegionProgram> inner_;
  std::function<void(const Arguments&)> more_;
};

Candidate planted(const Graph& g, std::string name,
                  std::function<void(const RegionProgram::Arguments&)> more) {
  Candidate made = std::move(candidates_of(g, g.nodes[0], {})[0]);
  made.engine = std::move(name);
  made.program = std::make_unique<Planted>(std::move(made.program), std::move(more));
  return made;
}

void nothing(const RegionProgram::Arguments&) {}
/// The last bit of the last element.
void flip(const RegionProgram::Arguments& a) {
  static_cast<std::byte*>(a.defs[0].data_ptr())[a.defs[0].nbytes() - 4] ^= std::byte{1};
}
/// Far longer than the region takes on any machine, also where another process has the core in between.
void wait(const RegionProgram::Arguments&) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(40);
  while (std::chrono::steady_clock::now() < until) {
  }
}

constexpr double kPlenty = 5e9;

class RegionTuner : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Regions, RegionTuner, ::testing::Values(kProduct, kLoop, kInPlace, kInsideInPlace));

TEST_P(RegionTuner, TakesNothingThatComputesSomethingElse) {
  const Graph g = fused(GetParam());
  const Candidate apart = calls_apart(g, g.nodes[0]);
  std::vector<Candidate> candidates;
  candidates.push_back(planted(g, "wrong", flip));
  candidates.push_back(planted(g, "right", nothing));
  candidates.push_back(
      planted(g, "throws", [](const auto&) { throw_error(ErrorKind::Runtime, "no, thanks"); }));
  const TuningResult tuned = tune(g, g.nodes[0], candidates, *apart.program, Budget(kPlenty));
  EXPECT_EQ(tuned.winner, 1u);
  EXPECT_EQ(tuned.trials[0].reason, "wrong: it has other bits than the calls of the region");
  EXPECT_EQ(tuned.trials[0].ns, 0);
  EXPECT_EQ(tuned.trials[1].reason, "");
  EXPECT_EQ(tuned.trials[2].reason, "no, thanks");
  candidates.erase(candidates.begin() + 1);
  EXPECT_EQ(tune(g, g.nodes[0], candidates, *apart.program, Budget(kPlenty)).winner, kNone);
}

TEST(TunerVerdict, TheSignOfANanIsNoPartOfAResult) {
  const Graph g = fused(R"(graph 1
storage %0 65536 cpu input
storage %1 65536 cpu
storage %2 65536 cpu output
number $0 float
%1.0 float32[16384] = aten::sqrt(%0.0 float32[16384])
%2.0 float32[16384] = aten::mul.Scalar(%1.0 float32[16384], $0)
)");
  const Candidate apart = calls_apart(g, g.nodes[0]);
  const auto turn_nans = [](const RegionProgram::Arguments& a) {
    auto* const x = static_cast<uint32_t*>(a.defs[0].data_ptr());
    int64_t turned = 0;
    for (int64_t i = 0; i < a.defs[0].numel(); ++i) {
      if ((x[i] & 0x7FFFFFFF) <= 0x7F800000) continue;
      x[i] ^= 0x80000000;
      ++turned;
    }
    EXPECT_GT(turned, 0);
  };
  std::vector<Candidate> candidates;
  candidates.push_back(planted(g, "turned", turn_nans));
  const TuningResult tuned = tune(g, g.nodes[0], candidates, *apart.program, Budget(kPlenty));
  EXPECT_EQ(tuned.trials[0].reason, "");
}

TEST_P(RegionTuner, WhatIsSlowerLosesInAnyOrder) {
  const Graph g = fused(GetParam());
  const Candidate apart = calls_apart(g, g.nodes[0]);
  for (const bool slow_first : {false, true}) {
    std::vector<Candidate> candidates;
    candidates.push_back(planted(g, slow_first ? "slow" : "fast", slow_first ? wait : nothing));
    candidates.push_back(planted(g, slow_first ? "fast" : "slow", slow_first ? nothing : wait));
    const TuningResult tuned = tune(g, g.nodes[0], candidates, *apart.program, Budget(kPlenty));
    EXPECT_EQ(tuned.trials[tuned.winner].name, "fast");
    EXPECT_EQ(tuned.trials[slow_first ? 0 : 1].reason, "slower than fast");
  }
}

TEST_P(RegionTuner, EveryCandidateOfOursHasTheBitsOfTheCalls) {
  const Graph g = fused(GetParam());
  const std::vector<Candidate> all = candidates_of(g, g.nodes[0], {});
  EXPECT_GE(all.size(), 2u);
  const Candidate apart = calls_apart(g, g.nodes[0]);
  for (const Trial& t : tune(g, g.nodes[0], all, *apart.program, Budget(kPlenty)).trials)
    EXPECT_FALSE(t.reason.starts_with("wrong")) << t.name;
}

TEST(TunerBudget, WhatItDoesNotReachIsNotTimed) {
  const Graph g = fused(kLoop);
  const Candidate apart = calls_apart(g, g.nodes[0]);
  std::vector<Candidate> candidates;
  candidates.push_back(planted(g, "first", wait));
  candidates.push_back(planted(g, "second", nothing));
  const TuningResult tuned = tune(g, g.nodes[0], candidates, *apart.program, Budget(1e6));
  EXPECT_EQ(tuned.winner, 0u);
  EXPECT_EQ(tuned.trials[1].reason, "not timed: the budget of 1 ms was spent");
}

// Plans of a graph meet twice: what one of them took the first time still counts.
TEST(TunerRace, ATimeThatIsThereStaysIfItIsLess) {
  const Runner runners[] = {{.run = [] {}}, {.run = [] {}}};
  std::vector<Trial> trials{{.name = "a", .ns = 1e-9}, {.name = "b"}};
  race(runners, trials, Budget(1e9));
  EXPECT_EQ(trials[0].ns, 1e-9);
  EXPECT_GT(trials[1].ns, 1e-9);
  trials = {{.name = "a", .ns = 1e18}, {.name = "b", .ns = 1e-9}};
  race(runners, trials, Budget(1e9));
  EXPECT_LT(trials[0].ns, 1e18);
  EXPECT_EQ(trials[1].ns, 1e-9);
}

TEST(TunerBound, VendorsMayDifferWithinIt) {
  const Graph g = fused(kProduct);
  const Candidate apart = calls_apart(g, g.nodes[0]);
  std::vector<Candidate> candidates;
  candidates.push_back(planted(g, "close", flip));
  candidates.push_back(
      planted(g, "far", [](const auto& a) { static_cast<float*>(a.defs[0].data_ptr())[7] += 0.01f; }));
  for (Candidate& c : candidates) c.is_exact = false;
  const TuningResult tuned = tune(g, g.nodes[0], candidates, *apart.program, Budget(kPlenty));
  EXPECT_EQ(tuned.winner, 0u);
  EXPECT_NE(tuned.trials[1].reason.find("is right, which is out of the bound"), std::string::npos);
}

TEST(TunedPlan, StandsInTheRegionAndInItsBytes) {
  set_num_threads(1);
  for (const char* text : {kProduct, kLoop}) {
    Graph g = parse(text);
    const FusionReport plain = fuse(g, {.rows = true});
    EXPECT_FALSE(was_tuned(plain));
    Graph tuned = parse(text);
    MeasuringTuner tuner({}, kPlenty);
    const FusionReport report = fuse(tuned, {.chooser = &tuner, .rows = true});
    if (report.fusions.empty() || report.fusions[0].kind != plain.fusions[0].kind) continue;  // not fused
    EXPECT_TRUE(was_tuned(report));
    const FusionReport::Fusion& fusion = report.fusions[0];
    EXPECT_EQ(tuned.nodes[0].region->engine, fusion.engine);
    EXPECT_EQ(tuned.nodes[0].region->knobs, fusion.knobs);
    EXPECT_NE(find_engine(fusion.engine), nullptr) << fusion.engine;
    size_t winners = 0;
    for (const Trial& t : fusion.trials) winners += t.reason.empty();
    EXPECT_EQ(winners, 1u);
    EXPECT_EQ(to_string(deserialize(serialize(tuned))), to_string(tuned));
    EXPECT_EQ(to_string(parse(to_string(tuned))), to_string(tuned));
  }
}

TEST(TunedPlan, KnobsAreObeyedAndOthersRefused) {
  Graph g = fused(kLoop);
  Node node = g.nodes[0].copy();
  node.region->engine = "interpreter";
  node.region->knobs = {{"tile", 256}};
  EXPECT_STREQ(LoopStep(g, node).engine(), "interpreter");
  node.region->knobs = {{"streams", 1}};
  EXPECT_TRUE(LoopStep(g, node).loop().streams());
  node.region->knobs = {{"streams", 0}};
  EXPECT_FALSE(LoopStep(g, node).loop().streams());
  node.region->engine = "jit";
  for (const int64_t vectors : {1, 6, 100}) {
    node.region->knobs = {{"vectors", vectors}};
    const LoopStep step(g, node);
    EXPECT_TRUE(step.engine() == std::string("jit") || step.engine() == std::string("interpreter"));
  }
  node.region->engine = "interpreter";
  node.region->knobs = {{"sails", 3}};
  try {
    const LoopStep step(g, node);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("engine 'interpreter' has no knob 'sails'"), std::string::npos);
  }
}

// What is faster call by call is not fused.
TEST(TunedPlan, LoopsAreTakenApartToo) {
  struct Apart : Chooser {
    std::string refuse(const Graph&, const Node&) override { return {}; }
    std::string refuse_loop(const Graph&, const Node&) override { return "the calls are faster"; }
  } chooser;
  Graph g = parse(kLoop);
  const FusionReport report = fuse(g, {.chooser = &chooser});
  EXPECT_EQ(g.nodes.size(), 3u);
  EXPECT_TRUE(report.fusions.empty());
  ASSERT_EQ(report.left.size(), 3u);
  EXPECT_EQ(report.left[1].op.full_name(), "aten::tanh");
  EXPECT_EQ(report.left[1].reason, "the calls are faster");
}

// What runs a loop over rows is no engine of the table, so the region names none.
TEST(TunedLoop, OverRowsHasNoEngine) {
  Graph g = parse(R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu
storage %2 4096 cpu output
%1.0 float32[32, 32] = aten::tanh(%0.0 float32[32, 32])
%2.0 float32[32, 32] = aten::_softmax(%1.0 float32[32, 32], -1, false)
)");
  MeasuringTuner tuner({}, 0);  // no time: it stays as it runs without tuning
  fuse(g, {.chooser = &tuner, .rows = true});
  ASSERT_TRUE(g.nodes[0].region);
  EXPECT_EQ(g.nodes[0].region->engine, "");
  EXPECT_STREQ(LoopStep(g, g.nodes[0]).engine(), "rows");
}

// What it has chosen an engine for would no longer be there.
TEST(TunedPlan, IsNotRewritten) {
  Graph g = parse(kProduct);
  MeasuringTuner tuner({}, kPlenty);
  fuse(g, {.chooser = &tuner});
  if (!g.nodes[0].region) GTEST_SKIP() << "its calls apart were faster";
  try {
    fuse(g, {});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a rewriter comes after the chooser"), std::string::npos)
        << e.what();
  }
}

// A loop over rows has no engine of the table, though the table says that some may run it.
TEST(PlanReport, NamesWhatRunsALoop) {
  const Plan plan(parse(R"(graph 1
storage %0 4096 cpu input
storage %1 4096 cpu output
%1.0 float32[32, 32] = aten::_softmax(%0.0 float32[32, 32], -1, false)
)"),
                  {}, {.dump = false});
  EXPECT_STREQ(plan.steps()[0].loop->engine(), "rows");
  EXPECT_EQ(plan.report().fusions.at(0).engine, "rows");
}

}  // namespace
}  // namespace tenon::graph
