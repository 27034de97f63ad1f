// QR by blocks of Householder reflections, I - V T V^H.
// Source: Schreiber and Van Loan (1989), A storage-efficient WY representation.
#include <algorithm>

#include "backends/cpu/linalg/blocked.h"
#include "backends/cpu/linalg/panel.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// The reflections of one panel: V [m, width], with ones on and zeros above its diagonal, and T.
template <class T>
class Reflections {
 public:
  Reflections(BlockView<T> a, const T* tau, ptrdiff_t tau_part, int64_t m, int64_t width)
      : v_(a, m, width), t_(width, width, a.is_complex), m_(m), width_(width) {
    const BlockView<T> v = v_.view();
    for (int64_t r = 0; r < std::min(m, width); ++r) {
      for (int64_t c = r; c < width; ++c) {
        v.p[r * v.row + c] = T(r == c);
        if (a.is_complex) v.p[v.part + r * v.row + c] = T(0);
      }
    }
    make_t(tau, tau_part);
  }
  /// c [m, columns] := (I - V T V^H) c, or with T^H if `adjoint`.
  void apply(BlockView<T> c, int64_t columns, bool adjoint) const {
    if (columns == 0) return;
    const Block<T> w(width_, columns, c.is_complex), tw(width_, columns, c.is_complex);
    const BlockView<T> t = adjoint ? t_.view().adjoint() : t_.view();
    multiply(w.view(), v_.view().adjoint(), c, width_, columns, m_, T(1), T(0));
    multiply(tw.view(), t, w.view(), width_, columns, width_, T(1), T(0));
    multiply(c, v_.view(), tw.view(), m_, columns, width_, T(-1), T(1));
  }

 private:
  /// Column i of T is -tau_i T (V^H v_i), with tau_i on the diagonal.
  void make_t(const T* tau, ptrdiff_t tau_part) {
    const BlockView<T> v = v_.view(), t = t_.view();
    const Block<T> products(width_, width_, v.is_complex), column(width_, 1, v.is_complex);
    const BlockView<T> g = products.view(), x = column.view();
    multiply(g, v.adjoint(), v, width_, width_, m_, T(1), T(0));
    for (int64_t i = 0; i < width_; ++i) {
      const T re = tau[i], im = v.is_complex ? tau[i + tau_part] : T(0);
      for (int64_t j = 0; j < i; ++j) {
        const T gr = g.p[j * g.row + i], gi = v.is_complex ? g.p[g.part + j * g.row + i] : T(0);
        x.p[j * x.row] = -(re * gr - im * gi);
        if (v.is_complex) x.p[x.part + j * x.row] = -(re * gi + im * gr);
      }
      multiply(t.at(0, i), t, x, i, int64_t{1}, i, T(1), T(0));
      t.p[i * t.row + i] = re;
      if (v.is_complex) t.p[t.part + i * t.row + i] = im;
    }
  }

  PanelCopy<T> v_;
  Block<T> t_;
  int64_t m_, width_;
};

}  // namespace

template <class T>
void factor_qr(BlockView<T> a, int64_t m, int64_t n, T* tau, ptrdiff_t part) {
  for (int64_t k = 0; k < std::min(m, n); k += kPanel) {
    check_stop();
    const int64_t width = std::min(kPanel, n - k), count = std::min(width, m - k);
    const BlockView<T> corner = a.at(k, k);
    const PanelCopy<T> copy(corner, m - k, width);
    Panel<T> panel = copy.panel();
    panel.tau = tau + k;
    panel.tau_part = part;
    panel_kernels_of<T>(a.is_complex).qr(panel);
    copy.write(corner);
    if (k + width < n)
      Reflections<T>(corner, tau + k, part, m - k, count).apply(corner.at(0, width), n - k - width, true);
  }
}

template <class T>
void form_q(BlockView<T> a, const T* tau, ptrdiff_t part, int64_t m, int64_t count, BlockView<T> q,
            int64_t columns) {
  for (int64_t i = 0; i < std::min(m, columns); ++i) q.p[i * q.row + i] = T(1);
  if (count == 0) return;
  for (int64_t k = (count - 1) / kPanel * kPanel; k >= 0; k -= kPanel) {
    check_stop();
    const int64_t width = std::min(kPanel, count - k);
    Reflections<T>(a.at(k, k), tau + k, part, m - k, width).apply(q.at(k, k), columns - k, false);
  }
}

template void factor_qr(BlockView<float>, int64_t, int64_t, float*, ptrdiff_t);
template void factor_qr(BlockView<double>, int64_t, int64_t, double*, ptrdiff_t);
template void form_q(BlockView<float>, const float*, ptrdiff_t, int64_t, int64_t, BlockView<float>, int64_t);
template void form_q(BlockView<double>, const double*, ptrdiff_t, int64_t, int64_t, BlockView<double>,
                     int64_t);

}  // namespace tenon::cpu
