// The factorization L D L^T of symmetric and Hermitian matrices, and solutions by it: plain loops.
// Source: Bunch and Kaufman (1977); results are as LAPACK's sytf2 keeps them for the lower triangle.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "backends/cpu/linalg/vectors.h"
#include "backends/cpu/ops/linalg_matrices.h"
#include "tenon/core/kernel_report.h"
#include "tenon/generated/linalg/kernels.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/linalg/checks.h"

namespace tenon::cpu {
namespace {

/// A matrix in row-major order, whose lower triangle counts.
template <class S>
struct Lower {
  using T = typename RealOf<S>::type;
  S* p;
  int64_t n;
  bool hermitian;

  S& operator()(int64_t i, int64_t j) const { return p[i * n + j]; }
  S turned(S x) const { return hermitian ? conjugate(x) : x; }
  static T size(S x) {
    return kIsComplex<S> ? std::abs(std::real(x)) + std::abs(std::imag(x)) : std::abs(std::real(x));
  }
  S diagonal(int64_t k) const { return hermitian ? S(std::real((*this)(k, k))) : (*this)(k, k); }

  /// Exchanges rows and columns kk and kp > kk of what is left from column k on, and of the columns before.
  void exchange(int64_t k, int64_t kk, int64_t kp) const {
    const Lower& a = *this;
    for (int64_t i = kp + 1; i < n; ++i) std::swap(a(i, kk), a(i, kp));
    for (int64_t i = kk + 1; i < kp; ++i) {
      const S x = a(i, kk);
      a(i, kk) = turned(a(kp, i));
      a(kp, i) = turned(x);
    }
    a(kp, kk) = turned(a(kp, kk));
    std::swap(a(kk, kk), a(kp, kp));
    if (kk > k) std::swap(a(k + 1, k), a(kp, k));
  }
};

/// Returns the first block of D that is 0, from 1, or 0.
template <class S>
int32_t factor(const Lower<S>& a, int32_t* pivots) {
  using T = typename RealOf<S>::type;
  const T alpha = (T(1) + std::sqrt(T(17))) / T(8);
  int32_t info = 0;
  for (int64_t k = 0, step = 1; k < a.n; k += step) {
    step = 1;
    int64_t kp = k, widest = k;
    const T diagonal = Lower<S>::size(a.diagonal(k));
    T most = 0;
    for (int64_t i = k + 1; i < a.n; ++i) {
      if (const T x = Lower<S>::size(a(i, k)); x > most) most = x, widest = i;
    }
    if (std::max(diagonal, most) == T(0)) {
      if (info == 0) info = static_cast<int32_t>(k + 1);
    } else if (diagonal < alpha * most) {
      T row = 0;
      for (int64_t j = k; j < widest; ++j) row = std::max(row, Lower<S>::size(a(widest, j)));
      for (int64_t i = widest + 1; i < a.n; ++i) row = std::max(row, Lower<S>::size(a(i, widest)));
      if (diagonal >= alpha * most * (most / row)) {
        kp = k;
      } else if (Lower<S>::size(a.diagonal(widest)) >= alpha * row) {
        kp = widest;
      } else {
        kp = widest;
        step = 2;
      }
    }
    const int64_t kk = k + step - 1;
    if (kp != kk) a.exchange(k, kk, kp);
    if (step == 1) {
      a(k, k) = a.diagonal(k);
      if (a(k, k) != S(0)) {
        for (int64_t j = k + 1; j < a.n; ++j) {
          const S x = a.turned(a(j, k)) / a(k, k);
          for (int64_t i = j; i < a.n; ++i) a(i, j) -= times(a(i, k), x);
        }
        for (int64_t i = k + 1; i < a.n; ++i) a(i, k) = a(i, k) / a(k, k);
      }
      pivots[k] = static_cast<int32_t>(kp + 1);
    } else {
      const S d11 = a.diagonal(k), d22 = a.diagonal(k + 1), d21 = a(k + 1, k), d12 = a.turned(d21);
      const S det = times(d11, d22) - times(d21, d12);
      std::vector<S> w(static_cast<size_t>(2 * a.n));
      for (int64_t j = k + 2; j < a.n; ++j) {
        // Row j of L: (a(j, k), a(j, k + 1)) D^-1.
        w[static_cast<size_t>(2 * j)] = (times(a(j, k), d22) - times(a(j, k + 1), d21)) / det;
        w[static_cast<size_t>(2 * j + 1)] = (times(a(j, k + 1), d11) - times(a(j, k), d12)) / det;
      }
      for (int64_t j = k + 2; j < a.n; ++j) {
        const S x = a.turned(w[static_cast<size_t>(2 * j)]), y = a.turned(w[static_cast<size_t>(2 * j + 1)]);
        for (int64_t i = j; i < a.n; ++i) a(i, j) -= times(a(i, k), x) + times(a(i, k + 1), y);
      }
      for (int64_t j = k + 2; j < a.n; ++j) {
        a(j, k) = w[static_cast<size_t>(2 * j)];
        a(j, k + 1) = w[static_cast<size_t>(2 * j + 1)];
      }
      pivots[k] = pivots[k + 1] = static_cast<int32_t>(-(kp + 1));
    }
  }
  return info;
}

/// b [n, columns] := A^-1 b.
template <class S>
void solve(const Lower<S>& a, const int32_t* pivots, S* b, int64_t columns) {
  const auto row = [&](int64_t i) { return b + i * columns; };
  const auto exchange = [&](int64_t i, int64_t j) {
    if (i != j) std::swap_ranges(row(i), row(i) + columns, row(j));
  };
  const auto subtract = [&](int64_t i, S factor, int64_t from) {
    for (int64_t c = 0; c < columns; ++c) row(i)[c] -= times(factor, row(from)[c]);
  };
  for (int64_t k = 0; k < a.n;) {
    if (pivots[k] > 0) {
      exchange(k, pivots[k] - 1);
      for (int64_t i = k + 1; i < a.n; ++i) subtract(i, a(i, k), k);
      for (int64_t c = 0; c < columns; ++c) row(k)[c] = row(k)[c] / a.diagonal(k);
      k += 1;
    } else {
      exchange(k + 1, -pivots[k] - 1);
      for (int64_t i = k + 2; i < a.n; ++i) subtract(i, a(i, k), k), subtract(i, a(i, k + 1), k + 1);
      const S d11 = a.diagonal(k), d22 = a.diagonal(k + 1), d21 = a(k + 1, k), d12 = a.turned(d21);
      const S det = times(d11, d22) - times(d21, d12);
      for (int64_t c = 0; c < columns; ++c) {
        const S x = row(k)[c], y = row(k + 1)[c];
        row(k)[c] = (times(d22, x) - times(d12, y)) / det;
        row(k + 1)[c] = (times(d11, y) - times(d21, x)) / det;
      }
      k += 2;
    }
  }
  for (int64_t k = a.n - 1; k >= 0;) {
    const bool one = pivots[k] > 0;
    for (int64_t j = one ? k : k - 1; j <= k; ++j) {
      for (int64_t i = k + 1; i < a.n; ++i) subtract(j, a.turned(a(i, j)), i);
    }
    exchange(k, (one ? pivots[k] : -pivots[k]) - 1);
    k -= one ? 1 : 2;
  }
}

template <class F>
void with_elements(DType dtype, F&& f) {
  if (dtype == DType::Float32) return f(float());
  if (dtype == DType::Float64) return f(double());
  if (dtype == DType::Complex64) return f(std::complex<float>());
  f(std::complex<double>());
}

}  // namespace

void linalg_ldl_factor_ex(const Tensor& self, bool hermitian, bool check_errors, Tensor& LD, Tensor& pivots,
                          Tensor& info) {
  tenon::report_kernel("linalg_ldl_factor_ex", "loops");
  ops::copy_elements(LD, self, "linalg_ldl_factor_ex");
  const int64_t n = self.sizes().back();
  with_elements(self.dtype(), [&]<class S>(S) {
    for_each_matrix(info.numel(), [&](int64_t i) {
      S* const p = static_cast<S*>(LD.data_ptr()) + i * n * n;
      for (int64_t r = 0; r < n; ++r) std::fill(p + r * n + r + 1, p + (r + 1) * n, S(0));
      static_cast<int32_t*>(info.data_ptr())[i] =
          factor(Lower<S>{p, n, hermitian}, static_cast<int32_t*>(pivots.data_ptr()) + i * n);
    });
  });
  if (!check_errors) return;
  check_info(info, [](int32_t i) {
    return fmt::format("The factorization could not be completed: block {} of D is zero.", i);
  });
}

void linalg_ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian, Tensor& out) {
  tenon::report_kernel("linalg_ldl_solve", "loops");
  ops::copy_elements(out, B, "linalg_ldl_solve");
  const int64_t n = LD.sizes().back(), columns = out.sizes().back();
  const Dims batch = ops::batch_of(out);
  Tensor factors = ops::as_contiguous(LD), places = ops::as_contiguous(pivots);
  with_elements(LD.dtype(), [&]<class S>(S) {
    using T = typename RealOf<S>::type;
    const Matrices<T> a(factors, batch);
    const auto ipiv = Matrices<int32_t>::vectors(places, batch);
    for (int64_t i = 0; i < a.count(); ++i) {
      const int32_t* const p = ipiv.at(i);
      for (int64_t k = 0; k<n; k += p[k]> 0 ? 1 : 2) {
        const int64_t at = std::abs(static_cast<int64_t>(p[k]));
        TENON_CHECK(at >= 1 && at <= n && (p[k] > 0 || (k + 1 < n && p[k + 1] == p[k])), Runtime,
                    fmt::format(": `pivots` are not those of linalg_ldl_factor, {} in place {}", p[k], k));
      }
      solve(Lower<S>{reinterpret_cast<S*>(a.at(i)), n, hermitian}, p,
            static_cast<S*>(out.data_ptr()) + i * n * columns, columns);
    }
  });
}

}  // namespace tenon::cpu
