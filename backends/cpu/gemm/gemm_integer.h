// Matrix product of integers, with wraparound. Order does not matter to the bits, so one portable loop serves
// every CPU. Used by gemm.cc.
#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/cpu/gemm/gemm.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {

/// Arguments as gemm's, with m, n, k >= 1.
template <class T>
void gemm_integer(const GemmArgs<T>& g) {
  using U = std::make_unsigned_t<T>;  // unsigned arithmetic wraps; signed overflow would be undefined
  constexpr int64_t kColumns = 64, kProductsBetweenStops = int64_t{1} << 20;
  for (int64_t j0 = 0; j0 < g.n; j0 += kColumns) {
    const int64_t columns = std::min(kColumns, g.n - j0);
    for (int64_t i = 0; i < g.m; ++i) {
      if (i % 64 == 63) check_stop();
      U sum[kColumns] = {};
      for (int64_t p = 0; p < g.k; ++p) {
        if (p % kProductsBetweenStops == kProductsBetweenStops - 1) check_stop();
        const U a = static_cast<U>(g.a[i * g.a_row + p * g.a_col]);
        const T* b = g.b + p * g.b_row + j0 * g.b_col;
        if (g.b_col == 1) {
          for (int64_t j = 0; j < columns; ++j) sum[j] += a * static_cast<U>(b[j]);
        } else {
          for (int64_t j = 0; j < columns; ++j) sum[j] += a * static_cast<U>(b[j * g.b_col]);
        }
      }
      T* c = g.c + i * g.c_row + j0 * g.c_col;
      for (int64_t j = 0; j < columns; ++j) {
        const U old = g.beta == 0 ? U(0) : static_cast<U>(g.beta) * static_cast<U>(c[j * g.c_col]);
        c[j * g.c_col] = static_cast<T>(static_cast<U>(g.alpha) * sum[j] + old);
      }
    }
  }
}

}  // namespace tenon::cpu
