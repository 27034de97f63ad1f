// Cholesky, LU and what is solved by them, and triangular systems: tensors to linalg/lanes.h and
// linalg/blocked.h.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "backends/cpu/linalg/panel.h"
#include "backends/cpu/ops/linalg_matrices.h"
#include "backends/cpu/report.h"
#include "tenon/generated/linalg/kernels.h"
#include "tenon/ops/linalg/checks.h"

namespace tenon::cpu {
namespace {

using ops::batch_of;
using ops::columns_of;
using ops::rows_of;

constexpr KernelNames kLanes = TENON_KERNEL_NAMES("lanes"), kBlocked = TENON_KERNEL_NAMES("blocked");

bool is_small(int64_t m, int64_t n) { return std::max(m, n) <= kSmallOrder; }

template <class T>
void write_integers(const T* lanes, int64_t count, size_t width, int64_t n, int32_t* to) {
  for (int64_t lane = 0; lane < count; ++lane) {
    for (int64_t i = 0; i < n; ++i)
      to[lane * n + i] = static_cast<int32_t>(lanes[i * static_cast<int64_t>(width) + lane]);
  }
}

int32_t* integers(Tensor& t) { return static_cast<int32_t*>(t.data_ptr()); }

/// What an LU factorization writes: contiguous tensors, or null for what is not wanted.
struct LuResults {
  Tensor *factors = nullptr, *pivots = nullptr, *info = nullptr;
  Tensor* product = nullptr;                 ///< of the pivots: the determinant
  const Tensor* right = nullptr;             ///< a right side with the batch of A
  Tensor* solution = nullptr;                ///< of it
  bool identity = false, is_vector = false;  ///< the right side is an identity, or a vector for each matrix
};

template <class T>
void lu_lanes(const Matrices<T>& a, const LuResults& to, bool pivot) {
  const size_t lanes = lane_kernels<T>().lanes;
  const auto L = static_cast<int64_t>(lanes);
  const auto& kernels = lane_kernels_of<T>(a.is_complex());
  const int64_t m = a.rows, n = a.columns, count = std::min(m, n), parts = a.parts();
  const auto of = [&](const Tensor& t) { return to.is_vector ? Matrices<T>::vectors(t) : Matrices<T>(t); };
  const int64_t k = to.identity ? n : to.solution ? of(*to.solution).columns : 0;
  for_each_group(a.count(), lanes, 4 * m * n * (count + k), [&](int64_t first, int64_t group) {
    Scratch<T> scratch((m * n * parts + n * k * parts + count + 1 + parts) * L);
    LaneCall<T> call{m,
                     n,
                     k,
                     scratch.take(m * n * parts * L),
                     scratch.take(n * k * parts * L),
                     scratch.take(count * L),
                     scratch.take(L),
                     nullptr,
                     pivot};
    a.read_lanes(first, group, lanes, call.a);
    if (to.identity) {
      std::fill(call.b, call.b + n * k * parts * L, T(0));
      for (int64_t i = 0; i < n; ++i) std::fill_n(call.b + i * (n + 1) * parts * L, L, T(1));
    } else if (to.solution) {
      of(*to.right).read_lanes(first, group, lanes, call.b);
    }
    if (to.product) call.result = scratch.take(parts * L);
    kernels.lu(call);
    if (to.solution) {
      call.upper = true;
      kernels.triangle(call);
      of(*to.solution).write_lanes(first, group, lanes, call.b);
    }
    if (to.factors) Matrices<T>(*to.factors).write_lanes(first, group, lanes, call.a);
    if (to.pivots) write_integers(call.extra, group, lanes, count, integers(*to.pivots) + first * count);
    if (to.info) write_integers(call.info, group, lanes, 1, integers(*to.info) + first);
    if (to.product) {
      T* const p = static_cast<T*>(to.product->data_ptr()) + first * parts;
      for (int64_t i = 0; i < group * parts; ++i) p[i] = call.result[i % parts * L + i / parts];
    }
  });
}

/// The product of the pivots of one factorization, in order, with the sign of the exchanges.
template <class T>
std::complex<T> product_of_pivots(BlockView<T> a, const int32_t* pivots, int64_t n) {
  T re = 1, im = 0;
  for (int64_t i = 0; i < n; ++i) {
    const T x = a.p[i * (a.row + 1)], y = a.is_complex ? a.p[a.part + i * (a.row + 1)] : T(0);
    const T sign = pivots[i] == i ? T(1) : T(-1), r = a.is_complex ? re * x - im * y : re * x;
    im = a.is_complex ? sign * (re * y + im * x) : T(0);
    re = sign * r;
  }
  return {re, im};
}

template <class T>
void lu_blocked(const Matrices<T>& a, const LuResults& to, bool pivot) {
  const int64_t m = a.rows, n = a.columns, count = std::min(m, n);
  const auto of = [&](const Tensor& t) { return to.is_vector ? Matrices<T>::vectors(t) : Matrices<T>(t); };
  for_each_matrix(a.count(), [&](int64_t i) {
    const Block<T> block(m, n, a.is_complex());
    const BlockView<T> view = block.view();
    a.read(i, view);
    std::vector<int32_t> pivots(static_cast<size_t>(count));
    const int64_t info = factor_lu(view, m, n, pivots.data(), pivot);
    if (to.solution) {
      const Matrices<T> solution = of(*to.solution);
      const Block<T> right(n, solution.columns, a.is_complex());
      const BlockView<T> b = right.view();
      if (to.identity) {
        for (int64_t r = 0; r < n; ++r) b.p[r * (b.row + 1)] = T(1);
      } else {
        of(*to.right).read(i, b);
      }
      exchange_rows(b, solution.columns, pivots.data(), count);
      solve_triangle(view, false, true, b, n, solution.columns);
      solve_triangle(view, true, false, b, n, solution.columns);
      solution.write(i, b);
    }
    if (to.product) {
      const std::complex<T> d = product_of_pivots(view, pivots.data(), count);
      T* const p = static_cast<T*>(to.product->data_ptr()) + i * a.parts();
      p[0] = d.real();
      if (a.is_complex()) p[1] = d.imag();
    }
    if (to.factors) Matrices<T>(*to.factors).write(i, view);
    for (int64_t r = 0; to.pivots && r < count; ++r)
      integers(*to.pivots)[i * count + r] = pivots[static_cast<size_t>(r)] + 1;
    if (to.info) integers(*to.info)[i] = static_cast<int32_t>(info);
  });
}

void run_lu(const char* op, const Tensor& A, const LuResults& to, bool pivot = true) {
  with_parts(A, [&]<class T>(T) {
    const Matrices<T> a(A);
    const bool small = is_small(a.rows, a.columns) && (!to.solution || to.identity || to.is_vector ||
                                                       columns_of(*to.solution) <= 2 * kSmallOrder);
    report_kernel(op, small ? kLanes : kBlocked);
    small ? lu_lanes(a, to, pivot) : lu_blocked(a, to, pivot);
  });
}

std::string singular(int32_t info) {
  return fmt::format(
      "The diagonal element {} is zero, the inversion could not be completed because the input matrix is "
      "singular.",
      info);
}

/// b := triangle^-1 b, both in lanes or both as blocks. Results are contiguous.
template <class T>
void triangles(const Matrices<T>& a, const Matrices<T>& b, const Matrices<T>& to, bool upper, bool unit) {
  const int64_t n = b.rows, k = b.columns, parts = b.parts();
  if (n <= kSmallOrder && k <= 2 * kSmallOrder) {
    const size_t lanes = lane_kernels<T>().lanes;
    const auto L = static_cast<int64_t>(lanes);
    const auto& kernels = lane_kernels_of<T>(b.is_complex());
    for_each_group(b.count(), lanes, 2 * n * n * k, [&](int64_t first, int64_t group) {
      Scratch<T> scratch((n * n + n * k) * parts * L);
      LaneCall<T> call{n, n, k, scratch.take(n * n * parts * L), scratch.take(n * k * parts * L)};
      a.read_lanes(first, group, lanes, call.a);
      b.read_lanes(first, group, lanes, call.b);
      call.upper = upper;
      call.unit = unit;
      kernels.triangle(call);
      to.write_lanes(first, group, lanes, call.b);
    });
    return;
  }
  for_each_matrix(b.count(), [&](int64_t i) {
    const Block<T> triangle(n, n, b.is_complex()), right(n, k, b.is_complex());
    a.read(i, triangle.view());
    b.read(i, right.view());
    solve_triangle(triangle.view(), upper, unit, right.view(), n, k);
    to.write(i, right.view());
  });
}

}  // namespace

void linalg_lu_factor_ex(const Tensor& A, bool pivot, bool check_errors, Tensor& LU, Tensor& pivots,
                         Tensor& info) {
  run_lu("linalg_lu_factor_ex", A, {.factors = &LU, .pivots = &pivots, .info = &info}, pivot);
  if (!check_errors) return;
  check_info(info, [](int32_t i) {
    return fmt::format(
        "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want "
        "to "
        "perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
        i);
  });
}

void linalg_inv_ex(const Tensor& A, bool check_errors, Tensor& inverse, Tensor& info) {
  run_lu("linalg_inv_ex", A, {.info = &info, .solution = &inverse, .identity = true});
  if (check_errors) check_info(info, singular);
}

void _linalg_det(const Tensor& A, Tensor& result, Tensor& LU, Tensor& pivots) {
  run_lu("_linalg_det", A, {.factors = &LU, .pivots = &pivots, .product = &result});
}

void _linalg_solve_ex(const Tensor& A, const Tensor& B, bool left, bool check_errors, Tensor& result,
                      Tensor& LU, Tensor& pivots, Tensor& info) {
  const bool vector = ops::is_vector_solve(A, B);
  LuResults to{.factors = &LU, .pivots = &pivots, .info = &info};
  const IntArrayRef a = A.sizes(), b = B.sizes();
  const size_t own = vector ? 1 : 2;
  const bool fused = left && a.size() - 2 == b.size() - own && std::equal(a.begin(), a.end() - 2, b.begin());
  if (fused) {
    to.right = &B;
    to.solution = &result;
    to.is_vector = vector;
  }
  run_lu("linalg_solve", A, to);
  if (check_errors)
    check_info(
        info, [](int32_t) { return std::string("The solver failed because the input matrix is singular."); });
  if (fused) return;
  if (!vector) return _linalg_lu_solve(LU, pivots, B, left, false, result);
  const auto column = [](const Tensor& t) {
    Dims sizes(t.sizes()), strides(t.strides());
    sizes.push_back(1);
    strides.push_back(1);
    return make_view(t, sizes, strides, t.storage_offset());
  };
  Tensor to_column = column(result);
  _linalg_lu_solve(LU, pivots, column(B), true, false, to_column);
}

void linalg_cholesky_ex(const Tensor& self, bool upper, bool check_errors, Tensor& L, Tensor& info) {
  with_parts(self, [&]<class T>(T) {
    // Lanes make the lower factor, blocks the upper one.
    const Matrices<T> given(self), result(L);
    const int64_t n = given.rows, parts = given.parts();
    const bool small = is_small(n, n), turned = small == upper;
    report_kernel("linalg_cholesky_ex", small ? kLanes : kBlocked);
    const Matrices<T> a = turned ? given.transposed(true) : given,
                      to = turned ? result.transposed(true) : result;
    if (small) {
      const size_t lanes = lane_kernels<T>().lanes;
      const auto width = static_cast<int64_t>(lanes);
      for_each_group(a.count(), lanes, n * n * n, [&](int64_t first, int64_t group) {
        Scratch<T> scratch((n * n * parts + 1) * width);
        LaneCall<T> call{.n = n, .a = scratch.take(n * n * parts * width), .info = scratch.take(width)};
        a.read_lanes(first, group, lanes, call.a);
        lane_kernels_of<T>(a.is_complex()).cholesky(call);
        to.write_lanes(first, group, lanes, call.a);
        write_integers(call.info, group, lanes, 1, integers(info) + first);
      });
      return;
    }
    for_each_matrix(a.count(), [&](int64_t i) {
      const Block<T> block(n, n, a.is_complex());
      const BlockView<T> view = block.view();
      a.read(i, view);
      integers(info)[i] = static_cast<int32_t>(factor_cholesky(view, n));
      for (int64_t r = 0; r < n; ++r) {
        std::fill_n(view.p + r * view.row, r, T(0));
        if (a.is_complex()) std::fill_n(view.p + view.part + r * view.row, r + 1, T(0));
      }
      to.write(i, view);
    });
  });
  if (!check_errors) return;
  check_info(info, [](int32_t i) {
    return fmt::format(
        "The factorization could not be completed because the input is not positive-definite (the leading "
        "minor of order {} is not positive-definite).",
        i);
  });
}

void linalg_solve_triangular(const Tensor& self, const Tensor& B, bool upper, bool left, bool unitriangular,
                             Tensor& out) {
  report_kernel("linalg_solve_triangular", is_small(rows_of(self), columns_of(self)) ? kLanes : kBlocked);
  with_parts(self, [&]<class T>(T) {
    const Dims batch = batch_of(out);
    const Matrices<T> a(self, batch), b(B, batch), to(out, batch);
    if (left)
      triangles(a, b, to, upper, unitriangular);
    else
      triangles(a.transposed(false), b.transposed(false), to.transposed(false), !upper, unitriangular);
  });
}

void _pivots_to_permutation(const Tensor& pivots, int64_t rows, Tensor& out) {
  const int64_t k = pivots.sizes().back();
  const StridedDims all = dims_of(pivots);
  auto* const to = static_cast<int64_t*>(out.data_ptr());
  const int64_t batch = rows == 0 ? 0 : out.numel() / rows;
  for (int64_t i = 0; i < batch; ++i) {
    std::iota(to + i * rows, to + (i + 1) * rows, int64_t{0});
    for (int64_t r = 0; r < k; ++r) {
      const int64_t p = *reinterpret_cast<const int32_t*>(static_cast<const char*>(pivots.data_ptr()) +
                                                          all.offset(i * k + r));
      TENON_CHECK(p >= 1 && p <= rows, Runtime,
                  fmt::format(": expected `pivots` between 1 and {}, got {} in batch entry {}", rows, p, i));
      std::swap(to[i * rows + r], to[i * rows + p - 1]);
    }
  }
}

void _linalg_lu_solve(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint,
                      Tensor& out) {
  report_kernel("linalg_lu_solve", is_small(rows_of(LU), columns_of(LU)) ? kLanes : kBlocked);
  const int64_t n = columns_of(LU);
  Dims sizes = batch_of(LU);
  sizes.push_back(n);
  Tensor permutation = make_empty(sizes, DType::Int64);
  _pivots_to_permutation(pivots, n, permutation);
  // Of X A = B the transpose is solved.
  const bool transposed = adjoint == left;
  with_parts(LU, [&]<class T>(T) {
    const Dims batch = batch_of(out);
    Matrices<T> a(LU, batch), b(B, batch), to(out, batch);
    if (transposed) a = a.transposed(adjoint);
    a.conj = a.is_complex() && adjoint;
    if (!left) b = b.transposed(false), to = to.transposed(false);
    const Matrices<int64_t> places = Matrices<int64_t>::vectors(permutation, batch);
    Tensor turned = make_empty(out.sizes(), out.dtype());
    Matrices<T> middle(turned, batch);
    if (!left) middle = middle.transposed(false);
    const auto permute = [&](const Matrices<T>& from, const Matrices<T>& into, bool inverse) {
      for (int64_t i = 0; i < from.count(); ++i) {
        const int64_t* const p = places.at(i);
        for (int64_t r = 0; r < n; ++r) {
          const T* const x = from.at(i) + (inverse ? r : p[r]) * from.row;
          T* const y = into.at(i) + (inverse ? p[r] : r) * into.row;
          for (int64_t c = 0; c < from.columns; ++c) {
            for (int64_t part = 0; part < from.parts(); ++part)
              y[c * into.column + part] = x[c * from.column + part];
          }
        }
      }
    };
    if (transposed) {
      triangles(a, b, middle, false, false);
      triangles(a, middle, middle, true, true);
      permute(middle, to, true);
    } else {
      permute(b, middle, false);
      triangles(a, middle, middle, false, true);
      triangles(a, middle, to, true, false);
    }
  });
}

}  // namespace tenon::cpu
