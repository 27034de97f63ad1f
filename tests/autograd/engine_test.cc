// The engine on nodes written by hand: order, accumulation, freeing, errors, threads. Operators only add
// gradients.
#include "tenon/autograd/engine.h"

#include <pthread.h>

#include <thread>

#include "tenon/autograd/accumulate_grad.h"
#include "tenon/autograd/saved_tensor.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using autograd::BackwardOptions;
using autograd::NodeCall;
using autograd::run_backward;
using autograd::SavedTensor;
using autograd::TensorMeta;

Tensor number(double v) { return make({1}, {v}); }
double value(const Tensor& t) { return t.defined() ? t.data_ptr<double>()[0] : std::nan(""); }

int live = 0;

/// y = factor * (x_1 + ... + x_n), over one-element tensors.
class Scale : public Node {
 public:
  Scale(double factor, std::vector<Edge> edges, std::vector<std::string>* log = nullptr,
        std::string label = "")
      : factor_(factor), log_(log), label_(std::move(label)) {
    ++live;
    add_input(TensorMeta({1}, kFloat64, kCPU));
    for (Edge& e : edges) add_edge(std::move(e));
  }
  ~Scale() override { --live; }
  std::string_view name() const noexcept override { return "Scale"; }
  void apply(NodeCall& call) override {
    if (log_) log_->push_back(label_);
    for (size_t i = 0; i < call.out.size(); ++i) {
      if (call.wanted(i) && call.grads[0].defined()) call.out[i] = number(factor_ * value(call.grads[0]));
    }
  }

 private:
  double factor_;
  std::vector<std::string>* log_;
  std::string label_;
};

template <class T, class... A>
Edge node(A&&... args) {
  return {IntrusivePtr<Node>::adopt(new T(std::forward<A>(args)...)), 0};
}
Edge scale(double factor, std::vector<Edge> edges, std::vector<std::string>* log = nullptr,
           std::string label = "") {
  return node<Scale>(factor, std::move(edges), log, std::move(label));
}

void run(const Edge& root, double grad = 1, BackwardOptions options = {}) {
  const Tensor g = number(grad);
  run_backward({&root, 1}, {&g, 1}, {}, options);
}

TEST(Engine, ChainMultiplies) {
  Tensor x = leaf({1}, {0});
  run(scale(2, {scale(3, {autograd::gradient_edge(x)})}));
  EXPECT_EQ(value(x.grad()), 6);
}

TEST(Engine, DiamondRunsEachNodeOnceAfterAllItsGradients) {
  Tensor x = leaf({1}, {0});
  std::vector<std::string> log;
  const Edge bottom = scale(1, {autograd::gradient_edge(x)}, &log, "bottom");
  const Edge left = scale(2, {bottom}, &log, "left"), right = scale(5, {bottom}, &log, "right");
  run(scale(1, {left, right}, &log, "top"));
  EXPECT_EQ(value(x.grad()), 7);
  EXPECT_EQ(log, (std::vector<std::string>{"top", "right", "left", "bottom"}));
}

TEST(Engine, GradAccumulatesOverPassesAndEdges) {
  Tensor x = leaf({1}, {0});
  const Edge to_x = autograd::gradient_edge(x);
  const Edge root = scale(3, {to_x, to_x});
  run(root);
  EXPECT_EQ(value(x.grad()), 6);
  run(root, 2);
  EXPECT_EQ(value(x.grad()), 18);
}

