// Hooks, saved-tensor hooks and anomaly mode from C++.
#include "tenon/autograd/hooks.h"

#include <thread>

#include "tenon/autograd/anomaly.h"
#include "tenon/autograd/saved_hooks.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using V = std::vector<double>;

TEST(Hooks, OfNodesBeforeAndAfter) {
  Tensor x = leaf({1}, {3}), w = leaf({1}, {4});
  Tensor y = tenon::mul(x, w);
  std::vector<V> seen;
  const auto before = autograd::register_prehook(
      *y.grad_fn(), [](std::vector<Tensor>& grads) { grads[0] = tenon::mul(grads[0], Scalar(10)); });
  const auto after = autograd::register_posthook(
      *y.grad_fn(), [&](std::vector<Tensor>& results, const std::vector<Tensor>& grads) {
        seen = {values(results[0]), values(results[1]), values(grads[0])};
        results[1].reset();
      });
  y.backward({}, true);
  EXPECT_EQ(seen, (std::vector<V>{{40}, {30}, {10}}));
  EXPECT_EQ(values(x.grad()), (V{40}));
  EXPECT_FALSE(w.grad().defined());
  before.remove();
  after.remove();
  y.backward();
  EXPECT_EQ(values(w.grad()), (V{3}));
}

TEST(Hooks, OfLeavesAfterAccumulation) {
  Tensor x = leaf({1}, {3});
  V seen;
  const auto handle = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor& leaf) {
    seen = values(leaf.grad());
    Tensor(leaf).set_grad({});
  });
  tenon::mul(x, Scalar(2)).backward();
  EXPECT_EQ(seen, (V{2}));
  EXPECT_FALSE(x.grad().defined());
  handle.remove();
  tenon::mul(x, Scalar(2)).backward();
  EXPECT_EQ(values(x.grad()), (V{2}));
  EXPECT_NE(
      error_of([&] { autograd::register_post_accumulate_grad_hook(tenon::mul(x, x), [](const Tensor&) {}); }),
      "no error");
}

TEST(Hooks, HandlesDoNotKeepTheNode) {
  auto alive = std::make_shared<int>(0);
  autograd::HookHandle handle;
  {
    Tensor y = tenon::mul(leaf({1}, {1}), Scalar(2));
    handle = autograd::register_hook(y, [alive](const Tensor&) { return Tensor(); });
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
  handle.remove();
}

TEST(Hooks, ALeafWithAHookIsFreed) {
  auto alive = std::make_shared<int>(0);
  {
    Tensor x = leaf({1}, {1});
    autograd::register_post_accumulate_grad_hook(x, [alive](const Tensor&) {});
    tenon::mul(x, Scalar(2)).backward();
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(Hooks, ThreadsRegisterAndRemoveWhileOthersRun) {
  Tensor x = leaf({1}, {1});
  const Tensor y = tenon::mul(x, Scalar(1));
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const auto handle = autograd::register_hook(y, [&](const Tensor&) {
          ++calls;
          return Tensor();
        });
        y.backward({}, true);
        handle.remove();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_GE(calls.load(), 300);
  EXPECT_EQ(values(x.grad()), (V{300}));
}

TEST(Hooks, ThreadsMayFreeOneGraph) {
  // Each walks the graph once without keeping it: one of them may, the others hear that it is gone.
  for (int round = 0; round < 20; ++round) {
    Tensor x = leaf({1}, {1});
    Tensor y = x;
    for (int i = 0; i < 50; ++i) y = tenon::exp(tenon::mul(y, y)).log();
    std::vector<std::thread> threads;
    std::vector<std::string> errors(3);
    for (int t = 0; t < 3; ++t) threads.emplace_back([&, t] { errors[t] = error_of([&] { y.backward(); }); });
    for (std::thread& t : threads) t.join();
    for (const std::string& e : errors)
      EXPECT_TRUE(e == "no error" || e.starts_with("Trying to backward")) << e;
  }
}

TEST(SavedHooks, PackAndUnpack) {
  Tensor x = leaf({1}, {2}), w = leaf({1}, {3});
  std::vector<V> packed;
  Tensor y;
  {
    const autograd::SavedTensorHooksGuard guard(
        {[&](const Tensor& t) -> std::any {
           packed.push_back(values(t));
           return packed.size() - 1;
         },
         [&](const std::any& i) { return make({1}, packed[std::any_cast<size_t>(i)]); }});
    y = tenon::mul(x, w);
  }
  EXPECT_EQ(packed, (std::vector<V>{{2}, {3}}));
  packed[0] = {50};
  y.backward();
  EXPECT_EQ(values(x.grad()), (V{3}));
  EXPECT_EQ(values(w.grad()), (V{50}));
  autograd::disable_saved_tensor_hooks("forbidden here");
  EXPECT_EQ(error_of([] { autograd::push_saved_tensor_hooks({}); }), "forbidden here");
  autograd::disable_saved_tensor_hooks(std::nullopt);
}

std::string diagnostic;

TEST(Anomaly, NanIsAnErrorThatNamesItsNode) {
  set_diagnostic_sink([](std::string_view line) { diagnostic += line; });
  {
    const autograd::DetectAnomalyGuard guard;
    Tensor x = leaf({1}, {0});
    const Tensor y = tenon::mul(tenon::sqrt(x), Scalar(0));
    EXPECT_EQ(error_of([&] { y.backward(); }),
              "Function 'SqrtBackward0' returned nan values in its 0th output.");
  }
  EXPECT_FALSE(autograd::is_anomaly_enabled());
  EXPECT_TRUE(
      diagnostic.starts_with("Error detected in SqrtBackward0. Traceback of forward call that caused"))
      << diagnostic;
}

}  // namespace
}  // namespace tenon
