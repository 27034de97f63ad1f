#include "backends/cpu/gemm/gemm.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm/gemm_amx.h"
#include "backends/cpu/gemm/gemm_integer.h"
#include "backends/cpu/gemm/gemm_kernels.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// Multiplications that each further thread must bring: about 25 us of work against the 5 us that waking it
/// costs.
constexpr int64_t kParallelWork = int64_t{1} << 20;
/// The same in a batch, whose entries are not cut into pieces.
constexpr int64_t kBatchWork = int64_t{1} << 16;
/// Matrix units do that many in the time of one.
constexpr int64_t kUnitSpeed = 8;

template <class T>
constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Strides of dimensions of one element say nothing; give them the value that suits the kernels.
template <class T>
void settle_strides(GemmArgs<T>& g) {
  if (g.n == 1) g.b_col = g.c_col = 1;
  if (g.k == 1) g.a_col = 1, g.b_row = g.b_col == 1 ? g.n : 1;
}

template <class T>
void scale(const GemmArgs<T>& g, HalfGemmScale half) {
  for (int64_t i = 0; i < g.m; ++i) {
    if (g.bias) {
      std::copy_n(g.bias, g.n, g.c + i * g.c_row);
      continue;
    }
    if (g.row_bias) {
      std::fill_n(g.c + i * g.c_row, g.n, g.row_bias[i]);
      continue;
    }
    for (int64_t j = 0; j < g.n; ++j) {
      T& c = g.c[i * g.c_row + j * g.c_col];
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        c = static_cast<T>(static_cast<U>(c) * static_cast<U>(g.beta));
      } else if constexpr (kIsHalf<T>) {
        c = half.beta == 0 ? T(0.0f) : T(static_cast<float>(c) * half.beta);
      } else {
        c = g.beta == T(0) ? T(0) : c * g.beta;
      }
    }
  }
}

/// Whether matrix units compute: where there are some, and no instruction set was asked for.
template <class T>
bool has_units() {
  if constexpr (std::is_same_v<T, BFloat16>) return !cpu_target_is_forced() && amx_gemm_kernel();
  return false;
}

template <class T>
HalfGemmKernel<T> best_half_kernel() {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (has_units<T>()) return amx_gemm_kernel();
  }
  return half_gemm_kernel<T>(cpu_target());
}

template <class T>
void run(const GemmArgs<T>& g, HalfGemmScale half) {
  if constexpr (kIsHalf<T>) {
    static const HalfGemmKernel<T> kernel = best_half_kernel<T>();
    kernel(g, half);
  } else if constexpr (std::is_floating_point_v<T>) {
    static const GemmKernel<T> kernel = gemm_kernel<T>(cpu_target());
    kernel(g);
  } else {
    gemm_integer(g);
  }
}

/// How many pieces rows and columns are cut into for `threads` threads: the grid whose pieces read least.
struct Grid {
  int64_t rows, columns;
};

Grid choose_grid(int64_t m, int64_t n, int64_t threads) {
  Grid best{1, threads};
  int64_t least = m + n / threads;
  for (int64_t rows = 2; rows <= threads; ++rows) {
    if (threads % rows != 0) continue;
    const int64_t reads = m / rows + n / (threads / rows);
    if (reads < least) best = {rows, threads / rows}, least = reads;
  }
  return best;
}

/// First element of piece `index` of `count` pieces of `size` elements, in steps of `step`.
int64_t cut(int64_t size, int64_t step, int64_t index, int64_t count) {
  const int64_t steps = (size + step - 1) / step;
  return std::min(size, steps * index / count * step);
}

