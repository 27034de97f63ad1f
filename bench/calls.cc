// What one call costs in C++: the rows of bench/compare.py that need no Python.
#include <benchmark/benchmark.h>

#include "tenon/nn.h"
#include "tenon/tenon.h"

namespace {

using tenon::Tensor;

void nothing(const Tensor&) {}

TENON_LIBRARY(bench, m) { m.def("nothing(Tensor self) -> ()"); }
TENON_LIBRARY_IMPL(bench, CPU, m) { m.impl("nothing", &nothing); }

void dispatch(benchmark::State& state) {
  const auto op =
      tenon::Dispatcher::singleton().find_schema_or_throw("bench::nothing").typed<void(const Tensor&)>();
  const Tensor x = tenon::ones({1});
  for (auto _ : state) op.call(x);
}
BENCHMARK(dispatch)->Name("dispatch of a no-op kernel, C++");

void empty(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(tenon::empty({1}));
}
BENCHMARK(empty)->Name("empty({1}), C++");

void add(benchmark::State& state) {
  const Tensor x = tenon::ones({1}), y = tenon::ones({1});
  for (auto _ : state) benchmark::DoNotOptimize(tenon::add(x, y));
}
BENCHMARK(add)->Name("add, 1 element, C++");

void transpose(benchmark::State& state) {
  const Tensor x = tenon::ones({3, 4});
  for (auto _ : state) benchmark::DoNotOptimize(x.transpose(0, 1));
}
BENCHMARK(transpose)->Name("transpose view, C++");

void mlp(benchmark::State& state) {
  namespace nn = tenon::nn;
  nn::Sequential model{nn::Linear(64, 128), nn::ReLU(), nn::Linear(128, 128), nn::ReLU(),
                       nn::Linear(128, 10)};
  const Tensor x = tenon::randn({1, 64});
  const Tensor label = tenon::tensor(std::vector<int64_t>{3});
  for (auto _ : state) {
    tenon::cross_entropy_loss(model(x), label).backward();
    for (const Tensor& p : model.parameters()) const_cast<Tensor&>(p).set_grad({});
  }
}
BENCHMARK(mlp)->Name("MLP forward + backward, batch 1, C++");

}  // namespace

BENCHMARK_MAIN();
