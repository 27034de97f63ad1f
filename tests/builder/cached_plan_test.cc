#include "tenon/builder/cached_plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tenon/core/error.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

using builder::CachedPlan;
using builder::Graph;
using builder::PlanInputs;
using builder::PlanResults;

TEST(CachedPlan, IsBuiltOnceForEachKindOfArguments) {
  int built = 0;
  CachedPlan plan("scaled", [&](Graph& g, const PlanInputs& in) {
    ++built;
    auto& y = g.mul(in.tensor(0), in.tensor(1));
    return PlanResults{in.flag(2) ? &g.relu(y) : &y};
  });
  const Tensor x = tensor({1.0, -2.0, 3.0});
  EXPECT_TRUE(equal(plan({x, 2.0, false})[0], tensor({2.0, -4.0, 6.0})));
  EXPECT_TRUE(equal(plan({x, -1.0, false})[0], tensor({-1.0, 2.0, -3.0})));
  EXPECT_EQ(built, 1);
  EXPECT_TRUE(equal(plan({x, 2.0, true})[0], tensor({2.0, 0.0, 6.0})));
  EXPECT_TRUE(equal(plan({x, x, true})[0], tensor({1.0, 4.0, 9.0})));
  EXPECT_EQ(built, 3);
  EXPECT_EQ(plan.counts().hits, 1u);
  EXPECT_EQ(plan.counts().size, 3u);
}

TEST(CachedPlan, RunsOnManyThreadsAtOnce) {
  CachedPlan plan("products", [](Graph& g, const PlanInputs& in) {
    return PlanResults{&g.matmul(g.matmul(in.tensor(0), in.tensor(1)), in.tensor(1))};
  });
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const Tensor x = full({4 + t % 2, 8}, static_cast<double>(i + 1)), w = full({8, 8}, 0.5);
        wrong += !equal(plan({x, w})[0], full({4 + t % 2, 8}, 16.0 * (i + 1)));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(plan.counts().size, 2u);
}

TEST(CachedPlan, SaysWhichArgumentIsOfAnotherKind) {
  CachedPlan plan("wrong", [](Graph& g, const PlanInputs& in) {
    return PlanResults{&g.mul(in.tensor(0), in.tensor(1))};
  });
  try {
    plan({ones({2}), 2});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "argument 1 is an int, not a tensor or a floating-point number");
  }
}

}  // namespace
}  // namespace tenon
