// maths_bench: nanoseconds per element of Tenon's own maths functions beside SLEEF and glibc's libmvec, AVX2,
// one core, 4,096 elements in cache. The two are looked up at run time and left out where they are missing.
// Figures in docs/decisions/0002.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <random>
#include <string>
#include <vector>

#include "backends/cpu/pointwise/primitive_table.h"
#include "tenon/expr/function.h"
#include "tenon/expr/primitives.h"

namespace {

using namespace tenon;

constexpr size_t kElements = 4096;

template <class T>
std::vector<T> inputs() {
  std::mt19937 rng(1);
  std::vector<T> values(kElements);
  for (T& v : values) v = static_cast<T>(0.1 + 7.0 * (rng() * 0x1p-32));
  return values;
}

template <class T>
void ours(benchmark::State& state, cpu::PointwiseFn kernel) {
  const std::vector<T> x = inputs<T>(), y(kElements, T(2.5));
  std::vector<T> out(kElements);
  void* ptrs[] = {out.data(), const_cast<T*>(x.data()), const_cast<T*>(y.data()), nullptr};
  for (auto _ : state) {
    kernel(ptrs, kElements, nullptr, 0);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kElements));
}

#if defined(__x86_64__)
using Float8 = float __attribute__((vector_size(32)));
using Double4 = double __attribute__((vector_size(32)));

template <class T, class V>
__attribute__((target("avx2,fma"))) void theirs(benchmark::State& state, void* function) {
  using Fn = V (*)(V);
  const auto f = reinterpret_cast<Fn>(function);
  const std::vector<T> x = inputs<T>();
  std::vector<T> out(kElements);
  constexpr size_t kLanes = sizeof(V) / sizeof(T);
  for (auto _ : state) {
    for (size_t i = 0; i < kElements; i += kLanes) {
      V v;
      __builtin_memcpy(&v, x.data() + i, sizeof v);
      v = f(v);
      __builtin_memcpy(out.data() + i, &v, sizeof v);
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kElements));
}

void register_theirs(const char* library, const std::string& label, const std::string& symbol,
                     bool is_float) {
  void* handle = dlopen(library, RTLD_NOW);
  void* function = handle != nullptr ? dlsym(handle, symbol.c_str()) : nullptr;
  if (function == nullptr) return;
  benchmark::RegisterBenchmark(label.c_str(), [function, is_float](benchmark::State& state) {
    is_float ? theirs<float, Float8>(state, function) : theirs<double, Double4>(state, function);
  });
}
#endif

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const expr::Type type : {expr::Type::F32, expr::Type::F64}) {
    const bool is_float = type == expr::Type::F32;
    for (uint16_t f = 0; f < expr::functions().size(); ++f) {
      const uint16_t number = expr::find_primitive({.op = expr::Op::Call, .function = f, .type = type});
      if (number == expr::kNoPrimitive) continue;
      const std::string name(expr::functions()[f].name), suffix(expr::suffix(type));
      for (const cpu::CpuTarget target : cpu::supported_cpu_targets()) {
        const cpu::PointwiseFn kernel = cpu::primitive(number, target);
        benchmark::RegisterBenchmark(
            (name + "_" + suffix + "/tenon/" + std::string(cpu::name(target))).c_str(),
            [=](benchmark::State& state) {
              is_float ? ours<float>(state, kernel) : ours<double>(state, kernel);
            });
      }
#if defined(__x86_64__)
      register_theirs("libsleef.so.3", name + "_" + suffix + "/sleef_u10/AVX2",
                      "Sleef_" + name + (is_float ? "f8" : "d4") + "_u10avx2", is_float);
      register_theirs("libmvec.so.1", name + "_" + suffix + "/libmvec/AVX2",
                      (is_float ? "_ZGVdN8v_" + name + "f" : "_ZGVdN4v_" + name), is_float);
#endif
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
