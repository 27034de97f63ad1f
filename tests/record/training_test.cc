// Gradients and optimizers inside programs: bits, errors and hooks as eager's.
#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tests/record/beside_eager.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(RecordedTraining, GradientsOfGradients) {
  alike([](auto c) {
    Tensor x = ramp({5}).requires_grad_();
    auto f = c([&] {
      const Tensor g = autograd::grad({(x.exp() * x).sum()}, {x}, {}, {}, true)[0];
      (g * g).sum().backward();
      return g.detach();
    });
    return Tensors{f(), x.grad()};
  });
}

TEST(RecordedTraining, BackwardInsideAndTheStepOutsideAndTheReverse) {
  alike([](auto c) {
    Tensor w = ramp({4, 3}).requires_grad_();
    const Tensor x = ramp({5, 4});
    const auto loss = [&] { return (x.mm(w)).tanh().sum(); };
    auto forward = c(loss);
    auto both = c([&] { loss().backward(); });
    auto step = c([&] {
      const NoGradGuard guard;
      w.sub_(w.grad() * 0.1);
      w.set_grad({});
    });
    for (int i = 0; i < 3; ++i) {
      both();
      step();
      forward().backward();
      step();
    }
    return Tensors{w.detach()};
  });
}

TEST(RecordedTraining, HooksSeeValues) {
  alike([](auto c) {
    Tensor x = ramp({3}).requires_grad_();
    float seen = 0;
    autograd::register_hook(x, [&](const Tensor& g) {
      seen = g.sum().item<float>();
      return g * 2;
    });
    auto f = c([&] { (x * x).sum().backward(); });
    f();
    return Tensors{x.grad(), full({1}, seen)};
  });
}

TEST(RecordedTraining, ASavedTensorThatWasChangedThrowsAtBackward) {
  const auto f = [] {
    Tensor x = ramp({3}).requires_grad_();
    Tensor y = x.exp();
    const Tensor z = y.sum();
    y.add_(1);
    z.backward();
  };
  const auto g = [] {
    Tensor x = ramp({3}).requires_grad_();
    Tensor y = x.exp();
    y.add_(1);
    y.sum().backward();
  };
  // Up to where the lines are, which are addresses here.
  const auto said = [](auto program) {
    const std::string text = error_of(program);
    return text.substr(0, text.find(" Saved at"));
  };
  EXPECT_NE(said(g).find("version 1, expected 0"), std::string::npos) << said(g);
  EXPECT_EQ(said(compile(f, kAll)), said(f));
  EXPECT_EQ(said(compile(g, kAll)), said(g));
}

TEST(RecordedTraining, AGraphThatIsUsedTwiceThrowsAtItsLine) {
  const auto f = [] {
    Tensor x = ramp({3}).requires_grad_();
    const Tensor y = x.exp().sum();
    y.backward();
    y.backward();
  };
  EXPECT_EQ(error_of(compile(f, kAll)), error_of(f));
  EXPECT_NE(error_of(f), "");
}

// The losses and parameters of some steps; `planned_by_step` gets how many segments each step planned.
template <class Optimizer, class Options, class C, class Schedule>
Tensors train(C c, Options options, Schedule schedule, std::vector<uint64_t>* planned_by_step = nullptr) {
  manual_seed(1);
  nn::Sequential model{nn::Linear(6, 8), nn::ReLU(), nn::Linear(8, 3)};
  Optimizer optimizer(model.parameters(), options);
  const Tensor x = ramp({7, 6}), y = tensor({0, 1, 2, 0, 1, 2, 1});
  auto step = c([&] {
    const Tensor loss = cross_entropy_loss(model(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    return loss.detach();
  });
  Tensors all;
  for (int i = 0; i < 12; ++i) {
    schedule(optimizer.options(), i);
    const uint64_t before = planned();
    all.push_back(step());
    if (planned_by_step) planned_by_step->push_back(planned() - before);
  }
  for (const Tensor& p : model.parameters()) all.push_back(p.detach());
  return all;
}

TEST(RecordedTraining, AdamWithAScheduleOfItsRatePlansTwice) {
  // At one step the rate is that of a decay.
  const auto schedule = [](optim::AdamOptions& o, int i) { o.lr = i == 5 ? o.beta1 : 0.05 / (i + 1); };
  const auto run = [&](auto c, std::vector<uint64_t>* plans) {
    return train<optim::Adam>(c, optim::AdamOptions{.lr = 0.05}, schedule, plans);
  };
  std::vector<uint64_t> plans;
  const Tensors wanted = run([](auto f) { return f; }, nullptr);
  expect_same(run([](auto f) { return compile(f, kAll); }, &plans), wanted, "everything recorded");
  for (size_t i = 3; i < plans.size(); ++i) EXPECT_EQ(plans[i], 0u) << "step " << i;
}

TEST(RecordedTraining, TheFirstStepOfMomentumIsAnother) {
  const auto keep = [](optim::SGDOptions&, int) {};
  const auto run = [&](auto c, std::vector<uint64_t>* plans) {
    return train<optim::SGD>(c, optim::SGDOptions{.lr = 0.1, .momentum = 0.9}, keep, plans);
  };
  std::vector<uint64_t> plans;
  const Tensors wanted = run([](auto f) { return f; }, nullptr);
  expect_same(run([](auto f) { return compile(f, kAll); }, &plans), wanted, "everything recorded");
  EXPECT_GE(plans[0], 1u);
  for (size_t i = 3; i < plans.size(); ++i) EXPECT_EQ(plans[i], 0u) << "step " << i;
}

}  // namespace
}  // namespace tenon
