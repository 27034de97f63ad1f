// Eigenvalues, singular values and their vectors: small matrices in lanes, others by LAPACK or by Eigen in
// float64. Who computed them does not show: values are sorted and vectors have the phases of
// linalg/vectors.h.

#include <algorithm>
#include <vector>

#include "backends/cpu/lapack/spectra.h"
#include "backends/cpu/linalg/eigen_solvers.h"
#include "backends/cpu/linalg/vectors.h"
#include "backends/cpu/ops/linalg_matrices.h"
#include "backends/cpu/report.h"
#include "tenon/generated/linalg/kernels.h"

namespace tenon::cpu {
namespace {

constexpr KernelNames kLanes = TENON_KERNEL_NAMES("lanes");

/// Orders up to which Jacobi's rotations run in lanes.
constexpr int64_t kSmallSpectrum = 16, kSmallLength = 64;

/// Calls f(S()) with the type of a dtype's elements.
template <class F>
void with_numbers(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Float32:
      return f(float());
    case DType::Float64:
      return f(double());
    case DType::Complex64:
      return f(std::complex<float>());
    default:
      return f(std::complex<double>());
  }
}

template <class S>
using Wide = std::conditional_t<kIsComplex<S>, std::complex<double>, double>;

/// Matrix `lane` of lanes, [rows, columns], to numbers.
template <class S, class T>
void read_lane(const T* lanes, int64_t width, int64_t lane, int64_t size, S* to) {
  for (int64_t i = 0; i < size; ++i) {
    if constexpr (kIsComplex<S>)
      to[i] = {lanes[2 * i * width + lane], lanes[(2 * i + 1) * width + lane]};
    else
      to[i] = lanes[i * width + lane];
  }
}

/// Matrix `i` in row-major order, as numbers W.
template <class S, class W = Wide<S>>
std::vector<W> read_wide(const Matrices<typename RealOf<S>::type>& a, int64_t i) {
  std::vector<W> to(static_cast<size_t>(a.rows * a.columns));
  const auto* const from = a.at(i);
  for (int64_t r = 0; r < a.rows; ++r) {
    for (int64_t c = 0; c < a.columns; ++c) {
      const auto* const x = from + r * a.row + c * a.column;
      W& y = to[static_cast<size_t>(r * a.columns + c)];
      if constexpr (kIsComplex<S>)
        y = {x[0], a.conj ? -x[1] : x[1]};
      else
        y = x[0];
    }
  }
  return to;
}

template <class S, class W>
S narrow(W x) {
  if constexpr (kIsComplex<S>)
    return {static_cast<typename RealOf<S>::type>(x.real()), static_cast<typename RealOf<S>::type>(x.imag())};
  else
    return static_cast<S>(x);
}

[[noreturn]] void no_convergence(int64_t entry) {
  throw_of_info(
      "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "
      "values.",
      entry);
}

/// Writes sorted values and vectors, which are rows of `vectors` [n, n], as columns.
template <class S, class W, class V>
void write_spectrum(const V* values, W* vectors, int64_t n, V* to_values, S* to_vectors,
                    bool descending = false) {
  const std::vector<int64_t> order = order_of(values, n, descending);
  for (int64_t k = 0; k < n; ++k) {
    const int64_t from = order[static_cast<size_t>(k)];
    to_values[k] = values[from];
    if (!vectors) continue;
    W* const v = vectors + from * n;
    int64_t place = 0;
    const W phase = phase_of(v, n, place);
    turn(v, n, phase, place);
    for (int64_t i = 0; i < n; ++i) to_vectors[i * n + k] = narrow<S>(v[i]);
  }
}

template <class S>
void eigh_lanes(const Matrices<typename RealOf<S>::type>& a, Tensor& values, Tensor* vectors) {
  using T = typename RealOf<S>::type;
  const int64_t n = a.rows, parts = a.parts();
  const size_t lanes = lane_kernels<T>().lanes;
  const auto L = static_cast<int64_t>(lanes);
  for_each_group(a.count(), lanes, 60 * n * n * n, [&](int64_t first, int64_t group) {
    Scratch<T> scratch((2 * n * n * parts + n + 1) * L);
    LaneCall<T> call{.n = n,
                     .a = scratch.take(n * n * parts * L),
                     .b = scratch.take(n * n * parts * L),
                     .extra = scratch.take(n * L),
                     .info = scratch.take(L),
                     .vectors = vectors != nullptr};
    a.read_lanes(first, group, lanes, call.a);
    lane_kernels_of<T>(a.is_complex()).eigh(call);
    S rows[kSmallSpectrum * kSmallSpectrum];
    T own[kSmallSpectrum];
    for (int64_t lane = 0; lane < group; ++lane) {
      const int64_t i = first + lane;
      if (call.info[lane] != T(0)) no_convergence(a.count() > 1 ? i : -1);
      read_lane(call.extra, L, lane, n, own);
      if (vectors) read_lane(call.b, L, lane, n * n, rows);
      write_spectrum(own, vectors ? rows : nullptr, n, static_cast<T*>(values.data_ptr()) + i * n,
                     vectors ? static_cast<S*>(vectors->data_ptr()) + i * n * n : nullptr);
    }
  });
}

template <class S>
void eigh_by_eigen(const Matrices<typename RealOf<S>::type>& a, Tensor& values, Tensor* vectors) {
  using T = typename RealOf<S>::type;
  const int64_t n = a.rows;
  for_each_matrix(a.count(), [&](int64_t i) {
    // The lower triangle of the transpose: the kernel of lanes reads the upper one.
    const std::vector<Wide<S>> wide = read_wide<S>(a.transposed(true), i);
    std::vector<double> own(static_cast<size_t>(n));
    std::vector<Wide<S>> rows(static_cast<size_t>(vectors ? n * n : 0));
    if (!solve_hermitian(n, wide.data(), own.data(), vectors ? rows.data() : nullptr))
      no_convergence(a.count() > 1 ? i : -1);
    std::vector<double> sorted(static_cast<size_t>(n));
    write_spectrum(own.data(), vectors ? rows.data() : nullptr, n, sorted.data(),
                   vectors ? static_cast<S*>(vectors->data_ptr()) + i * n * n : nullptr);
    std::transform(sorted.begin(), sorted.end(), static_cast<T*>(values.data_ptr()) + i * n,
                   [](double x) { return static_cast<T>(x); });
  });
}

/// Calls f(i) for each matrix; LAPACK has the threads that are left.
template <class F>
void for_each_of_lapack(int64_t count, F&& f) {
  const lapack::Threads threads(count == 1 ? num_threads() : 1);
  for_each_matrix(count, f);
}

template <class S>
void eigh_by_lapack(const Matrices<typename RealOf<S>::type>& a, Tensor& values, Tensor* vectors) {
  using T = typename RealOf<S>::type;
  const int64_t n = a.rows;
  for_each_of_lapack(a.count(), [&](int64_t i) {
    std::vector<S> matrix = read_wide<S, S>(a.transposed(true), i);
    std::vector<T> own(static_cast<size_t>(n));
    if (!lapack::solve_hermitian(n, matrix.data(), own.data(), vectors != nullptr))
      no_convergence(a.count() > 1 ? i : -1);
    write_spectrum(own.data(), vectors ? matrix.data() : nullptr, n,
                   static_cast<T*>(values.data_ptr()) + i * n,
                   vectors ? static_cast<S*>(vectors->data_ptr()) + i * n * n : nullptr);
  });
}

}  // namespace

