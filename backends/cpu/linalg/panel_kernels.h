// The innermost loops of factorizations of large matrices: panels of kPanel columns. Used by blocked.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// Columns of a panel; rows of large matrices have a multiple of it in memory, filled up with zeros.
inline constexpr int64_t kPanel = 16;

/// The imaginary parts of a matrix are `part` elements after the real ones.
template <class T>
struct TriangleSolve {
  const T* triangle;
  int64_t row, column;  ///< strides of the triangle
  ptrdiff_t triangle_part;
  bool conj, upper, unit;
  int64_t n;  ///< order of the triangle
  T* b;       ///< [n, columns], rows `b_row` apart
  int64_t b_row, columns;
  ptrdiff_t b_part;
};

/// [m, kPanel], rows kPanel apart.
template <class T>
struct Panel {
  T* p;
  ptrdiff_t part;
  int64_t m, width;  ///< width: the columns that count
  int32_t* pivots;   ///< LU: row exchanges, from 0
  T* tau;            ///< QR
  ptrdiff_t tau_part;
  bool pivot;
  int64_t info;  ///< LU and Cholesky: what failed, from 1, or 0
};

template <class T>
struct PanelKernels {
  struct Of {
    void (*solve)(const TriangleSolve<T>&);
    void (*lu)(Panel<T>&);
    void (*qr)(Panel<T>&);
    /// The upper Cholesky factor of the first `width` rows.
    void (*cholesky)(Panel<T>&);
  };
  Of real, complex;
};

template <class T>
const PanelKernels<T>& panel_kernels();

}  // namespace tenon::cpu
