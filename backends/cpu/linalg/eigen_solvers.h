// Spectra of matrices of any size by Eigen, in float64. Used by ops/linalg_spectral.cc. S is double or
// std::complex<double>; matrices are in row-major order.
#pragma once

#include <complex>
#include <cstdint>

namespace tenon::cpu {

/// Ascending eigenvalues [n] of Hermitian a [n, n], whose lower triangle is read; row i of vectors [n,
/// n], if not null, is the vector of value i. False without convergence.
template <class S>
bool solve_hermitian(int64_t n, const S* a, double* values, S* vectors);

/// Descending singular values of a [m, n], m >= n. Row i of u [n, m] and of v [n, n], if not null, are the
/// vectors of value i.
template <class S>
bool solve_svd(int64_t m, int64_t n, const S* a, double* values, S* u, S* v);

/// Eigenvalues of a [n, n], and vectors as above, in no order.
template <class S>
bool solve_general(int64_t n, const S* a, std::complex<double>* values, std::complex<double>* vectors);

}  // namespace tenon::cpu