void _linalg_eigh(const Tensor& A, std::string_view UPLO, bool compute_v, Tensor& eigenvalues,
                  Tensor& eigenvectors) {
  check_finite(A, "A");
  with_numbers(A.dtype(), [&]<class S>(S) {
    using T = typename RealOf<S>::type;
    const bool upper = UPLO == "U" || UPLO == "u";
    const Matrices<T> given(A), a = upper ? given : given.transposed(true);
    Tensor* const vectors = compute_v ? &eigenvectors : nullptr;
    if (a.rows <= kSmallSpectrum) {
      report_kernel("linalg_eigh", kLanes);
      eigh_lanes<S>(a, eigenvalues, vectors);
    } else if (lapack::is_used()) {
      tenon::report_kernel("linalg_eigh", "lapack");
      eigh_by_lapack<S>(a, eigenvalues, vectors);
    } else {
      tenon::report_kernel("linalg_eigh", "eigen");
      eigh_by_eigen<S>(a, eigenvalues, vectors);
    }
  });
}

namespace {

/// Where the results of one matrix go. U is [m, u_columns], Vh [vh_rows, n].
template <class S>
struct SvdResults {
  S *u, *vh;
  typename RealOf<S>::type* values;
  int64_t m, n, u_columns, vh_rows;
};

/// Sorts, gives phases, completes and writes. Rows of `longer` [k, length] are vectors of the side with more
/// elements, rows of `shorter` [k, k] of the other one; `wide`: that is V. Vectors of values up to `noise`
/// times the largest are made up, those of `shorter` too if `both`.
template <class S, class W, class V>
void write_svd(const V* values, const W* longer, const W* shorter, int64_t k, int64_t length, bool wide,
               const SvdResults<S>& to, double noise, bool both) {
  const std::vector<int64_t> order = order_of(values, k, true);
  for (int64_t i = 0; i < k; ++i)
    to.values[i] = static_cast<typename RealOf<S>::type>(values[order[static_cast<size_t>(i)]]);
  if (!to.u) return;
  const int64_t total = wide ? to.vh_rows : to.u_columns;
  std::vector<W> many(static_cast<size_t>(total * length)), few(static_cast<size_t>(k * k));
  int64_t have = 0;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    std::copy_n(longer + from * length, length, many.data() + i * length);
    std::copy_n(shorter + from * k, k, few.data() + i * k);
    // Vectors of values that are 0 do not exist yet.
    if (static_cast<double>(values[from]) > noise * static_cast<double>(values[order[0]])) have = i + 1;
  }
  if (both) complete_rows(few.data(), have, k, k);
  for (int64_t i = 0; i < k; ++i) {
    W *const x = many.data() + i * length, *const y = few.data() + i * k;
    W* const v = wide ? x : y;
    int64_t place = 0;
    if (wide && i >= have) {
      turn(y, k, phase_of(y, k, place), place);
      continue;
    }
    const W phase = phase_of(v, wide ? length : k, place);
    turn(x, length, phase, wide ? place : -1);
    turn(y, k, phase, wide ? -1 : place);
  }
  complete_rows(many.data(), have, total, length);
  for (int64_t i = have; i < total; ++i) {
    int64_t place = 0;
    W* const x = many.data() + i * length;
    const W phase = phase_of(x, length, place);
    turn(x, length, phase, place);
  }
  const W *const u = wide ? few.data() : many.data(), *const v = wide ? many.data() : few.data();
  for (int64_t i = 0; i < to.m; ++i) {
    for (int64_t c = 0; c < to.u_columns; ++c) to.u[i * to.u_columns + c] = narrow<S>(u[c * to.m + i]);
  }
  for (int64_t i = 0; i < to.vh_rows * to.n; ++i) to.vh[i] = narrow<S>(conjugate(v[i]));
}

