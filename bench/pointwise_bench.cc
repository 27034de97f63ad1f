// What the call path of pointwise operators costs above the kernel, case by case, and what a large copy
// moves. Run pinned: taskset -c 1 build/release/bench/pointwise_bench
#include <benchmark/benchmark.h>

#include "backends/cpu/copy/copy.h"
#include "tenon/iter/host.h"
#include "tenon/iter/pointwise.h"

namespace tenon {
namespace {

void add_f32(void* const* ptrs, size_t n, const void* scalars, uint32_t /*repeated*/) {
  auto* out = static_cast<float*>(ptrs[0]);
  const auto* a = static_cast<const float*>(ptrs[1]);
  const auto* b = static_cast<const float*>(ptrs[2]);
  const float alpha = *static_cast<const float*>(scalars);
  for (size_t i = 0; i < n; ++i) out[i] = a[i] + alpha * b[i];
}

constexpr const char* kNames[] = {"self", "other"};
constexpr const char* kScalars[] = {"alpha"};
const PointwiseInfo kAdd{
    .name = "add", .text = "self + alpha * other", .tensor_names = kNames, .scalar_names = kScalars};
// The build prints no kernel for the operands in this order.
const PointwiseInfo kInterpreted{
    .name = "add", .text = "alpha * other + self", .tensor_names = kNames, .scalar_names = kScalars};

Tensor zeros(IntArrayRef sizes, DType t = DType::Float32) {
  Tensor x = make_empty(sizes, t);
  std::memset(x.data_ptr(), 0, x.nbytes());
  return x;
}
Tensor transposed(const Tensor& t) {
  return make_view(t, {t.size(1), t.size(0)}, {t.stride(1), t.stride(0)}, t.storage_offset());
}

void run(benchmark::State& state, const PointwiseInfo& info, const Tensor& a, const Tensor& b) {
  const Tensor* tensors[] = {&a, &b};
  const Scalar alpha = 1;
  const Scalar* scalars[] = {&alpha};
  for (auto _ : state) benchmark::DoNotOptimize(pointwise(info, tensors, scalars));
}

void kernel_alone(benchmark::State& state) {
  const Tensor a = zeros({1}), b = zeros({1}), out = zeros({1});
  void* ptrs[] = {out.data_ptr(), a.data_ptr(), b.data_ptr()};
  const float alpha = 1;
  HostKernel::Function f = &add_f32;
  for (auto _ : state) {
    benchmark::DoNotOptimize(f);
    f(ptrs, 1, &alpha, 0);
  }
}
void allocation_alone(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(make_empty({1}, DType::Float32));
}
void one_element(benchmark::State& state) { run(state, kAdd, zeros({1}), zeros({1})); }
void one_element_in_place(benchmark::State& state) {
  Tensor a = zeros({1}), b = zeros({1});
  const Tensor* tensors[] = {&a, &b};
  const Scalar alpha = 1;
  const Scalar* scalars[] = {&alpha};
  for (auto _ : state) pointwise_out(kAdd, tensors, scalars, a, true);
}
void one_element_interpreted(benchmark::State& state) { run(state, kInterpreted, zeros({1}), zeros({1})); }
void broadcast_bias_10(benchmark::State& state) { run(state, kAdd, zeros({1, 10}), zeros({10})); }
void broadcast_bias_64x10(benchmark::State& state) { run(state, kAdd, zeros({64, 10}), zeros({10})); }
void broadcast_bias_64x128(benchmark::State& state) { run(state, kAdd, zeros({64, 128}), zeros({128})); }
void zero_dim_operand(benchmark::State& state) { run(state, kAdd, zeros({64}), zeros({})); }
void promoted(benchmark::State& state) { run(state, kAdd, zeros({64}), zeros({64}, DType::Int64)); }
void dense_1m(benchmark::State& state) { run(state, kAdd, zeros({1000, 1000}), zeros({1000, 1000})); }
void transposed_1m(benchmark::State& state) {
  run(state, kAdd, zeros({1000, 1000}), transposed(zeros({1000, 1000})));
}
void half_1m(benchmark::State& state) {
  run(state, kAdd, zeros({1000, 1000}, DType::Float16), zeros({1000, 1000}, DType::Float16));
}
void copy_transposed_1m(benchmark::State& state) {
  const Tensor src = transposed(zeros({1000, 1000})), dst = zeros({1000, 1000});
  for (auto _ : state) cpu::copy_strided(dst, src);
}
void copy_half_1m(benchmark::State& state) {
  const Tensor src = zeros({1000000}, DType::Float16), dst = zeros({1000000});
  for (auto _ : state) cpu::copy_strided(dst, src);
}
void copy_to_half_1m(benchmark::State& state) {
  const Tensor src = zeros({1000000}), dst = zeros({1000000}, DType::Float16);
  for (auto _ : state) cpu::copy_strided(dst, src);
}

BENCHMARK(kernel_alone);
BENCHMARK(allocation_alone);
BENCHMARK(one_element);
BENCHMARK(one_element_in_place);
BENCHMARK(one_element_interpreted);
BENCHMARK(broadcast_bias_10);
BENCHMARK(broadcast_bias_64x10);
BENCHMARK(broadcast_bias_64x128);
BENCHMARK(zero_dim_operand);
BENCHMARK(promoted);
BENCHMARK(dense_1m)->Unit(benchmark::kMicrosecond);
BENCHMARK(transposed_1m)->Unit(benchmark::kMicrosecond);
BENCHMARK(half_1m)->Unit(benchmark::kMicrosecond);
BENCHMARK(copy_transposed_1m)->Unit(benchmark::kMicrosecond);
BENCHMARK(copy_half_1m)->Unit(benchmark::kMicrosecond);
BENCHMARK(copy_to_half_1m)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tenon

BENCHMARK_MAIN();
