// Tenon's matrix product next to OpenBLAS's, by shape and orientation (docs/decisions/0003-gemm-order.md).
// OpenBLAS is looked for here alone: its rows say so where the loader finds none. OMP_NUM_THREADS is the
// number of threads of both.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cstring>
#include <random>
#include <span>
#include <type_traits>
#include <utility>

#include "backends/cpu/gemm/gemm.h"
#include "tenon/core/storage.h"

namespace {

using tenon::Storage;
using tenon::cpu::BatchedGemmArgs;
using tenon::cpu::GemmArgs;

/// Of cblas.h; integers have 32 bits.
enum Layout { kRowMajor = 101, kNoTranspose = 111, kTranspose = 112 };
template <class T>
using BlasGemm = void(int layout, int transpose_a, int transpose_b, int m, int n, int k, T alpha, const T* a,
                      int lda, const T* b, int ldb, T beta, T* c, int ldc);

/// Null where there is none.
template <class T>
BlasGemm<T>* find_openblas() {
  static void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  return library
             ? reinterpret_cast<BlasGemm<T>*>(dlsym(library, sizeof(T) == 4 ? "cblas_sgemm" : "cblas_dgemm"))
             : nullptr;
}

template <class T>
void openblas(const GemmArgs<T>& g) {
  static BlasGemm<T>* const gemm = find_openblas<T>();
  const auto flag = [](int64_t column) { return column == 1 ? kNoTranspose : kTranspose; };
  const auto leading = [](int64_t row, int64_t column) {
    return static_cast<int>(column == 1 ? row : column);
  };
  gemm(kRowMajor, flag(g.a_col), flag(g.b_col), static_cast<int>(g.m), static_cast<int>(g.n),
       static_cast<int>(g.k), T(1), g.a, leading(g.a_row, g.a_col), g.b, leading(g.b_row, g.b_col), T(0), g.c,
       static_cast<int>(g.c_row));
}

/// Operands are in memory as tensors have it: on huge pages if they are large.
template <class T>
T* values(const Storage& storage) {
  return reinterpret_cast<T*>(storage.address());
}

/// Products of m, k, n, with A and B transposed or not, as the weight of a linear layer is, and so many of
/// them.
template <class T, bool kOpenBlas>
void product(benchmark::State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2), batch = state.range(5);
  std::mt19937 generator(1);
  std::uniform_real_distribution<T> uniform(-1, 1);
  const auto random = [&](int64_t size) {
    const auto count = static_cast<size_t>(batch * size);
    Storage storage = Storage::allocate(count * sizeof(T));
    for (T& x : std::span(values<T>(storage), count)) x = uniform(generator);
    return storage;
  };
  const Storage a = random(m * k), b = random(k * n), c = random(m * n);
  BatchedGemmArgs<T> all;
  all.batch = batch, all.a_batch = m * k, all.b_batch = k * n, all.c_batch = m * n;
  GemmArgs<T>& g = all.one;
  g.m = m, g.n = n, g.k = k;
  g.a = values<T>(a), g.a_row = state.range(3) ? 1 : k, g.a_col = state.range(3) ? m : 1;
  g.b = values<T>(b), g.b_row = state.range(4) ? 1 : n, g.b_col = state.range(4) ? k : 1;
  g.c = values<T>(c), g.c_row = n, g.c_col = 1;
  if (kOpenBlas && !find_openblas<T>()) return state.SkipWithError("no libopenblas.so.0");
  for (auto _ : state) {
    if (kOpenBlas) {
      GemmArgs<T> one = g;
      for (int64_t i = 0; i < batch; ++i, one.a += m * k, one.b += k * n, one.c += m * n) openblas(one);
    } else {
      tenon::cpu::gemm_batched(all);
    }
    benchmark::ClobberMemory();
  }
  state.counters["GFLOPS"] = benchmark::Counter(2e-9 * static_cast<double>(batch * m * n * k),
                                                benchmark::Counter::kIsIterationInvariantRate);
}

/// As many copies of `bytes` as no cache holds, to be used in turn.
class Cold {
 public:
  explicit Cold(size_t bytes)
      : bytes_(bytes), count_(kAll / bytes), memory_(Storage::allocate(count_ * bytes)) {
    // Patterns that are small finite numbers of every type.
    std::memset(values<char>(memory_), 0x3c, count_ * bytes);
  }
  template <class T>
  const T* next() {
    at_ = (at_ + 1) % count_;
    return reinterpret_cast<const T*>(values<char>(memory_) + at_ * bytes_);
  }

