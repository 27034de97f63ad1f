// Factorizations of large matrices: recursive, over Tenon's matrix product. Used by the driver of batches.
// Does not depend on tensors. T is float or double; complex matrices have their parts in two planes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tenon::cpu {

/// A matrix in place. Strides count elements of a plane; the imaginary plane is `part` elements after the
/// real one. A matrix that is written has columns 1 element apart.
template <class T>
struct BlockView {
  T* p = nullptr;
  int64_t row = 0, column = 1;
  ptrdiff_t part = 0;
  bool is_complex = false, conj = false;

  BlockView at(int64_t i, int64_t j) const {
    BlockView v = *this;
    v.p += i * row + j * column;
    return v;
  }
  BlockView adjoint() const {
    BlockView v = *this;
    v.row = column;
    v.column = row;
    v.conj = is_complex && !conj;
    return v;
  }
};

/// Memory for a matrix, with rows of a multiple of kPanel elements, all zeros.
template <class T>
class Block {
 public:
  Block(int64_t rows, int64_t columns, bool is_complex);
  BlockView<T> view() const { return view_; }

 private:
  std::unique_ptr<T[]> memory_;
  BlockView<T> view_;
};

/// c = alpha a b + beta c, [m, k] and [k, n].
template <class T>
void multiply(BlockView<T> c, BlockView<T> a, BlockView<T> b, int64_t m, int64_t n, int64_t k, T alpha,
              T beta);

/// b [n, columns] := the inverse of a triangle times b.
template <class T>
void solve_triangle(BlockView<T> triangle, bool upper, bool unit, BlockView<T> b, int64_t n, int64_t columns);

/// a [m, n] := L and U; pivots: exchanges from 0. Returns the first pivot that is 0, from 1, or 0.
template <class T>
int64_t factor_lu(BlockView<T> a, int64_t m, int64_t n, int32_t* pivots, bool pivot);
/// Exchanges rows i and pivots[i], ascending.
template <class T>
void exchange_rows(BlockView<T> a, int64_t columns, const int32_t* pivots, int64_t count);

/// The upper triangle of a [n, n] := the upper Cholesky factor. Returns the order of the first minor that is
/// not positive, or 0.
template <class T>
int64_t factor_cholesky(BlockView<T> a, int64_t n);

/// a [m, n] := R and Householder vectors; tau [min(m, n)], its imaginary parts `part` after it.
template <class T>
void factor_qr(BlockView<T> a, int64_t m, int64_t n, T* tau, ptrdiff_t part);
/// q [m, columns] := the first columns of the product of the `count` reflections in a and tau.
template <class T>
void form_q(BlockView<T> a, const T* tau, ptrdiff_t part, int64_t m, int64_t count, BlockView<T> q,
            int64_t columns);

}  // namespace tenon::cpu
