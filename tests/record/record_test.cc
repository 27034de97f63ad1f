#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tenon/record/compile.h"
#include "tenon/record/recorder.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

constexpr record::ScopeOptions kAll{.threshold = 0};

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.sizes().to_dims() != b.sizes().to_dims() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

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
  const record::Counts& now = record::Recorder::current().counts();
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
  record::Recorder::current().program(program)->trie.each([&](const record::TrieNode& node) {
    for (const record::PlannedSegment& p : node.plans) steps += p.plan->num_steps();
  });
  EXPECT_LT(steps, 20u);
}

TEST(Record, ABadIndexThrowsAtTheFlushAndWhenItIsRead) {
  const Tensor x = randn({4}), i = tensor({1, 9});
  record::Scope scope(record::new_program(), kAll);
  const Tensor good = x + 1;
  const Tensor bad = x.index_select(0, i);
  const Tensor after = bad * 2;
  EXPECT_THROW(record::flush(), Error);
  EXPECT_TRUE(same_bits(good, x + 1));
  EXPECT_THROW(after.data_ptr(), Error);
  EXPECT_THROW(bad.data_ptr(), Error);
  scope.end();
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

TEST(Record, AnotherThreadMayReadWhatIsPending) {
  const Tensor x = randn({100});
  record::Scope scope(record::new_program(), kAll);
  const Tensor y = x.exp().sum();
  double there = 0;
  std::thread([&] { there = y.item<float>(); }).join();
  scope.end();
  EXPECT_EQ(there, x.exp().sum().item<float>());
}

TEST(Record, ThreadsThatShareWeightsHaveEagersBits) {
  Tensor w = randn({32, 32});
  const Tensor x = randn({8, 32});
  const auto f = [&](const Tensor& t) { return relu(t.mm(w) * 0.5 + 1).sum(1); };
  const Tensor wanted = f(x);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      auto c = compile(f, kAll);
      bool all = true;
      for (int k = 0; k < 20; ++k) all &= same_bits(c(x), wanted);
      right += all;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST(Record, AWriteElsewhereComesAfterWhatWasRecordedToRead) {
  Tensor w = ones({64});
  std::barrier recorded(2), written(2);
  Tensor sum;
  std::thread reader([&] {
    record::Scope scope(record::new_program(), kAll);
    sum = (w * 2).sum();
    recorded.arrive_and_wait();
    written.arrive_and_wait();
    scope.end();
  });
  recorded.arrive_and_wait();
  w.fill_(100);
  written.arrive_and_wait();
  reader.join();
  EXPECT_EQ(sum.item<float>(), 128);
}

TEST(Record, ManyThreadsReadWhatOneRecords) {
  const Tensor x = randn({1000});
  record::Scope scope(record::new_program(), kAll);
  std::vector<Tensor> pending;
  for (int i = 0; i < 8; ++i) pending.push_back((x + i).exp().sum());
  std::vector<float> got(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&, i] { got[i] = pending[i].item<float>(); });
  for (auto& thread : threads) thread.join();
  scope.end();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(got[i], (x + i).exp().sum().item<float>());
}

TEST(Record, AProgramThatThrowsHasWrittenWhatEagerHas) {
  Tensor p = ones({3});
  auto f = compile(
      [&] {
        p.mul_(2);
        const Tensor unused = p + 1;
        throw std::runtime_error("stop");
      },
      kAll);
  EXPECT_THROW(f(), std::runtime_error);
  EXPECT_TRUE(same_bits(p, full({3}, 2.0f)));
}

TEST(Record, MemoryThatFailsLeavesInputsAsTheyWere) {
  const Tensor x = randn({5000}), before = x.clone();
  auto f = compile([&] { return (x * 2).cumsum(0); }, kAll);
  fail_cpu_allocation_after(1, 16 << 10);
  EXPECT_THROW(f(), Error);
  fail_cpu_allocation_after(0, 0);
  EXPECT_TRUE(same_bits(x, before));
  EXPECT_TRUE(same_bits(f(), (x * 2).cumsum(0)));
}

}  // namespace
}  // namespace tenon
