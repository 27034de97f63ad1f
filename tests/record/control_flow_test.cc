// Programs whose way depends on values, on what is around them, and on each other.
#include "tests/record/beside_eager.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(RecordedControlFlow, PrintingComputesAndHeadersDoNot) {
  const uint64_t program = record::new_program();
  record::Scope scope(program, kAll);
  const Tensor y = ramp({2, 3}).exp();
  EXPECT_EQ(y.t().sizes(), IntArrayRef({3, 2}));
  EXPECT_EQ(y.size(0), 2);
  EXPECT_TRUE(y.storage()->is_pending());
  const std::string shown = to_string(y);
  EXPECT_FALSE(y.storage()->is_pending());
  scope.end();
  EXPECT_EQ(shown, to_string(ramp({2, 3}).exp()));
}

TEST(RecordedControlFlow, WhatItReadsFromAroundItMayChange) {
  double k = 2;
  std::vector<Tensor> list{ones({3})};
  auto f = compile([&](const Tensor& x) { return x * k + list[0]; }, kAll);
  const Tensor x = ramp({3});
  EXPECT_TRUE(same_bits(f(x), x * 2 + 1));
  k = 3;
  EXPECT_TRUE(same_bits(f(x), x * 3 + 1));
  list[0] = ones({1}) * 5;
  EXPECT_TRUE(same_bits(f(x), x * 3 + 5));
}

TEST(RecordedControlFlow, LoopsAndBranchesOnValues) {
  alike([](auto c) {
    auto halved = c([](Tensor x) {
      while ((x * x).sum().template item<float>() > 1) x = x * 0.5;
      return x;
    });
    auto branched = c([](const Tensor& x) {
      if (x.gt(0).any().template item<bool>()) return x.exp();
      return x.isnan().all().template item<bool>() ? x * 0 : x - 1;
    });
    return Tensors{halved(ramp({3}) * 9), halved(ramp({3}) * 0.1), branched(ramp({9})), branched(ramp({3}))};
  });
}

TEST(RecordedControlFlow, RowsThatAreReadOneByOnePlanTwice) {
  const Tensor x = ramp({30, 4});
  double sum = 0, wanted = 0;
  for (int64_t i = 0; i < 30; ++i) wanted += x.select(0, i).exp().sum().item<float>();
  const uint64_t before = planned();
  auto f = compile(
      [&] {
        for (int64_t i = 0; i < 30; ++i) sum += x.select(0, i).exp().sum().item<float>();
      },
      kAll);
  f();
  EXPECT_EQ(sum, wanted);
  EXPECT_EQ(planned() - before, 1u);
}

TEST(RecordedControlFlow, ManyCallsWithoutAReadAreBounded) {
  const uint64_t program = record::new_program(), before = planned();
  record::Scope scope(program, kAll);
  Tensor x = ones({4});
  for (int i = 0; i < 40'000; ++i) x = x * 1.0001;
  scope.end();
  Tensor wanted = ones({4});
  for (int i = 0; i < 40'000; ++i) wanted = wanted * 1.0001;
  EXPECT_TRUE(same_bits(x, wanted));
  EXPECT_LE(record::Recorder::current().summary(program).num_nodes, 2u * 4096 + 2);
  EXPECT_LE(planned() - before, 3u) << "the first, those that follow it, and the rest";
}

TEST(RecordedControlFlow, ChunksThatAreAddedUpHoldNoMoreThanTheyMay) {
  const auto run = [](int chunks) {
    const int64_t n = int64_t{4} << 20;  // 16 MiB
    Tensor sum = zeros({n});
    for (int i = 0; i < chunks; ++i) sum.add_((full({n}, static_cast<double>(i)) * 2).sin_());
    return sum;
  };
  const auto peak_of = [](auto f) {
    reset_cpu_peak_memory_stats();
    const int64_t before = cpu_memory_stats().allocated_bytes.current;
    f();
    return cpu_memory_stats().allocated_bytes.peak - before;
  };
  const int64_t eager = peak_of([&] { run(3); });
  EXPECT_LE(peak_of([&] { compile(run, kAll)(24); }), eager + eager / 20 + (int64_t{256} << 20));
}

TEST(RecordedControlFlow, CompiledFunctionsInEachOther) {
  alike([](auto c) {
    auto inner = c([](const Tensor& x) { return (x * 2).relu(); });
    auto other = c([&](const Tensor& x) { return inner(x) + inner(x + 1); });
    Tensor a = ramp({3}), b = ramp({3});
    auto outer = c([&] {
      a.add_(inner(b));
      b.mul_(0.5);
      a.sub_(other(b));
      return Tensors{a + 0, b + a};
    });
    outer();
    return outer();
  });
}

Tensor power_sum(const Tensor& x, int n) {
  auto f = compile([&] { return n == 0 ? x : power_sum(x * 0.5, n - 1) + x.exp(); }, kAll);
  return f();
}

TEST(RecordedControlFlow, Recursion) {
  const Tensor x = ramp({4});
  Tensor wanted = x * 0.5 * 0.5 * 0.5;
  for (const Tensor& t : {x * 0.5 * 0.5, x * 0.5, x}) wanted = wanted + t.exp();
  EXPECT_TRUE(same_bits(power_sum(x, 3), wanted));
}

TEST(RecordedControlFlow, ShapesThatAlternatePlanOnceEach) {
  auto f = compile([](const Tensor& x) { return (x * 2 + 1).sum(0); }, kAll);
  const uint64_t before = planned();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const int64_t rows : {8, 8, 8, 3}) {
      const Tensor x = ramp({rows, 2});
      EXPECT_TRUE(same_bits(f(x), (x * 2 + 1).sum(0)));
    }
  }
  EXPECT_EQ(planned() - before, 2u);
}

TEST(RecordedControlFlow, AProgramThatThrowsInTheMiddle) {
  Tensor p = ramp({3});
  Tensor escaped;
  auto f = compile(
      [&] {
        p.mul_(2);
        escaped = p + 1;
        throw std::runtime_error("stop");
      },
      kAll);
  EXPECT_EQ(error_of(f), "stop");
  EXPECT_TRUE(same_bits(p, ramp({3}) * 2));
  EXPECT_TRUE(same_bits(escaped, ramp({3}) * 2 + 1));
}

}  // namespace
}  // namespace tenon
