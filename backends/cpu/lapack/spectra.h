// Spectra by LAPACK (syevd, heevd, gesdd and geev), where it is found: a tenth of the time of eigen_solvers.h
// from order 64 on. A named exception from the same bits everywhere; not while set_strict(true). Used by
// ops/linalg_spectral.cc. S is float, double or a complex number of them.
#pragma once

#include <complex>
#include <cstdint>

#include "backends/cpu/linalg/vectors.h"

namespace tenon::cpu::lapack {

/// Whether there is a library that may be asked now.
bool is_used();

/// Sets how many threads the library has, while it lives. OpenBLAS has one number for the process, which
/// NumPy reads too: of several that live at once the first one sets it, and the last one puts back what was.
class Threads {
 public:
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

/// Ascending eigenvalues [n] of the Hermitian matrix whose lower triangle is that of a [n, n], in row-major
/// order. Vectors, as rows, in place of `a` if they are asked for. False without convergence.
template <class S>
bool solve_hermitian(int64_t n, S* a, typename RealOf<S>::type* values, bool vectors);

/// Descending singular values of a matrix [m, n], m >= n, whose columns are the rows of `a`, which is written
/// over. Row i of u [n, m] and of v [n, n], if not null, are the vectors of value i. False without
/// convergence.
template <class S>
bool solve_svd(int64_t m, int64_t n, S* a, typename RealOf<S>::type* values, S* u, S* v);

/// Eigenvalues of a [n, n], in column-major order, which is written over, and vectors of length 1 as rows of
/// `vectors` [n, n], if not null; in no order. False without convergence.
template <class S>
bool solve_general(int64_t n, S* a, std::complex<typename RealOf<S>::type>* values,
                   std::complex<typename RealOf<S>::type>* vectors);

}  // namespace tenon::cpu::lapack
