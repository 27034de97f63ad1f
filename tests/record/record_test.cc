// What is recorded, planned and found again.
#include "tests/record/beside_eager.h"

namespace tenon {
namespace {

using namespace tenon::testing;

uint64_t recorded() { return record::Recorder::current().counts().recorded; }

TEST(Record, AChainIsComputedWhenItIsRead) {
  const Tensor x = randn({5, 7}), a = randn({5, 7}), b = randn({7});
  const auto f = [&] { return silu(x * a + b) * tanh(x) + b; };
  const Tensor wanted = f();
  const uint64_t before = recorded();
  record::Scope scope(record::new_program(), kAll);
  const Tensor got = f();
  EXPECT_TRUE(got.storage()->is_pending());
  EXPECT_EQ(recorded() - before, 6u);
  EXPECT_TRUE(same_bits(got, wanted));
  EXPECT_FALSE(got.storage()->is_pending());
  scope.end();
}

TEST(Record, ProgramsThatJoinNothingAreRecordedNowAndThen) {
  EXPECT_EQ(record::size_of(ones({3, 4}), -2, 0.5), 14);
  EXPECT_EQ(record::size_of(std::vector<Tensor>()), -1);
  const Tensor small = randn({4}), large = randn({1 << 17});
  uint64_t inside = 0;  // runs in which calls could wait
  auto f = compile([&](const Tensor& x) {
    inside += thread_state.included.has(Functionality::Record);
    return (x * 2.0 + 1.0).tanh();
  });
  for (int i = 0; i < 100; ++i) f(small);
  EXPECT_EQ(inside, 4u) << "two, then one after 31 others, then one after 63";
  const uint64_t before = recorded();
  EXPECT_TRUE(same_bits(f(large), (large * 2.0 + 1.0).tanh()));
  EXPECT_EQ(recorded() - before, 3u);
}

TEST(Record, AProgramThatRepeatsItselfIsPlannedOnce) {
  const Tensor x = randn({64}), y = randn({64});
  double lr = 0.5;
  auto f = compile([&](const Tensor& t) { return (t * lr + y).exp(); }, kAll);
  f(x);
  const record::Counts first = record::Recorder::current().counts();
  for (int i = 0; i < 5; ++i) {
    lr *= 0.5;
    EXPECT_TRUE(same_bits(f(x), (x * lr + y).exp()));
  }
  const record::Counts now = record::Recorder::current().counts();
  EXPECT_EQ(now.planned, first.planned);
  EXPECT_EQ(now.new_nodes, first.new_nodes);
  EXPECT_EQ(now.segments, first.segments + 5);
}

TEST(Record, WritesComeInTheirOrderAndKeepAddresses) {
  Tensor x = arange(12).to(kFloat32).view({3, 4});
  Tensor e = x.clone();
  const void* const address = x.data_ptr();
  auto f = [](Tensor& t) {
    const Tensor y = t * 2;
    t.add_(1);
    t.t()[1].mul_(-1);
    const Tensor z = t + t.t()[0].sum();
    return std::pair(y, z);
  };
  const auto wanted = f(e);
  auto c = compile(f, kAll);
  const auto got = c(x);
  EXPECT_TRUE(same_bits(got.first, wanted.first));
  EXPECT_TRUE(same_bits(got.second, wanted.second));
  EXPECT_TRUE(same_bits(x, e));
  EXPECT_EQ(x.data_ptr(), address);
  EXPECT_EQ(x._version(), e._version());
}

TEST(Record, ExponentsThatCostLessAreKnownAndOthersAreNumbers) {
  const Tensor x = rand({100}) + 0.1;
  Scalar exponent = 2;
  const auto f = [&] { return (x.pow(exponent) + 1) * x; };
  auto c = compile(f, kAll);
  for (const Scalar& e :
       {Scalar(2), Scalar(2.0), Scalar(3), Scalar(0.5), Scalar(-1.0), Scalar(1.7), Scalar(0)}) {
    exponent = e;
    EXPECT_TRUE(same_bits(c(), f())) << e.to_double();
  }
  const uint64_t planned = record::Recorder::current().counts().planned;
  exponent = 1.3;
  EXPECT_TRUE(same_bits(c(), f()));
  EXPECT_EQ(record::Recorder::current().counts().planned, planned);
}

TEST(Record, LongChainsOfNumbersAreCutAndNotGivenUp) {
  const Tensor x = randn({5000});
  const auto f = [&] {
    Tensor y = x;
    for (int i = 0; i < 200; ++i) y = y * 1.01 + 1;
    return y;
  };
  const uint64_t program = record::new_program();
  record::Scope scope(program, kAll);
  const Tensor got = f();
  scope.end();
  EXPECT_TRUE(same_bits(got, f()));
  size_t steps = 0;
  for (const auto& planned : record::Recorder::current().summary(program).plans)
    steps += planned.plan->num_steps();
  EXPECT_LT(steps, 20u);
}

TEST(Record, ATrainingStepHasEagersBits) {
  const auto train = [](bool compiled) {
    manual_seed(3);
    Tensor w = randn({8, 4}).requires_grad_(), b = zeros({4}).requires_grad_();
    const Tensor x = randn({16, 8}), y = randn({16, 4});
    auto step = [&] {
      const Tensor loss = (relu(x.mm(w) + b) - y).pow(2).mean();
      loss.backward();
      const NoGradGuard guard;
      w.sub_(w.grad() * 0.1);
      b.sub_(b.grad() * 0.1);
      w.set_grad({});
      b.set_grad({});
      return loss.detach();
    };
    auto c = compile(step, kAll);
    Tensor loss;
    for (int i = 0; i < 4; ++i) loss = compiled ? c() : step();
    return std::tuple(w.detach(), b.detach(), loss);
  };
  const auto [w, b, loss] = train(false);
  const auto [cw, cb, closs] = train(true);
  EXPECT_TRUE(same_bits(w, cw));
  EXPECT_TRUE(same_bits(b, cb));
  EXPECT_TRUE(same_bits(loss, closs));
}

}  // namespace
}  // namespace tenon
