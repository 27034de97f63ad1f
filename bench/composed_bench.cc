// A product with what stands around it: eager calls beside the same calls recorded.
#include <benchmark/benchmark.h>

#include "tenon/record/compile.h"
#include "tenon/tenon.h"

namespace {

using namespace tenon;

// Rows m, k, n; whether it is recorded.
void product(benchmark::State& state) {
  set_num_threads(1);
  const NoGradGuard guard;
  const Tensor x = randn({state.range(0), state.range(1)}), w = randn({state.range(1), state.range(2)});
  const Tensor b = randn({state.range(2)});
  const auto f = [&] { return gelu(mm(x, w) + b).sum({1}); };
  auto recorded = compile(f, {.threshold = 0});
  for (auto _ : state) benchmark::DoNotOptimize(state.range(3) ? recorded() : f());
}
BENCHMARK(product)
    ->Name("matmul_bias_gelu_row_sum")
    ->ArgNames({"m", "k", "n", "recorded"})
    ->ArgsProduct({{64, 2048}, {784}, {512}, {0, 1}})
    ->ArgsProduct({{2048}, {64}, {1024}, {0, 1}})
    ->Unit(benchmark::kMicrosecond);

void convolution(benchmark::State& state) {
  set_num_threads(1);
  const NoGradGuard guard;
  const Tensor x = randn({16, 16, 32, 32}), w = randn({32, 16, 3, 3}), b = randn({32, 1, 1});
  const auto f = [&] { return relu(conv2d(x, w, {}, 1, 1) + b); };
  auto recorded = compile(f, {.threshold = 0});
  for (auto _ : state) benchmark::DoNotOptimize(state.range(0) ? recorded() : f());
}
BENCHMARK(convolution)
    ->Name("conv_bias_relu")
    ->ArgName("recorded")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
