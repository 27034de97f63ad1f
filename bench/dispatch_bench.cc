// What a call costs above its kernel: dispatch of kernels that do nothing, boxed and unboxed, and the
// innermost factory. Run pinned: taskset -c 1 build/release/bench/dispatch_bench
#include <benchmark/benchmark.h>

#include "tenon/dispatch/library.h"

namespace tenon {
namespace {

int64_t none(const Tensor&) { return 0; }
int64_t none2(const Tensor&, const Tensor&) { return 0; }
Tensor& none_(Tensor& self) { return self; }
Tensor& none_autograd_(DispatchKeySet keys, Tensor& self) {
  static const auto op =
      Dispatcher::singleton().find_schema_or_throw("bench::none_").typed<Tensor&(Tensor&)>();
  return op.redispatch(keys.below(Functionality::Autograd), self);
}
void boxed(const OperatorHandle&, DispatchKeySet, Stack& stack) {
  stack.clear();
  stack.push<int64_t>(0);
}

TENON_LIBRARY(bench, m) {
  m.def("none(Tensor a) -> int");
  m.def("none2(Tensor a, Tensor b) -> int");
  m.def("none_(Tensor(a!) self) -> Tensor(a!)");
  m.def("boxed(Tensor a) -> int");
}
TENON_LIBRARY_IMPL(bench, CPU, m) {
  m.impl("none", &none);
  m.impl("none2", &none2);
  m.impl("none_", &none_);
  m.impl("boxed", CppFunction::make_from_boxed_function<&boxed>());
}
TENON_LIBRARY_IMPL(bench, Autograd, m) { m.impl("none_", &none_autograd_); }

template <class Sig>
TypedOperator<Sig> op(const char* name) {
  return Dispatcher::singleton().find_schema_or_throw(name).typed<Sig>();
}

void dispatch_one_argument(benchmark::State& state) {
  const auto f = op<int64_t(const Tensor&)>("bench::none");
  const Tensor a = make_empty({1}, kFloat32);
  for (auto _ : state) benchmark::DoNotOptimize(f.call(a));
}
void dispatch_two_arguments(benchmark::State& state) {
  const auto f = op<int64_t(const Tensor&, const Tensor&)>("bench::none2");
  const Tensor a = make_empty({1}, kFloat32), b = make_empty({1}, kFloat32);
  for (auto _ : state) benchmark::DoNotOptimize(f.call(a, b));
}
void dispatch_in_place(benchmark::State& state) {
  const auto f = op<Tensor&(Tensor&)>("bench::none_");
  Tensor a = make_empty({1}, kFloat32);
  for (auto _ : state) benchmark::DoNotOptimize(&f.call(a));
}
void dispatch_in_place_through_autograd(benchmark::State& state) {
  const auto f = op<Tensor&(Tensor&)>("bench::none_");
  Tensor a = make_empty({1}, kFloat32);
  a.impl()->set_keys(a.key_set() | kAutogradKeys);
  for (auto _ : state) benchmark::DoNotOptimize(&f.call(a));
}
void dispatch_typed_call_of_boxed_kernel(benchmark::State& state) {
  const auto f = op<int64_t(const Tensor&)>("bench::boxed");
  const Tensor a = make_empty({1}, kFloat32);
  for (auto _ : state) benchmark::DoNotOptimize(f.call(a));
}
void boxed_call_of_typed_kernel(benchmark::State& state) {
  const auto f = op<int64_t(const Tensor&)>("bench::none");
  const Tensor a = make_empty({1}, kFloat32);
  Stack stack;
  for (auto _ : state) {
    stack.push(a);
    f.call_boxed(stack);
    stack.clear();
  }
}
void direct_call(benchmark::State& state) {
  const Tensor a = make_empty({1}, kFloat32);
  int64_t (*volatile f)(const Tensor&) = &none;
  for (auto _ : state) benchmark::DoNotOptimize(f(a));
}
void make_empty_one(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(make_empty({1}, kFloat32).impl());
}
void make_view_one(benchmark::State& state) {
  const Tensor a = make_empty({2, 3}, kFloat32);
  for (auto _ : state) benchmark::DoNotOptimize(make_view(a, {3, 2}, {1, 3}, 0).impl());
}

BENCHMARK(direct_call);
BENCHMARK(dispatch_one_argument);
BENCHMARK(dispatch_two_arguments);
BENCHMARK(dispatch_in_place);
BENCHMARK(dispatch_in_place_through_autograd);
BENCHMARK(dispatch_typed_call_of_boxed_kernel);
BENCHMARK(boxed_call_of_typed_kernel);
BENCHMARK(make_empty_one);
BENCHMARK(make_view_one);

}  // namespace
}  // namespace tenon

BENCHMARK_MAIN();
