// What running a plan costs above its kernels: the same loop over elements by a plan, and called directly.
// Run with one thread: taskset -c 0 build/release/bench/plan_bench
#include <benchmark/benchmark.h>

#include "tenon/builder/graph.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

struct Chain {
  Tensor x = randn({16}), a = randn({16}), b = randn({16}), out = empty({16});
  builder::Graph g;

  Chain() {
    auto &tx = g.tensor_like(x), &ta = g.tensor_like(a), &tb = g.tensor_like(b);
    auto& y = g.pointwise("swish", {&g.add(g.mul(tx, ta), tb)});
    g.add(g.mul(y, g.pointwise("tanh", {&tx})), tb).set_output();
    g.build();
  }
};

void plan(benchmark::State& state) {
  const Chain c;
  const auto address = [](const Tensor& t) { return reinterpret_cast<Address>(t.data_ptr()); };
  const Address sorted[] = {address(c.x), address(c.a), address(c.b), address(c.out)};
  for (auto _ : state) c.g.plan()->execute(sorted, {});
}
BENCHMARK(plan);

/// The same region, without a plan around it.
void kernel(benchmark::State& state) {
  const Chain c;
  const graph::Graph& g = c.g.plan()->graph();
  const graph::LoopStep loop(g, g.nodes[0]);
  // The factors of the sums' second terms.
  const std::vector<Scalar> ones(g.numbers.size(), 1);
  std::vector<uint64_t> numbers(loop.num_numbers());
  loop.put_numbers(ones, numbers.data());
  std::vector<char*> addresses;
  for (const Tensor* t : {&c.out, &c.x, &c.a, &c.b}) addresses.push_back(static_cast<char*>(t->data_ptr()));
  for (auto _ : state) loop.run(addresses.data(), numbers.data());
}
BENCHMARK(kernel);

void eager(benchmark::State& state) {
  const Chain c;
  for (auto _ : state) benchmark::DoNotOptimize(silu(c.x * c.a + c.b) * tanh(c.x) + c.b);
}
BENCHMARK(eager);

/// The first build of the graph: operators, regions, engines, steps.
void build(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Chain().g.plan());
}
BENCHMARK(build);

/// Its plan from bytes.
void read(benchmark::State& state) {
  const Chain c;
  const std::vector<std::byte> bytes = c.g.serialize();
  for (auto _ : state) {
    builder::Graph g;
    g.deserialize(bytes);
    benchmark::DoNotOptimize(g.plan());
  }
}
BENCHMARK(read);

}  // namespace
}  // namespace tenon

BENCHMARK_MAIN();
