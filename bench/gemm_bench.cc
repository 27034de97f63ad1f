// Tenon's matrix product beside OpenBLAS, by shape and orientation (docs/decisions/0003-gemm-order.md).
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "backends/cpu/gemm/openblas.h"

namespace {

using tenon::cpu::GemmArgs;

/// Arguments m, k, n, then whether A and B are transposed, as the weight of a linear layer is.
template <class T, void (*kProduct)(const GemmArgs<T>&)>
void product(benchmark::State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  std::mt19937 generator(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  std::vector<T> a(static_cast<size_t>(m * k)), b(static_cast<size_t>(k * n)), c(static_cast<size_t>(m * n));
  for (T& x : a) x = uniform(generator);
  for (T& x : b) x = uniform(generator);
  GemmArgs<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data(), g.a_row = state.range(3) ? 1 : k, g.a_col = state.range(3) ? m : 1;
  g.b = b.data(), g.b_row = state.range(4) ? 1 : n, g.b_col = state.range(4) ? k : 1;
  g.c = c.data(), g.c_row = n, g.c_col = 1;
  if (kProduct == tenon::cpu::blas_gemm<T> && !tenon::cpu::has_blas())
    return state.SkipWithError("built without OpenBLAS");
  for (auto _ : state) {
    kProduct(g);
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPS"] = benchmark::Counter(2e-9 * static_cast<double>(m * n * k),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void shapes(benchmark::internal::Benchmark* b) {
  b->ArgNames({"m", "k", "n", "At", "Bt"});
  for (const int64_t size : {8, 64, 128, 512, 1024}) b->Args({size, size, size, 0, 0});
  b->Args({8, 8, 8, 0, 1})->Args({512, 512, 512, 1, 0})->Args({512, 512, 512, 0, 1});
  b->Args({64, 128, 128, 0, 0})->Args({64, 128, 128, 0, 1});
  b->Args({1, 64, 128, 0, 0})->Args({1, 64, 128, 0, 1})->Args({1, 784, 128, 0, 0})->Args({1, 784, 128, 0, 1});
  b->Args({32, 784, 128, 0, 1})->Args({784, 32, 128, 1, 0});
}

BENCHMARK(product<float, tenon::cpu::gemm<float>>)->Name("tenon/float32")->Apply(shapes);
BENCHMARK(product<float, tenon::cpu::blas_gemm<float>>)->Name("openblas/float32")->Apply(shapes);
BENCHMARK(product<double, tenon::cpu::gemm<double>>)->Name("tenon/float64")->Apply(shapes);
BENCHMARK(product<double, tenon::cpu::blas_gemm<double>>)->Name("openblas/float64")->Apply(shapes);

}  // namespace

BENCHMARK_MAIN();
