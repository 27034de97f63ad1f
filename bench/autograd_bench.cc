// What autograd adds to a call and to a backward step: one-element tensors, so that arithmetic does not
// count. Run pinned: taskset -c 1 build/release/bench/autograd_bench
#include <benchmark/benchmark.h>

#include "tenon/autograd/autograd.h"
#include "tenon/autograd/engine.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"

namespace tenon {
namespace {

void add_plain(benchmark::State& state) {
  const Tensor a = tenon::ones({1}), b = tenon::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(tenon::add(a, b));
}
void add_recorded(benchmark::State& state) {
  const Tensor a = tenon::ones({1}).requires_grad_(), b = tenon::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(tenon::add(a, b));
}
void add_recorded_off(benchmark::State& state) {
  const Tensor a = tenon::ones({1}).requires_grad_(), b = tenon::ones({1});
  const NoGradGuard guard;
  for (auto _ : state) benchmark::DoNotOptimize(tenon::add(a, b));
}
void mul_plain(benchmark::State& state) {
  const Tensor a = tenon::ones({1}), b = tenon::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(tenon::mul(a, b));
}
void mul_recorded(benchmark::State& state) {
  const Tensor a = tenon::ones({1}).requires_grad_(), b = tenon::ones({1}).requires_grad_();
  for (auto _ : state) benchmark::DoNotOptimize(tenon::mul(a, b));
}

/// Passes its gradient on: what is left is the engine.
class Pass final : public Node {
 public:
  explicit Pass(Edge next) {
    add_input(autograd::TensorMeta({1}, kFloat32, kCPU));
    add_edge(std::move(next));
  }
  std::string_view name() const noexcept final { return "Pass"; }
  void apply(autograd::NodeCall& call) final { call.out[0] = std::move(call.grads[0]); }
};

/// Nanoseconds per node of a chain.
void engine_step(benchmark::State& state) {
  const Tensor x = tenon::ones({1}).requires_grad_();
  const Tensor one = tenon::ones({1});
  Edge root = autograd::gradient_edge(x);
  constexpr int kNodes = 1000;
  for (int i = 0; i < kNodes; ++i) root = {IntrusivePtr<Node>::adopt(new Pass(root)), 0};
  for (auto _ : state) autograd::run_backward({&root, 1}, {&one, 1}, {}, {.retain_graph = true});
  state.SetItemsProcessed(state.iterations() * kNodes);
}
/// Forward and backward of a chain of additions.
void forward_backward_add(benchmark::State& state) {
  const Tensor x = tenon::ones({1}).requires_grad_(), b = tenon::ones({1});
  constexpr int kNodes = 1000;
  for (auto _ : state) {
    Tensor y = x;
    for (int i = 0; i < kNodes; ++i) y = tenon::add(y, b);
    y.backward();
  }
  state.SetItemsProcessed(state.iterations() * kNodes);
}

BENCHMARK(add_plain);
BENCHMARK(add_recorded_off);
BENCHMARK(add_recorded);
BENCHMARK(mul_plain);
BENCHMARK(mul_recorded);
BENCHMARK(engine_step);
BENCHMARK(forward_backward_add);

}  // namespace
}  // namespace tenon

BENCHMARK_MAIN();
