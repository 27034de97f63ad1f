// Threads: each records on its own; weights are shared; what one records others read, write and record on.
#include <atomic>
#include <barrier>
#include <thread>

#include "tenon/nn.h"
#include "tenon/optim.h"
#include "tests/record/beside_eager.h"

namespace tenon {
namespace {

using namespace tenon::testing;

constexpr int kThreads = 8;

// Runs `work(i)` on threads that begin together.
template <class F>
void in_threads(F work) {
  std::barrier begin(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      work(i);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(RecordedThreads, AnotherThreadMayReadWhatIsPending) {
  const Tensor x = randn({100});
  record::Scope scope(record::new_program(), kAll);
  const Tensor y = x.exp().sum();
  double there = 0;
  std::thread([&] { there = y.item<float>(); }).join();
  scope.end();
  EXPECT_EQ(there, x.exp().sum().item<float>());
}

TEST(RecordedThreads, ThreadsThatShareWeightsHaveEagersBits) {
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

TEST(RecordedThreads, AWriteElsewhereComesAfterWhatWasRecordedToRead) {
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

TEST(RecordedThreads, ManyThreadsReadWhatOneRecords) {
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

TEST(RecordedThreads, OneCompiledFunctionOnAllOfThem) {
  const Tensor w = ramp({6, 4});
  const auto f = compile([&](const Tensor& x) { return gelu(x.mm(w) + 1).sum(0); }, kAll);
  std::vector<Tensor> inputs, wanted, got(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    inputs.push_back(ramp({5, 6}) * i);
    wanted.push_back(gelu(inputs.back().mm(w) + 1).sum(0));
  }
  in_threads([&](int i) {
    auto own = f;  // the same program: each thread has plans of its own
    for (int k = 0; k < 20; ++k) got[static_cast<size_t>(i)] = own(inputs[static_cast<size_t>(i)]);
  });
  for (size_t i = 0; i < kThreads; ++i) EXPECT_TRUE(same_bits(got[i], wanted[i]));
}

TEST(RecordedThreads, EightModelsTrain) {
  const auto train = [](auto c, int seed) {
    Generator g(static_cast<uint64_t>(seed));
    Tensor w = (rand({6, 8}, g) - 0.5).requires_grad_(), v = (rand({8, 3}, g) - 0.5).requires_grad_();
    optim::Adam optimizer({w, v}, {.lr = 0.05});
    const Tensor x = ramp({7, 6}), y = tensor({0, 1, 2, 0, 1, 2, 1});
    auto step = c([&] {
      optimizer.zero_grad();
      const Tensor loss = cross_entropy_loss(x.mm(w).tanh().mm(v), y);
      loss.backward();
      optimizer.step();
      return loss.detach();
    });
    Tensors losses;
    for (int i = 0; i < 10; ++i) losses.push_back(step());
    return losses;
  };
  std::vector<Tensors> wanted, got(kThreads);
  for (int i = 0; i < kThreads; ++i) wanted.push_back(train([](auto f) { return f; }, i));
  in_threads([&](int i) { got[static_cast<size_t>(i)] = train([](auto f) { return compile(f, kAll); }, i); });
  for (size_t i = 0; i < kThreads; ++i) expect_same(got[i], wanted[i], "a thread's model");
}

TEST(RecordedThreads, GradientsOfSharedWeights) {
  Tensor w = ramp({3, 4}).requires_grad_();
  const Tensor x = ramp({5, 3});
  const auto gradient = [&](int i) {
    auto f = compile([&] { return (x * (i + 1)).mm(w).exp().sum(); }, kAll);
    return autograd::grad({f()}, {w})[0];
  };
  std::vector<Tensor> wanted, got(kThreads);
  for (int i = 0; i < kThreads; ++i) wanted.push_back(gradient(i));
  in_threads([&](int i) { got[static_cast<size_t>(i)] = gradient(i); });
  for (size_t i = 0; i < kThreads; ++i) EXPECT_TRUE(same_bits(got[i], wanted[i]));
}

TEST(RecordedThreads, AnotherThreadWritesAndRecordsOnWhatThisOneRecords) {
  alike([](auto c) {
    Tensor x = ramp({5});
    Tensors all;
    auto f = c([&] {
      Tensor y = x * 2;
      std::thread([&] {
        y.add_(100);
        x.sub_(1);
      }).join();
      std::thread([&] {
        auto inner = c([&] { return y.add_(1) * 3; });
        all.push_back(inner());
      }).join();
      return Tensors{y * 1, x + y};
    });
    for (const Tensor& t : f()) all.push_back(t);
    return all;
  });
}

TEST(RecordedThreads, WhatAThreadRecordedOutlivesIt) {
  Tensor y, x = ramp({5});
  std::thread([&] {
    // A scope that its thread does not end.
    record::Recorder::current().begin(record::new_program(), {.threshold = 0});
    y = x * 2;
    x.add_(1);
  }).join();
  // The next thread gets the recorder.
  std::thread([] {
    EXPECT_TRUE(same_bits(compile([] { return ramp({4}) * 3; }, kAll)(), ramp({4}) * 3));
  }).join();
  EXPECT_TRUE(same_bits(y, ramp({5}) * 2));
  EXPECT_TRUE(same_bits(x, ramp({5}) + 1));
}

TEST(RecordedThreads, TwoThatReadEachOthersDoNotWaitForEachOther) {
  std::barrier handed(2), read(2);
  Tensor shared[2];
  float own[2], other[2];
  const auto work = [&](int i) {
    auto f = compile(
        [&, i] {
          const Tensor y = arange(5).to(kFloat32) * (i + 2);
          shared[i] = y;
          handed.arrive_and_wait();
          other[i] = shared[1 - i].sum().item<float>();
          read.arrive_and_wait();
          own[i] = y.sum().item<float>();
        },
        kAll);
    f();
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  EXPECT_EQ(own[0], 20);
  EXPECT_EQ(own[1], 30);
  EXPECT_EQ(other[0], 30);
  EXPECT_EQ(other[1], 20);
}

}  // namespace
}  // namespace tenon