template <class T>
void run_parallel(const GemmArgs<T>& g, HalfGemmScale half) {
  const int64_t work = g.m * g.n * g.k / (has_units<T>() ? kUnitSpeed : 1);
  if (work < 2 * kParallelWork || in_parallel_region()) return run(g, half);
  const int64_t threads = std::min<int64_t>(num_threads(), work / kParallelWork);
  if (threads < 2) return run(g, half);
  const Grid grid = choose_grid(g.m, g.n, threads);
  constexpr int64_t kStep = kGemmPanel<T>;
  parallel_for(0, grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t row = piece / grid.columns, column = piece % grid.columns;
      const int64_t i0 = cut(g.m, 6, row, grid.rows), i1 = cut(g.m, 6, row + 1, grid.rows);
      const int64_t j0 = cut(g.n, kStep, column, grid.columns),
                    j1 = cut(g.n, kStep, column + 1, grid.columns);
      if (i0 == i1 || j0 == j1) continue;
      GemmArgs<T> part = g;
      part.m = i1 - i0, part.n = j1 - j0;
      part.a += i0 * g.a_row, part.c += i0 * g.c_row + j0 * g.c_col;
      part.b += g.b_panel != 0 ? j0 / kStep * g.b_panel : j0 * g.b_col;
      if (g.bias) part.bias += j0;
      if (g.row_bias) part.row_bias += i0;
      run(part, half);
    }
  });
}

template <class T>
void any_gemm(const GemmArgs<T>& args, HalfGemmScale half) {
  if (args.m <= 0 || args.n <= 0) return;
  if (args.k <= 0) return scale(args, half);
  // The kernels vectorise along rows of C: let them be its contiguous direction, and the longer one of a
  // vector.
  const bool fixed = args.bias || args.row_bias || args.b_panel != 0;
  const bool turn = !fixed && (args.n == 1 ? args.m > 1 : args.m > 1 && args.c_col != 1 && args.c_row == 1);
  GemmArgs<T> g = turn ? transposed(args) : args;
  settle_strides(g);
  run_parallel(g, half);
}

template <class T>
void any_gemm_batched(const BatchedGemmArgs<T>& args, HalfGemmScale half) {
  const GemmArgs<T>& one = args.one;
  if (args.batch == 1) return any_gemm(one, half);
  if (args.batch <= 0) return;
  // One right operand for all, and rows that continue from entry to entry: a single product of more rows.
  if (args.b_batch == 0 && args.a_batch == one.m * one.a_row && args.c_batch == one.m * one.c_row &&
      !one.row_bias) {
    GemmArgs<T> all = one;
    all.m = one.m * args.batch;
    return any_gemm(all, half);
  }
  const int64_t multiplications = one.m * one.n * std::max<int64_t>(1, one.k);
  const int64_t work = std::max<int64_t>(1, multiplications / (has_units<T>() ? kUnitSpeed : 1));
  const auto entries = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i > begin) check_stop();
      GemmArgs<T> g = one;
      g.a += i * args.a_batch, g.b += i * args.b_batch, g.c += i * args.c_batch;
      any_gemm(g, half);
    }
  };
  // Few large products are better split inside each.
  if (args.batch < num_threads() && work >= 2 * kParallelWork) return entries(0, args.batch);
  parallel_for(0, args.batch, std::max<int64_t>(1, kBatchWork / work), entries);
}

}  // namespace

template <class T>
void gemm(const GemmArgs<T>& args) {
  any_gemm(args, {});
}
void gemm(const GemmArgs<Half>& args, HalfGemmScale scale) { any_gemm(args, scale); }
void gemm(const GemmArgs<BFloat16>& args, HalfGemmScale scale) { any_gemm(args, scale); }

template <class T>
void gemm_batched(const BatchedGemmArgs<T>& args) {
  any_gemm_batched(args, {});
}
void gemm_batched(const BatchedGemmArgs<Half>& args, HalfGemmScale scale) { any_gemm_batched(args, scale); }
void gemm_batched(const BatchedGemmArgs<BFloat16>& args, HalfGemmScale scale) {
  any_gemm_batched(args, scale);
}

template void gemm(const GemmArgs<float>&);
template void gemm(const GemmArgs<double>&);
template void gemm(const GemmArgs<int32_t>&);
template void gemm(const GemmArgs<int64_t>&);
template void gemm_batched(const BatchedGemmArgs<float>&);
template void gemm_batched(const BatchedGemmArgs<double>&);
template void gemm_batched(const BatchedGemmArgs<int32_t>&);
template void gemm_batched(const BatchedGemmArgs<int64_t>&);

}  // namespace tenon::cpu