template <class S>
void svd_lanes(const Matrices<typename RealOf<S>::type>& a, bool wide, bool vectors,
               const SvdResults<S>& to) {
  using T = typename RealOf<S>::type;
  const int64_t n = a.rows, m = a.columns, parts = a.parts();
  const size_t lanes = lane_kernels<T>().lanes;
  const auto L = static_cast<int64_t>(lanes);
  for_each_group(a.count(), lanes, 60 * n * n * m, [&](int64_t first, int64_t group) {
    Scratch<T> scratch((n * m * parts + n * n * parts + n + 1) * L);
    LaneCall<T> call{.m = m,
                     .n = n,
                     .a = scratch.take(n * m * parts * L),
                     .b = scratch.take(n * n * parts * L),
                     .extra = scratch.take(n * L),
                     .info = scratch.take(L),
                     .vectors = vectors};
    a.read_lanes(first, group, lanes, call.a);
    lane_kernels_of<T>(a.is_complex()).svd(call);
    S longer[kSmallSpectrum * kSmallLength], shorter[kSmallSpectrum * kSmallSpectrum];
    T own[kSmallSpectrum];
    for (int64_t lane = 0; lane < group; ++lane) {
      const int64_t i = first + lane;
      read_lane(call.extra, L, lane, n, own);
      if (vectors) {
        read_lane(call.a, L, lane, n * m, longer);
        read_lane(call.b, L, lane, n * n, shorter);
      }
      SvdResults<S> one = to;
      one.values += i * n;
      if (vectors) one.u += i * to.m * to.u_columns, one.vh += i * to.n * to.vh_rows;
      // Squares of what is smaller leave the range.
      write_svd(own, longer, shorter, n, m, wide, one, sizeof(T) == 4 ? 1e-16 : 1e-146, false);
    }
  });
}

