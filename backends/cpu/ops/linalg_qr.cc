// QR and products of Householder reflections: tensors to linalg/lanes.h and linalg/blocked.h.
#include <algorithm>

#include "backends/cpu/linalg/panel.h"
#include "backends/cpu/ops/linalg_matrices.h"
#include "backends/cpu/report.h"
#include "tenon/generated/linalg/kernels.h"

namespace tenon::cpu {
namespace {

constexpr KernelNames kLanes = TENON_KERNEL_NAMES("lanes"), kBlocked = TENON_KERNEL_NAMES("blocked");

bool is_small(int64_t m, int64_t n) { return std::max(m, n) <= kSmallOrder; }

/// The parts of `count` numbers for each matrix, from lanes to pairs.
template <class T>
void write_numbers(const T* lanes, int64_t group, int64_t width, int64_t count, int64_t parts, T* to) {
  for (int64_t lane = 0; lane < group; ++lane) {
    for (int64_t i = 0; i < count * parts; ++i) to[lane * count * parts + i] = lanes[i * width + lane];
  }
}

/// What a factorization writes: R with zeros below it, or with the vectors; Q; tau.
struct QrResults {
  Tensor *q = nullptr, *r = nullptr, *packed = nullptr, *tau = nullptr;
};

template <class T>
void qr_lanes(const Matrices<T>& a, const QrResults& to) {
  const size_t lanes = lane_kernels<T>().lanes;
  const auto L = static_cast<int64_t>(lanes);
  const auto& kernels = lane_kernels_of<T>(a.is_complex());
  const int64_t m = a.rows, n = a.columns, count = std::min(m, n), parts = a.parts();
  const int64_t k = to.q ? to.q->sizes().back() : 0;
  for_each_group(a.count(), lanes, 4 * m * (n + k) * count, [&](int64_t first, int64_t group) {
    Scratch<T> scratch((m * n + m * k + count) * parts * L);
    LaneCall<T> call{m,
                     n,
                     k,
                     scratch.take(m * n * parts * L),
                     scratch.take(m * k * parts * L),
                     scratch.take(count * parts * L)};
    a.read_lanes(first, group, lanes, call.a);
    kernels.qr(call);
    if (to.tau)
      write_numbers(call.extra, group, L, count, parts,
                    static_cast<T*>(to.tau->data_ptr()) + first * count * parts);
    if (to.packed) Matrices<T>(*to.packed).write_lanes(first, group, lanes, call.a);
    if (to.q) {
      kernels.householder(call);
      Matrices<T>(*to.q).write_lanes(first, group, lanes, call.b);
    }
    if (to.r) {
      for (int64_t i = 0; i < m; ++i)
        std::fill_n(call.a + i * n * parts * L, std::min(i, n) * parts * L, T(0));
      Matrices<T>(*to.r).write_lanes(first, group, lanes, call.a);
    }
  });
}

template <class T>
void qr_blocked(const Matrices<T>& a, const QrResults& to) {
  const int64_t m = a.rows, n = a.columns, count = std::min(m, n), parts = a.parts();
  for_each_matrix(a.count(), [&](int64_t i) {
    const Block<T> block(m, n, a.is_complex()), scales(parts, count, false);
    const BlockView<T> view = block.view();
    T* const tau = scales.view().p;
    const ptrdiff_t part = scales.view().row;
    a.read(i, view);
    factor_qr(view, m, n, tau, part);
    if (to.tau) {
      T* const p = static_cast<T*>(to.tau->data_ptr()) + i * count * parts;
      for (int64_t c = 0; c < count * parts; ++c) p[c] = tau[c / parts + c % parts * part];
    }
    if (to.packed) Matrices<T>(*to.packed).write(i, view);
    if (to.q) {
      const Matrices<T> q(*to.q);
      const Block<T> product(m, q.columns, a.is_complex());
      form_q(view, tau, part, m, count, product.view(), q.columns);
      q.write(i, product.view());
    }
    if (to.r) {
      for (int64_t r = 0; r < m; ++r) {
        std::fill_n(view.p + r * view.row, std::min(r, n), T(0));
        if (a.is_complex()) std::fill_n(view.p + view.part + r * view.row, std::min(r, n), T(0));
      }
      Matrices<T>(*to.r).write(i, view);
    }
  });
}

void run_qr(const char* op, const Tensor& A, const QrResults& to) {
  with_parts(A, [&]<class T>(T) {
    const Matrices<T> a(A);
    const bool small = is_small(a.rows, a.columns);
    report_kernel(op, small ? kLanes : kBlocked);
    small ? qr_lanes(a, to) : qr_blocked(a, to);
  });
}

}  // namespace

void linalg_qr(const Tensor& A, std::string_view mode, Tensor& Q, Tensor& R) {
  run_qr("linalg_qr", A, {.q = mode == "r" ? nullptr : &Q, .r = &R});
}

void geqrf(const Tensor& self, Tensor& a, Tensor& tau) { run_qr("geqrf", self, {.packed = &a, .tau = &tau}); }

void _householder_product(const Tensor& input, const Tensor& tau, Tensor& out) {
  with_parts(input, [&]<class T>(T) {
    const Matrices<T> a(input), t = Matrices<T>::vectors(tau), to(out);
    const int64_t m = a.rows, n = a.columns, k = t.rows, parts = a.parts();
    report_kernel("linalg_householder_product", is_small(m, n) ? kLanes : kBlocked);
    // Columns after the last reflection are those of the identity.
    const auto vectors = [&] {
      Matrices<T> first = a;
      first.columns = k;
      return first;
    }();
    if (is_small(m, n)) {
      const size_t lanes = lane_kernels<T>().lanes;
      const auto L = static_cast<int64_t>(lanes);
      for_each_group(a.count(), lanes, 4 * m * n * k, [&](int64_t first, int64_t group) {
        Scratch<T> scratch((m * k + m * n + k) * parts * L);
        LaneCall<T> call{m,
                         k,
                         n,
                         scratch.take(m * k * parts * L),
                         scratch.take(m * n * parts * L),
                         scratch.take(k * parts * L)};
        vectors.read_lanes(first, group, lanes, call.a);
        t.read_lanes(first, group, lanes, call.extra);
        lane_kernels_of<T>(a.is_complex()).householder(call);
        to.write_lanes(first, group, lanes, call.b);
      });
      return;
    }
    for_each_matrix(a.count(), [&](int64_t i) {
      const Block<T> block(m, k, a.is_complex()), product(m, n, a.is_complex()), scales(parts, k, false);
      T* const p = scales.view().p;
      const ptrdiff_t part = scales.view().row;
      for (int64_t c = 0; c < k * parts; ++c)
        p[c / parts + c % parts * part] = t.at(i)[c / parts * t.row + c % parts];
      vectors.read(i, block.view());
      form_q(block.view(), p, part, m, k, product.view(), n);
      to.write(i, product.view());
    });
  });
}

}  // namespace tenon::cpu
