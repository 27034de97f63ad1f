// Algorithms on small matrices, a matrix of a batch in each lane of vectors. Used by the driver of batches.
// Does not depend on tensors.
//
// A matrix of lanes has, for each element in row-major order, the real parts of all lanes and then, of
// complex matrices, their imaginary parts. Lanes do not depend on each other: a matrix has the same bits in
// any lane.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// One call. Which members an algorithm reads and writes is said with it; T is float or double.
template <class T>
struct LaneCall {
  int64_t m = 0, n = 0;  ///< a is [m, n]
  int64_t k = 0;         ///< columns of b
  T* a = nullptr;
  T* b = nullptr;
  T* extra = nullptr;   ///< real lanes, or of numbers: tau, pivots, values
  T* info = nullptr;    ///< a number for each lane: 0, or what failed
  T* result = nullptr;  ///< a number for each lane
  bool pivot = true, upper = false, unit = false, vectors = true;
};

template <class T>
struct LaneKernels {
  using Kernel = void (*)(const LaneCall<T>&);
  struct Of {
    /// a := L and U; row exchanges are done in b, too; b := L^-1 P^T b. extra: pivots from 1; result: the
    /// product of the pivots with the sign of the exchanges; info: the first pivot of 0, from 1.
    Kernel lu;
    /// b := a^-1 b for a triangle of a.
    Kernel triangle;
    /// a := its Cholesky factor, lower, with zeros above; info: the order of the first minor that is not
    /// positive.
    Kernel cholesky;
    /// a := R and Householder vectors; extra: tau.
    Kernel qr;
    /// b [m, k] := the first k columns of the product of the n reflections in a and
    /// extra.
    Kernel householder;
    /// extra: eigenvalues (n real lanes) of Hermitian a [n, n], whose upper triangle is read and lost;
    /// b [n, n]: row i is the vector of value i, if `vectors`. In no order. info: 1 without convergence.
    Kernel eigh;
    /// a [n, m], row i: column i of the matrix, n <= m. a := orthogonal rows, which are the singular vectors
    /// times values; extra: values (n real lanes); b [n, n]: row i is column i of V, if `vectors`. In no
    /// order.
    Kernel svd;
  };
  size_t lanes;
  Of real, complex;
};

/// Those that this process runs.
template <class T>
const LaneKernels<T>& lane_kernels();

}  // namespace tenon::cpu