template <class S>
void svd_by_eigen(const Matrices<typename RealOf<S>::type>& a, bool wide, bool vectors,
                  const SvdResults<S>& to) {
  const int64_t n = a.rows, m = a.columns;
  for_each_matrix(a.count(), [&](int64_t i) {
    const std::vector<Wide<S>> given = read_wide<S>(a.transposed(false), i);
    std::vector<double> own(static_cast<size_t>(n));
    std::vector<Wide<S>> longer(static_cast<size_t>(vectors ? n * m : 0)),
        shorter(static_cast<size_t>(vectors ? n * n : 0));
    if (!solve_svd(m, n, given.data(), own.data(), vectors ? longer.data() : nullptr,
                   vectors ? shorter.data() : nullptr))
      no_convergence(a.count() > 1 ? i : -1);
    SvdResults<S> one = to;
    one.values += i * n;
    if (vectors) one.u += i * to.m * to.u_columns, one.vh += i * to.n * to.vh_rows;
    // Eigen's vectors of values that are rounding alone need not be orthogonal.
    write_svd(own.data(), longer.data(), shorter.data(), n, m, wide, one, static_cast<double>(m) * 0x1p-52,
              true);
  });
}

template <class S>
void svd_by_lapack(const Matrices<typename RealOf<S>::type>& a, bool wide, bool vectors,
                   const SvdResults<S>& to) {
  using T = typename RealOf<S>::type;
  const int64_t n = a.rows, m = a.columns;
  for_each_of_lapack(a.count(), [&](int64_t i) {
    std::vector<S> columns = read_wide<S, S>(a, i);
    std::vector<T> own(static_cast<size_t>(n));
    std::vector<S> longer(static_cast<size_t>(vectors ? n * m : 0)),
        shorter(static_cast<size_t>(vectors ? n * n : 0));
    if (!lapack::solve_svd(m, n, columns.data(), own.data(), vectors ? longer.data() : nullptr,
                           vectors ? shorter.data() : nullptr))
      no_convergence(a.count() > 1 ? i : -1);
    SvdResults<S> one = to;
    one.values += i * n;
    if (vectors) one.u += i * to.m * to.u_columns, one.vh += i * to.n * to.vh_rows;
    // All its vectors are orthogonal, those of values that are rounding alone too.
    write_svd(own.data(), longer.data(), shorter.data(), n, m, wide, one, 0, false);
  });
}

}  // namespace

