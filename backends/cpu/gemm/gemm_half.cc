// Matrix products of half types: convert to float32, multiply, round once.
#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

constexpr int64_t kConvertGrain = int64_t{1} << 15;

/// A contiguous float32 copy of [rows, columns], in the order of the smaller stride, so that reading is
/// sequential.
template <class T>
struct FloatCopy {
  float* data;
  int64_t row, column;

  FloatCopy(GemmScratch slot, int64_t rows, int64_t columns, int64_t from_row, int64_t from_column) {
    const auto size = [](int64_t stride) { return stride < 0 ? -stride : stride; };
    const bool by_columns = size(from_row) < size(from_column);
    row = by_columns ? 1 : columns;
    column = by_columns ? rows : 1;
    data = static_cast<float*>(gemm_scratch(slot, static_cast<size_t>(rows * columns) * sizeof(float)));
  }

  void load(const T* from, int64_t rows, int64_t columns, int64_t from_row, int64_t from_column) {
    const bool by_columns = row == 1 && column != 1;
    const int64_t outer = by_columns ? columns : rows, inner = by_columns ? rows : columns;
    const int64_t outer_stride = by_columns ? from_column : from_row,
                  inner_stride = by_columns ? from_row : from_column;
    parallel_for(0, outer, std::max<int64_t>(1, kConvertGrain / inner), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float* to = data + i * inner;
        for (int64_t j = 0; j < inner; ++j)
          to[j] = static_cast<float>(from[i * outer_stride + j * inner_stride]);
      }
    });
  }
};

template <class T>
void half_gemm(const GemmArgs<T>& args, HalfGemmScale scale) {
  if (args.m <= 0 || args.n <= 0) return;
  GemmArgs<float> g;
  g.m = args.m, g.n = args.n, g.k = args.k;
  g.alpha = scale.alpha, g.beta = scale.beta;
  if (args.k > 0) {
    FloatCopy<T> a(GemmScratch::FloatA, args.m, args.k, args.a_row, args.a_col);
    FloatCopy<T> b(GemmScratch::FloatB, args.k, args.n, args.b_row, args.b_col);
    a.load(args.a, args.m, args.k, args.a_row, args.a_col);
    b.load(args.b, args.k, args.n, args.b_row, args.b_col);
    g.a = a.data, g.a_row = a.row, g.a_col = a.column;
    g.b = b.data, g.b_row = b.row, g.b_col = b.column;
  }
  FloatCopy<T> c(GemmScratch::FloatC, args.m, args.n, args.c_row, args.c_col);
  if (scale.beta != 0.0f) c.load(args.c, args.m, args.n, args.c_row, args.c_col);
  g.c = c.data, g.c_row = c.row, g.c_col = c.column;
  gemm(g);
  parallel_for(0, args.m, std::max<int64_t>(1, kConvertGrain / args.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < args.n; ++j) {
        args.c[i * args.c_row + j * args.c_col] = T(c.data[i * c.row + j * c.column]);
      }
    }
  });
}

template <class T>
void half_gemm_batched(const BatchedGemmArgs<T>& args, HalfGemmScale scale) {
  GemmArgs<T> g = args.one;
  for (int64_t i = 0; i < args.batch; ++i) {
    half_gemm(g, scale);
    g.a += args.a_batch, g.b += args.b_batch, g.c += args.c_batch;
  }
}

}  // namespace

void gemm(const GemmArgs<Half>& args, HalfGemmScale scale) { half_gemm(args, scale); }
void gemm(const GemmArgs<BFloat16>& args, HalfGemmScale scale) { half_gemm(args, scale); }
void gemm_batched(const BatchedGemmArgs<Half>& args, HalfGemmScale scale) { half_gemm_batched(args, scale); }
void gemm_batched(const BatchedGemmArgs<BFloat16>& args, HalfGemmScale scale) {
  half_gemm_batched(args, scale);
}

}  // namespace tenon::cpu