TEST(Engine, UndefinedGradientsPassThrough) {
  Tensor x = leaf({1}, {0}), y = leaf({1}, {0});
  class Nothing final : public Scale {
   public:
    using Scale::Scale;
    void apply(NodeCall&) override {}
  };
  run(scale(1, {node<Nothing>(1.0, std::vector<Edge>{scale(2, {autograd::gradient_edge(x)})}),
                autograd::gradient_edge(y)}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_EQ(value(y.grad()), 1);
}

TEST(Engine, CapturesWalkOnlyWhatLeadsToThem) {
  Tensor x = leaf({1}, {0}), y = leaf({1}, {0});
  std::vector<std::string> log;
  const Edge to_x = scale(2, {autograd::gradient_edge(x)}, &log, "x"),
             to_y = scale(3, {autograd::gradient_edge(y)}, &log, "y");
  const Edge root = scale(1, {to_x, to_y}, &log, "root");
  const Edge captures[] = {autograd::gradient_edge(y), to_y};
  const Tensor one = number(1);
  const auto grads = run_backward({&root, 1}, {&one, 1}, captures, {.accumulate = false});
  EXPECT_EQ(value(grads[0]), 3);
  EXPECT_EQ(value(grads[1]), 1);
  EXPECT_EQ(log, (std::vector<std::string>{"root", "y"}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(y.grad().defined());
}

TEST(Engine, GradientOfAnotherShapeIsRefused) {
  Tensor x = leaf({2}, {0, 0});
  const Edge root = scale(1, {autograd::gradient_edge(x)});
  EXPECT_EQ(error_of([&] { run(root); }),
            "Function Scale returned an invalid gradient at index 0 - got [1] but expected shape compatible "
            "with [2]");
  // The failed pass left nothing behind.
  EXPECT_EQ(error_of([&] { run(root); }).substr(0, 14), "Function Scale");
}

TEST(Engine, BroadcastGradientIsSummed) {
  Tensor x = leaf({1}, {0});
  class Wide final : public Scale {
   public:
    using Scale::Scale;
    void apply(NodeCall& call) override { call.out[0] = make({2, 3}, {1, 2, 3, 4, 5, 6}); }
  };
  run(node<Wide>(1.0, std::vector<Edge>{autograd::gradient_edge(x)}));
  EXPECT_EQ(x.grad().sizes(), (IntArrayRef{1}));
  EXPECT_EQ(value(x.grad()), 21);
}

TEST(Engine, ReentrantBackwardInsideANode) {
  Tensor x = leaf({1}, {0}), inner_leaf = leaf({1}, {0});
  const Edge shared = scale(10, {autograd::gradient_edge(inner_leaf)});
  class Inner final : public Scale {
   public:
    Inner(Edge inner, std::vector<Edge> edges) : Scale(1, std::move(edges)), inner_(std::move(inner)) {}
    void apply(NodeCall& call) override {
      run(inner_, 2, {.retain_graph = true});
      Scale::apply(call);
    }
    Edge inner_;
  };
  // The inner pass walks nodes that the outer one is visiting as well.
  run(scale(1, {node<Inner>(shared, std::vector<Edge>{autograd::gradient_edge(x)}), shared}));
  EXPECT_EQ(value(x.grad()), 1);
  EXPECT_EQ(value(inner_leaf.grad()), 20 + 10);
}

TEST(Engine, SavedTensorsAreFreedUnlessRetained) {
  class Keeps final : public Scale {
   public:
    Keeps(const Tensor& t, std::vector<Edge> edges) : Scale(1, std::move(edges)) { saved_.save_input(t); }
    void apply(NodeCall& call) override { call.out[0] = number(value(saved_.unpack(*this, "keeps", "`x`"))); }
    void release_variables() noexcept override { saved_.release(); }
    SavedTensor saved_;
  };
  Tensor x = leaf({1}, {4});
  const Edge root = node<Keeps>(x, std::vector<Edge>{autograd::gradient_edge(x)});
  run(root, 1, {.retain_graph = true});
  run(root);
  EXPECT_EQ(value(x.grad()), 8);
  EXPECT_EQ(error_of([&] { run(root); }).substr(0, 54),
            "Trying to backward through the graph a second time (or");
}

TEST(Engine, SavedTensorNoticesAChange) {
  class Keeps final : public Scale {
   public:
    Keeps(const Tensor& t) : Scale(1, {}) { saved_.save_input(t); }
    void apply(NodeCall&) override { saved_.unpack(*this, "keeps", "`x`"); }
    SavedTensor saved_;
  };
  const Tensor x = number(4);
  const Edge root = node<Keeps>(x);
  x.storage()->bump_version();
  EXPECT_TRUE(
      error_of([&] { run(root); })
          .starts_with("backward: `keeps` saved `x`, which was changed in place (version 1, expected 0); "
                       "use the out-of-place form instead, or write to a clone() of it: writes through "
                       "`.data` and detach() count too. Saved at an unknown place, changed at "));
}

TEST(Engine, HooksSeeAndReplaceGradients) {
  Tensor x = leaf({1}, {0});
  const autograd::HookHandle handle =
      autograd::register_hook(x, [](const Tensor& g) { return number(value(g) + 100); });
  const Edge root = scale(2, {autograd::gradient_edge(x)});
  run(root, 1, {.retain_graph = true});
  EXPECT_EQ(value(x.grad()), 102);
  handle.remove();
  run(root);
  EXPECT_EQ(value(x.grad()), 104);
}

TEST(Engine, AnErrorInANodeReachesTheCallerAndTheGraphWorksAgain) {
  class Fails final : public Scale {
   public:
    using Scale::Scale;
    void apply(NodeCall& call) override {
      if (fail) throw_error(ErrorKind::Value, "deliberate");
      Scale::apply(call);
    }
    bool fail = true;
  };
  Tensor x = leaf({1}, {0});
  const Edge failing = node<Fails>(3.0, std::vector<Edge>{autograd::gradient_edge(x)});
  const Edge root = scale(1, {failing});
  EXPECT_EQ(error_of([&] { run(root); }), "deliberate");
  static_cast<Fails*>(failing.node.get())->fail = false;
  run(root);
  EXPECT_EQ(value(x.grad()), 3);
}

TEST(Engine, ThreadsMayWalkOneGraph) {
  Tensor x = leaf({1}, {0});
  Edge root = autograd::gradient_edge(x);
  for (int i = 0; i < 200; ++i) root = scale(1, {root});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) run(root, 1, {.retain_graph = true});
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(value(x.grad()), 200);
}

// A pass that recursed for each node would need more stack than this for far fewer nodes than kMany: a frame
// holds at least its return address and is aligned to 16 bytes.
constexpr size_t kSmallStack = 256 * 1024;
constexpr int kMany = 100'000;
static_assert(kMany * size_t{16} > 4 * kSmallStack);

/// Runs `f` on a thread with a stack of 256 KB.
void on_small_stack(std::function<void()> f) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kSmallStack);
  pthread_t thread;
  const auto enter = [](void* p) -> void* {
    (*static_cast<std::function<void()>*>(p))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, enter, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Engine, ManyNodesBuildRunAndFreeOnASmallStack) {
  Tensor x = leaf({1}, {0});
  const int before = live;
  on_small_stack([&] {
    Edge root = autograd::gradient_edge(x);
    for (int i = 0; i < kMany; ++i) root = scale(1, {root});
    EXPECT_EQ(live - before, kMany);
    run(root, 3);
    root = {};
  });
  EXPECT_EQ(live, before);
  EXPECT_EQ(value(x.grad()), 3);
}

TEST(Engine, ManyRecordedOperatorsOnASmallStack) {
  Tensor x = leaf({1}, {0});
  on_small_stack([&] {
    Tensor y = x;
    for (int i = 0; i < kMany; ++i) y = tenon::add(y, x);
    y.backward();
  });
  EXPECT_EQ(value(x.grad()), kMany + 1);
}

TEST(Engine, ManyLeavesOnASmallStack) {
  on_small_stack([] {
    std::vector<Tensor> leaves;
    for (int i = 0; i < kMany; ++i) leaves.push_back(leaf({1}, {1}));
    {
      // A tree of sums.
      std::vector<Tensor> level = leaves;
      while (level.size() > 1) {
        std::vector<Tensor> next;
        for (size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(tenon::add(level[i], level[i + 1]));
        if (level.size() % 2) next.push_back(level.back());
        level = std::move(next);
      }
      const Tensor y = tenon::mul(level[0], Scalar(2));
      level.clear();
      y.backward({}, true);
      EXPECT_EQ(value(leaves.front().grad()), 2);
      EXPECT_EQ(value(leaves.back().grad()), 2);
      const std::vector<Tensor> grads = autograd::grad({&y, 1}, leaves);
      EXPECT_EQ(value(grads.back()), 2);
    }
    leaves.clear();
  });
}

TEST(Engine, ManyNodesThatSaveEachOtherOnASmallStack) {
  // Each node also keeps the one below through what it saved.
  Tensor x = leaf({1}, {1});
  on_small_stack([&] {
    Tensor y = x;
    for (int i = 0; i < kMany; ++i) y = tenon::mul(y, y);
    y.backward();
  });
  EXPECT_TRUE(std::isinf(value(x.grad())));  // 2^kMany
}

}  // namespace
}  // namespace tenon
