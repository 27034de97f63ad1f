// Reductions by the fixed tree, by length and direction (docs/decisions/0004-reduction-tree.md).
#include <benchmark/benchmark.h>

#include <vector>

#include "backends/cpu/reduce/arg_reduce.h"
#include "backends/cpu/reduce/reduce.h"

namespace {

using tenon::cpu::ReduceOp;

template <class T>
std::vector<T> values(int64_t n) {
  std::vector<T> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 2654435761u % 1000);
  return x;
}

void per_element(benchmark::State& state, int64_t n) {
  state.counters["ns/element"] =
      benchmark::Counter(1e-9 * static_cast<double>(n),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class T, ReduceOp kOp>
void contiguous(benchmark::State& state) {
  const auto x = values<T>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(tenon::cpu::reduce_contiguous(kOp, x.data(), x.size()));
  per_element(state, state.range(0));
}

template <class T>
void outer(benchmark::State& state) {
  const int64_t rows = state.range(0), columns = state.range(1);
  const auto x = values<T>(rows * columns);
  std::vector<T> out(static_cast<size_t>(columns));
  for (auto _ : state) {
    tenon::cpu::reduce_outer(ReduceOp::Sum, x.data(), columns, static_cast<size_t>(rows), out.data(),
                             out.size());
    benchmark::ClobberMemory();
  }
  per_element(state, rows * columns);
}

template <class T>
void argmax(benchmark::State& state) {
  const auto x = values<T>(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(tenon::cpu::arg_reduce_contiguous(ReduceOp::Max, x.data(), x.size()).index);
  }
  per_element(state, state.range(0));
}

void lengths(benchmark::internal::Benchmark* b) {
  for (const int64_t n : {10, 128, 1000, 10000, 1000000, 1 << 24}) b->Arg(n);
}

void matrices(benchmark::internal::Benchmark* b) {
  b->ArgNames({"rows", "columns"});
  b->Args({32, 128})->Args({100, 100})->Args({1000, 1000})->Args({4096, 4096})->Args({100000, 8});
}

BENCHMARK(contiguous<float, ReduceOp::Sum>)->Name("sum/float32")->Apply(lengths);
BENCHMARK(contiguous<double, ReduceOp::Sum>)->Name("sum/float64")->Apply(lengths);
BENCHMARK(contiguous<int64_t, ReduceOp::Sum>)->Name("sum/int64")->Apply(lengths);
BENCHMARK(contiguous<float, ReduceOp::Max>)->Name("max/float32")->Apply(lengths);
BENCHMARK(argmax<float>)->Name("argmax/float32")->Apply(lengths);
BENCHMARK(outer<float>)->Name("sum over rows/float32")->Apply(matrices);

}  // namespace

BENCHMARK_MAIN();