void _linalg_svd(const Tensor& A, bool full_matrices, bool compute_uv, std::optional<std::string_view>,
                 Tensor& U, Tensor& S_, Tensor& Vh) {
  check_finite(A, "A");
  with_numbers(A.dtype(), [&]<class S>(S) {
    using T = typename RealOf<S>::type;
    const Matrices<T> given(A);
    const bool wide = given.rows < given.columns;
    // Row i is column i of A, or of its adjoint.
    Matrices<T> a = given;
    if (wide)
      a.conj = a.is_complex();
    else
      a = given.transposed(false);
    SvdResults<S> to{nullptr, nullptr, static_cast<T*>(S_.data_ptr()), given.rows, given.columns, 0, 0};
    if (compute_uv) {
      to.u = static_cast<S*>(U.data_ptr());
      to.vh = static_cast<S*>(Vh.data_ptr());
      to.u_columns = U.sizes().back();
      to.vh_rows = Vh.sizes()[Vh.sizes().size() - 2];
    }
    if (a.rows == 0 || (a.rows <= kSmallSpectrum && a.columns <= kSmallLength)) {
      report_kernel("linalg_svd", kLanes);
      svd_lanes<S>(a, wide, compute_uv, to);
    } else if (lapack::is_used()) {
      tenon::report_kernel("linalg_svd", "lapack");
      svd_by_lapack<S>(a, wide, compute_uv, to);
    } else {
      tenon::report_kernel("linalg_svd", "eigen");
      svd_by_eigen<S>(a, wide, compute_uv, to);
    }
  });
}

namespace {

/// Writes values and vectors, rows of `rows` [n, n], as columns of length 1.
template <class C, class W>
void write_general(const std::vector<W>& own, std::vector<W>& rows, int64_t n, C* values, C* to) {
  for (int64_t k = 0; k < n; ++k) {
    values[k] = narrow<C>(own[static_cast<size_t>(k)]);
    if (!to) continue;
    W* const v = rows.data() + k * n;
    typename W::value_type square = 0;
    for (int64_t r = 0; r < n; ++r) square += square_of(v[r]);
    int64_t place = 0;
    const W phase = phase_of(v, n, place) / std::sqrt(square);
    turn(v, n, phase, place);
    for (int64_t r = 0; r < n; ++r) to[r * n + k] = narrow<C>(v[r]);
  }
}

}  // namespace

void _linalg_eig(const Tensor& self, bool compute_v, Tensor& eigenvalues, Tensor& eigenvectors) {
  check_finite(self, "self");
  with_numbers(self.dtype(), [&]<class S>(S) {
    using T = typename RealOf<S>::type;
    using C = std::complex<T>;
    const Matrices<T> a(self);
    const int64_t n = a.rows;
    const bool by_lapack = n > kSmallSpectrum && lapack::is_used();
    tenon::report_kernel("linalg_eig", by_lapack ? "lapack" : "eigen");
    // Of numbers W, by `solve`, whose matrix is the transposed one for LAPACK.
    const auto solve_one = [&]<class W>(int64_t i, std::vector<W> given, auto&& solve) {
      using Wc = std::complex<typename RealOf<W>::type>;
      std::vector<Wc> own(static_cast<size_t>(n)), rows(static_cast<size_t>(compute_v ? n * n : 0));
      if (!solve(n, given.data(), own.data(), compute_v ? rows.data() : nullptr))
        no_convergence(a.count() > 1 ? i : -1);
      write_general(own, rows, n, static_cast<C*>(eigenvalues.data_ptr()) + i * n,
                    compute_v ? static_cast<C*>(eigenvectors.data_ptr()) + i * n * n : nullptr);
    };
    if (by_lapack)
      return for_each_of_lapack(a.count(), [&](int64_t i) {
        solve_one(i, read_wide<S, S>(a.transposed(false), i), lapack::solve_general<S>);
      });
    for_each_matrix(n == 0 ? 0 : a.count(),
                    [&](int64_t i) { solve_one(i, read_wide<S>(a, i), solve_general<Wide<S>>); });
  });
}

}  // namespace tenon::cpu
