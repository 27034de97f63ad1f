// Copies of panels, and their kernels by kind of number. Used by the files of blocked.h.
#pragma once

#include "backends/cpu/linalg/blocked.h"
#include "backends/cpu/linalg/panel_kernels.h"

namespace tenon::cpu {

/// n, rounded up to a multiple of kPanel.
constexpr int64_t padded(int64_t n) { return (n + kPanel - 1) / kPanel * kPanel; }

template <class T>
const typename PanelKernels<T>::Of& panel_kernels_of(bool is_complex) {
  const PanelKernels<T>& kernels = panel_kernels<T>();
  return is_complex ? kernels.complex : kernels.real;
}

/// Columns of a matrix as a panel: rows kPanel apart, filled up with zeros.
template <class T>
class PanelCopy {
 public:
  PanelCopy(BlockView<T> a, int64_t m, int64_t width)
      : block_(m, kPanel, a.is_complex), m_(m), width_(width) {
    const BlockView<T> to = block_.view();
    each_part(a, [&](int64_t from_part, int64_t to_part) {
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t c = 0; c < width; ++c) to.p[to_part + r * kPanel + c] = a.p[from_part + r * a.row + c];
      }
    });
  }
  Panel<T> panel() const {
    const BlockView<T> v = block_.view();
    return {v.p, v.part, m_, width_, nullptr, nullptr, 0, true, 0};
  }
  BlockView<T> view() const { return block_.view(); }
  void write(BlockView<T> a) const {
    const BlockView<T> from = block_.view();
    each_part(a, [&](int64_t to_part, int64_t from_part) {
      for (int64_t r = 0; r < m_; ++r) {
        for (int64_t c = 0; c < width_; ++c)
          a.p[to_part + r * a.row + c] = from.p[from_part + r * kPanel + c];
      }
    });
  }

 private:
  template <class F>
  void each_part(BlockView<T> a, F f) const {
    f(0, 0);
    if (a.is_complex) f(a.part, block_.view().part);
  }

  Block<T> block_;
  int64_t m_, width_;
};

}  // namespace tenon::cpu
