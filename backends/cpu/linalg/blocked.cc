// Recursive LU, Cholesky and triangular solution over the matrix product.
// Source: Toledo (1997), Locality of reference in LU decomposition with partial pivoting.
#include "backends/cpu/linalg/blocked.h"

#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/linalg/panel.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {

template <class T>
Block<T>::Block(int64_t rows, int64_t columns, bool is_complex) {
  const int64_t width = padded(columns), plane = rows * width;
  memory_ = std::make_unique<T[]>(static_cast<size_t>(plane * (is_complex ? 2 : 1)));
  view_ = {memory_.get(), width, 1, is_complex ? plane : 0, is_complex, false};
}

namespace {

/// Half of n, as a multiple of kPanel.
int64_t half_of(int64_t n) { return padded(n / 2); }

template <class T>
void multiply_parts(BlockView<T> c, const T* a, BlockView<T> av, const T* b, BlockView<T> bv,
                    GemmArgs<T> args) {
  args.a = a;
  args.b = b;
  args.a_row = av.row;
  args.a_col = av.column;
  args.b_row = bv.row;
  args.b_col = bv.column;
  args.c = c.p;
  args.c_row = c.row;
  args.c_col = c.column;
  gemm(args);
}

}  // namespace

template <class T>
void multiply(BlockView<T> c, BlockView<T> a, BlockView<T> b, int64_t m, int64_t n, int64_t k, T alpha,
              T beta) {
  if (m == 0 || n == 0 || (k == 0 && beta == T(1))) return;
  GemmArgs<T> args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.alpha = alpha;
  args.beta = beta;
  multiply_parts(c, a.p, a, b.p, b, args);
  if (!c.is_complex) return;
  const T sa = a.conj ? T(-1) : T(1), sb = b.conj ? T(-1) : T(1);
  BlockView<T> imag = c;
  imag.p += c.part;
  args.alpha = -alpha * sa * sb;
  args.beta = 1;
  multiply_parts(c, a.p + a.part, a, b.p + b.part, b, args);
  args.alpha = alpha * sb;
  args.beta = beta;
  multiply_parts(imag, a.p, a, b.p + b.part, b, args);
  args.alpha = alpha * sa;
  args.beta = 1;
  multiply_parts(imag, a.p + a.part, a, b.p, b, args);
}

template <class T>
void solve_triangle(BlockView<T> t, bool upper, bool unit, BlockView<T> b, int64_t n, int64_t columns) {
  if (n == 0 || columns == 0) return;
  if (n <= kPanel) {
    const TriangleSolve<T> call{t.p,  t.row, t.column, t.part, t.conj,  upper,
                                unit, n,     b.p,      b.row,  columns, b.part};
    panel_kernels_of<T>(t.is_complex).solve(call);
    return;
  }
  const int64_t n1 = half_of(n), n2 = n - n1;
  const BlockView<T> below = b.at(n1, 0);
  if (upper) {
    solve_triangle(t.at(n1, n1), upper, unit, below, n2, columns);
    multiply(b, t.at(0, n1), below, n1, columns, n2, T(-1), T(1));
    solve_triangle(t, upper, unit, b, n1, columns);
  } else {
    solve_triangle(t, upper, unit, b, n1, columns);
    multiply(below, t.at(n1, 0), b, n2, columns, n1, T(-1), T(1));
    solve_triangle(t.at(n1, n1), upper, unit, below, n2, columns);
  }
}

template <class T>
void exchange_rows(BlockView<T> a, int64_t columns, const int32_t* pivots, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (pivots[i] == i) continue;
    T *const x = a.p + i * a.row, *const y = a.p + pivots[i] * a.row;
    std::swap_ranges(x, x + columns, y);
    if (a.is_complex) std::swap_ranges(x + a.part, x + a.part + columns, y + a.part);
  }
}

namespace {

/// The first `n` <= kPanel columns.
template <class T>
int64_t factor_lu_panel(BlockView<T> a, int64_t m, int64_t n, int32_t* pivots, bool pivot) {
  PanelCopy<T> copy(a, m, n);
  Panel<T> panel = copy.panel();
  panel.pivots = pivots;
  panel.pivot = pivot;
  panel_kernels_of<T>(a.is_complex).lu(panel);
  copy.write(a);
  return panel.info;
}

}  // namespace

template <class T>
int64_t factor_lu(BlockView<T> a, int64_t m, int64_t n, int32_t* pivots, bool pivot) {
  const int64_t count = std::min(m, n);
  if (count == 0) return 0;
  if (n <= kPanel) return factor_lu_panel(a, m, n, pivots, pivot);
  check_stop();
  const int64_t left = half_of(n), k1 = std::min(m, left), rest = n - left;
  int64_t info = factor_lu(a, m, left, pivots, pivot);
  const BlockView<T> right = a.at(0, left);
  exchange_rows(right, rest, pivots, k1);
  solve_triangle(a, false, true, right, k1, rest);
  if (m > k1) {
    const BlockView<T> corner = a.at(k1, left);
    multiply(corner, a.at(k1, 0), right, m - k1, rest, k1, T(-1), T(1));
    const int64_t more = factor_lu(corner, m - k1, rest, pivots + k1, pivot);
    if (info == 0 && more != 0) info = more + k1;
    exchange_rows(a.at(k1, 0), left, pivots + k1, count - k1);
    for (int64_t i = k1; i < count; ++i) pivots[i] += static_cast<int32_t>(k1);
  }
  return info;
}

template <class T>
int64_t factor_cholesky(BlockView<T> a, int64_t n) {
  if (n == 0) return 0;
  if (n <= kPanel) {
    PanelCopy<T> copy(a, n, n);
    Panel<T> panel = copy.panel();
    panel_kernels_of<T>(a.is_complex).cholesky(panel);
    copy.write(a);
    return panel.info;
  }
  check_stop();
  const int64_t n1 = half_of(n), n2 = n - n1;
  int64_t info = factor_cholesky(a, n1);
  const BlockView<T> right = a.at(0, n1), corner = a.at(n1, n1);
  solve_triangle(a.adjoint(), false, false, right, n1, n2);
  // Of the corner, whose lower triangle is not read, strips of columns down to the diagonal.
  constexpr int64_t kStrip = 128;
  for (int64_t c = 0; c < n2; c += kStrip) {
    const int64_t width = std::min(kStrip, n2 - c);
    multiply(corner.at(0, c), right.adjoint(), right.at(0, c), c + width, width, n1, T(-1), T(1));
  }
  const int64_t more = factor_cholesky(corner, n2);
  if (info == 0 && more != 0) info = more + n1;
  return info;
}

#define TENON_BLOCKED(T)                                                                             \
  template class Block<T>;                                                                           \
  template void multiply(BlockView<T>, BlockView<T>, BlockView<T>, int64_t, int64_t, int64_t, T, T); \
  template void solve_triangle(BlockView<T>, bool, bool, BlockView<T>, int64_t, int64_t);            \
  template void exchange_rows(BlockView<T>, int64_t, const int32_t*, int64_t);                       \
  template int64_t factor_lu(BlockView<T>, int64_t, int64_t, int32_t*, bool);                        \
  template int64_t factor_cholesky(BlockView<T>, int64_t);
TENON_BLOCKED(float)
TENON_BLOCKED(double)
#undef TENON_BLOCKED

}  // namespace tenon::cpu