 private:
  static constexpr size_t kAll = size_t{512} << 20;
  size_t bytes_, count_, at_ = 0;
  Storage memory_;
};

/// m rows times a weight [k, n] that is in no cache, stored so or as [n, k].
template <class T>
void few_rows(benchmark::State& state) {
  const int64_t m = state.range(0), k = state.range(1), n = state.range(2);
  const auto allocate = [](int64_t count) {
    return Storage::allocate(static_cast<size_t>(count) * sizeof(T));
  };
  const Storage a = allocate(m * k), c = allocate(m * n);
  std::memset(values<char>(a), 0x3c, a.nbytes());
  Cold weights(static_cast<size_t>(k * n) * sizeof(T));
  GemmArgs<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = values<T>(a), g.a_row = k, g.a_col = 1;
  g.b_row = state.range(3) ? 1 : n, g.b_col = state.range(3) ? k : 1;
  g.c = values<T>(c), g.c_row = n, g.c_col = 1;
  for (auto _ : state) {
    g.b = weights.next<T>();
    if constexpr (std::is_same_v<T, float>) {
      tenon::cpu::gemm(g);
    } else {
      tenon::cpu::gemm(g, {});
    }
    benchmark::ClobberMemory();
  }
}

/// What `few_rows` cannot be faster than.
template <class T>
void read_weight(benchmark::State& state) {
  const size_t words = static_cast<size_t>(state.range(1) * state.range(2)) * sizeof(T) / sizeof(uint64_t);
  Cold weights(words * sizeof(uint64_t));
  for (auto _ : state) {
    const auto* p = weights.next<uint64_t>();
    uint64_t sums[16] = {};
    for (size_t i = 0; i < words; i += 16) {
      for (size_t j = 0; j < 16; ++j) sums[j] += p[i + j];
    }
    benchmark::DoNotOptimize(sums);
  }
}

void weights(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"m", "k", "n", "Bt"});
  for (const auto& [k, n] : {std::pair{1024, 1024}, {1024, 4096}, {4096, 4096}, {4096, 16384}}) {
    for (const int transposed : {0, 1}) {
      for (const int m : {1, 2, 4, 8}) bench->Args({m, k, n, transposed});
    }
  }
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"m", "k", "n", "At", "Bt", "batch"});
  for (const int64_t size : {8, 64, 128, 256, 512, 1024, 2048}) bench->Args({size, size, size, 0, 0, 1});
  for (const int64_t size : {512, 1024})
    bench->Args({size, size, size, 1, 0, 1})->Args({size, size, size, 0, 1, 1});
  bench->Args({8, 8, 8, 0, 1, 1})->Args({64, 128, 128, 0, 0, 1})->Args({64, 128, 128, 0, 1, 1});
  bench->Args({1, 64, 128, 0, 0, 1})->Args({1, 64, 128, 0, 1, 1});
  bench->Args({1, 784, 128, 0, 0, 1})->Args({1, 784, 128, 0, 1, 1});
  bench->Args({32, 784, 128, 0, 1, 1})->Args({784, 32, 128, 1, 0, 1});
  // Few rows or columns, or little k, against much of the rest.
  bench->Args({32, 4096, 1024, 0, 0, 1})->Args({32, 4096, 1024, 0, 1, 1});
  bench->Args({2048, 64, 1024, 0, 0, 1})->Args({2048, 64, 1024, 0, 1, 1});
  bench->Args({65536, 64, 64, 0, 0, 1})->Args({65536, 64, 64, 0, 1, 1})->Args({64, 65536, 64, 1, 0, 1});
  for (const int64_t batch : {2, 64})
    bench->Args({256, 256, 256, 0, 0, batch})->Args({256, 64, 256, 0, 1, batch});
}

BENCHMARK(product<float, false>)->Name("tenon/float32")->Apply(shapes);
BENCHMARK(product<float, true>)->Name("openblas/float32")->Apply(shapes);
BENCHMARK(product<double, false>)->Name("tenon/float64")->Apply(shapes);
BENCHMARK(product<double, true>)->Name("openblas/float64")->Apply(shapes);

BENCHMARK(few_rows<float>)->Name("weight/float32")->Apply(weights);
BENCHMARK(few_rows<tenon::BFloat16>)->Name("weight/bfloat16")->Apply(weights);
BENCHMARK(few_rows<tenon::Half>)->Name("weight/float16")->Apply(weights);
BENCHMARK(read_weight<float>)->Name("read/float32")->Apply(weights);
BENCHMARK(read_weight<tenon::Half>)->Name("read/halves")->Apply(weights);

}  // namespace

BENCHMARK_MAIN();
