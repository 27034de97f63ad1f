#include "backends/cpu/fft/transform.h"

#include <algorithm>

#include "tenon/core/parallel.h"

namespace tenon::cpu {

template <class T>
FftSpace<T>::FftSpace(int64_t length, int64_t lanes) {
  // Planes begin at different sets of the caches.
  const int64_t plane = (length * lanes + kFftPadding + 2 * kFftLanes<T> - 1) / kFftLanes<T> * kFftLanes<T>;
  const int64_t shifted = plane + (plane % 1024 < 256 ? 5 * kFftLanes<T> : 0);
  memory_ = make_empty({4 * shifted}, dtype_of<T>, kCPU);
  T* p = static_cast<T*>(memory_.data_ptr());
  for (FftPlanes<T>& planes : planes_) {
    planes = {p, p + shifted};
    p += 2 * shifted;
  }
}

namespace {

template <class T>
FftPlanes<const T> read(FftPlanes<T> planes) {
  return {planes.re, planes.im};
}
template <class T>
FftPlanes<T> at(FftPlanes<T> planes, int64_t i) {
  return {planes.re + i, planes.im + i};
}
template <class T>
FftPlanes<T> turned(FftPlanes<T> planes) {
  return {planes.im, planes.re};
}

template <class T>
bool pairs(FftLines<T> lines, int64_t step) {
  return step == 2 && lines.im == lines.re + 1;
}

/// n elements of each line to planes; real lines leave the imaginary plane alone.
template <class T>
void load(FftLines<const T> in, FftPlanes<T> to, int64_t n, FftBundle bundle) {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t lanes = bundle.lanes;
  if (lanes == 1) {
    if (pairs(in, in.step)) return kernels.split(in.re, 0, to, 0, n, 1);
    for (int64_t i = 0; i < n; ++i) to.re[i] = in.re[i * in.step];
    for (int64_t i = 0; in.im && i < n; ++i) to.im[i] = in.im[i * in.step];
    return;
  }
  if (bundle.used == lanes && pairs(in, in.lane_step))
    return kernels.split(in.re, in.step, to, lanes, lanes, n);
  if (bundle.used == lanes && in.lane_step == 1 && in.im) {
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(in.re + i * in.step, lanes, to.re + i * lanes);
      std::copy_n(in.im + i * in.step, lanes, to.im + i * lanes);
    }
    return;
  }
  constexpr int64_t kTile = kFftLanes<T>;
  int64_t first = 0;
  if (bundle.used == lanes && pairs(in, in.step)) {
    alignas(64) T re[kTile * kTile], im[kTile * kTile];
    for (; first + kTile <= n; first += kTile) {
      kernels.split(in.re + first * 2, in.lane_step, {re, im}, kTile, kTile, lanes);
      kernels.transpose(re, to.re + first * lanes);
      kernels.transpose(im, to.im + first * lanes);
    }
  }
  for (; first < n; first += kTile) {
    const int64_t end = std::min(first + kTile, n);
    for (int64_t l = 0; l < lanes; ++l) {
      const bool has = l < bundle.used;
      const int64_t from = l * in.lane_step;
      for (int64_t i = first; i < end; ++i) to.re[i * lanes + l] = has ? in.re[from + i * in.step] : T(0);
      for (int64_t i = first; in.im && i < end; ++i)
        to.im[i * lanes + l] = has ? in.im[from + i * in.step] : T(0);
    }
  }
}

/// n elements of each line, real parts times `real` and imaginary ones times `imag`.
template <class T>
void store(FftPlanes<const T> from, FftLines<T> out, int64_t n, FftBundle bundle, T real, T imag) {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t lanes = bundle.lanes;
  if (lanes == 1) {
    if (pairs(out, out.step)) return kernels.join(from, 0, out.re, 0, n, 1, real, imag);
    for (int64_t i = 0; i < n; ++i) out.re[i * out.step] = from.re[i] * real;
    for (int64_t i = 0; out.im && i < n; ++i) out.im[i * out.step] = from.im[i] * imag;
    return;
  }
  if (bundle.used == lanes && pairs(out, out.lane_step))
    return kernels.join(from, lanes, out.re, out.step, lanes, n, real, imag);
  constexpr int64_t kTile = kFftLanes<T>;
  int64_t first = 0;
  if (bundle.used == lanes && pairs(out, out.step)) {
    alignas(64) T re[kTile * kTile], im[kTile * kTile];
    for (; first + kTile <= n; first += kTile) {
      kernels.transpose(from.re + first * lanes, re);
      kernels.transpose(from.im + first * lanes, im);
      kernels.join({re, im}, kTile, out.re + first * 2, out.lane_step, kTile, lanes, real, imag);
    }
  }
  for (; first < n; first += kTile) {
    const int64_t end = std::min(first + kTile, n);
    for (int64_t l = 0; l < bundle.used; ++l) {
      const int64_t to = l * out.lane_step;
      for (int64_t i = first; i < end; ++i) out.re[to + i * out.step] = from.re[i * lanes + l] * real;
      for (int64_t i = first; out.im && i < end; ++i)
        out.im[to + i * out.step] = from.im[i * lanes + l] * imag;
    }
  }
}

/// As a matrix of `first` x `second`: transforms of the columns, twiddles, transforms of the rows. `middle`,
/// of plan.capacity() elements, has panels of columns one after the other.
template <class T>
void blocked(const FftPlan<T>& plan, FftLines<const T> in, FftPlanes<T> middle, FftLines<T> out, bool swap,
             T real, T imag) {
  constexpr int64_t kLanes = kFftLanes<T>;
  const int64_t rows = plan.first->n, columns = plan.second->n, panels = plan.panels();
  const FftKernels<T>& kernels = fft_kernels<T>();
  parallel_for(0, panels, 4, [&](int64_t begin, int64_t end) {
    FftSpace<T> space(plan.first->capacity(), kLanes);
    for (int64_t p = begin; p < end; ++p) {
      const int64_t j = p * kLanes;
      const FftPlanes<T> to = space.data();
      load<T>({in.re + j * in.step, in.im + j * in.step, columns * in.step, in.step}, swap ? turned(to) : to,
              rows, {kLanes, std::min(kLanes, columns - j)});
      fft_forward(*plan.first, space, kLanes);
      for (int64_t k = 0; k < rows; ++k)
        kernels.multiply_panel(read(at(space.data(), k * kLanes)), plan.within(k), plan.of_panels(k) + 2 * p,
                               at(middle, (p * rows + k) * kLanes));
      check_stop();
    }
  });
  parallel_for(0, (rows + kLanes - 1) / kLanes, 4, [&](int64_t begin, int64_t end) {
    FftSpace<T> space(std::max(plan.second->capacity(), panels * kLanes), kLanes);
    for (int64_t q = begin; q < end; ++q) {
      const int64_t k = q * kLanes;
      for (int64_t p = 0; p < panels; ++p) {
        const FftPlanes<T> tile = at(middle, (p * rows + k) * kLanes),
                           to = at(space.data(), p * kLanes * kLanes);
        kernels.transpose(tile.re, to.re);
        kernels.transpose(tile.im, to.im);
      }
      fft_forward(*plan.second, space, kLanes);
      const FftPlanes<T> data = space.data();
      store<T>(read(swap ? turned(data) : data),
               {out.re + k * out.step, out.im + k * out.step, rows * out.step, out.step}, columns,
               {kLanes, std::min(kLanes, rows - k)}, real, imag);
      check_stop();
    }
  });
}

template <class T>
void chirp(const FftPlan<T>& plan, FftSpace<T>& space, int64_t lanes) {
  const FftKernels<T>& kernels = fft_kernels<T>();
  const int64_t n = plan.n, m = plan.first->n;
  FftPlanes<T> x = space.data();
  kernels.multiply(read(x), plan.chirp(), n + kFftPadding, x, n, lanes);
  std::fill(x.re + n * lanes, x.re + m * lanes, T(0));
  std::fill(x.im + n * lanes, x.im + m * lanes, T(0));
  fft_forward(*plan.first, space, lanes);
  x = space.data();
  // The inverse is the forward transform of swapped parts, swapped.
  kernels.multiply(read(x), plan.spectrum(), m + kFftPadding, x, m, lanes);
  space.turn();
  fft_forward(*plan.first, space, lanes);
  space.turn();
  x = space.data();
  kernels.multiply(read(x), plan.chirp(), n + kFftPadding, x, n, lanes);
}

/// Planes as lines: of one line alone.
template <class T, class U>
FftLines<T> lines_of(FftPlanes<U> planes) {
  return {planes.re, planes.im, 1, 0};
}

}  // namespace

template <class T>
void fft_forward(const FftPlan<T>& plan, FftSpace<T>& space, int64_t lanes) {
  switch (plan.kind) {
    case FftKind::Passes:
      for (const FftPass& pass : plan.passes) {
        fft_kernels<T>().pass(pass, plan.table.data(), read(space.data()), space.spare(), lanes);
        space.swap();
      }
      return;
    case FftKind::Blocked:
      return blocked<T>(plan, lines_of<const T>(space.data()), space.spare(), lines_of<T>(space.data()),
                        false, T(1), T(1));
    case FftKind::Chirp:
      return chirp(plan, space, lanes);
  }
}

template <class T>
void fft_complex(const FftPlan<T>& plan, FftSpace<T>& space, FftLines<const T> in, FftLines<T> out,
                 FftBundle bundle, bool forward, T scale) {
  if (plan.kind == FftKind::Blocked) return blocked<T>(plan, in, space.data(), out, !forward, scale, scale);
  const FftPlanes<T> to = space.data();
  load(in, forward ? to : turned(to), plan.n, bundle);
  fft_forward(plan, space, bundle.lanes);
  const FftPlanes<T> data = space.data();
  store(read(forward ? data : turned(data)), out, plan.n, bundle, scale, scale);
}

template <class T>
void fft_from_real(const RealFftPlan<T>& plan, FftSpace<T>& space, int64_t n, FftLines<const T> in,
                   FftLines<T> out, FftBundle bundle, bool whole, T scale) {
  const FftPlan<T>& half = *plan.half;
  const int64_t lanes = bundle.lanes, h = n / 2;
  if (n % 2 == 0) {
    load<T>({in.re, in.re + in.step, 2 * in.step, in.lane_step}, space.data(), h, bundle);
    fft_forward(half, space, lanes);
    fft_kernels<T>().twist(read(space.data()), plan.table.data(), space.spare(), h, lanes);
    space.swap();
  } else {
    load(in, space.data(), n, bundle);
    std::fill_n(space.data().im, n * lanes, T(0));
    fft_forward(half, space, lanes);
    std::fill_n(space.data().im, lanes, T(0));
  }
  store(read(space.data()), out, h + 1, bundle, scale, scale);
  if (!whole) return;
  // The rest mirrors it, conjugated.
  const int64_t rest = n - h - 1;
  store(read(at(space.data(), lanes)),
        {out.re + (n - 1) * out.step, out.im + (n - 1) * out.step, -out.step, out.lane_step}, rest, bundle,
        scale, -scale);
}

template <class T>
void fft_to_real(const RealFftPlan<T>& plan, FftSpace<T>& space, int64_t n, FftLines<const T> in,
                 FftLines<T> out, FftBundle bundle, T scale) {
  const FftPlan<T>& half = *plan.half;
  const int64_t lanes = bundle.lanes, h = n / 2;
  const FftPlanes<T> x = space.data();
  load(in, x, h + 1, bundle);
  std::fill_n(x.im, lanes, T(0));
  if (n % 2 == 0) {
    std::fill_n(x.im + h * lanes, lanes, T(0));
    fft_kernels<T>().untwist(read(x), plan.table.data(), space.spare(), h, lanes);
    space.swap();
    space.turn();
    fft_forward(half, space, lanes);
    space.turn();
    store<T>(read(space.data()), {out.re, out.re + out.step, 2 * out.step, out.lane_step}, h, bundle, scale,
             scale);
    return;
  }
  for (int64_t k = 1; k <= h; ++k) {
    for (int64_t l = 0; l < lanes; ++l) {
      x.re[(n - k) * lanes + l] = x.re[k * lanes + l];
      x.im[(n - k) * lanes + l] = -x.im[k * lanes + l];
    }
  }
  space.turn();
  fft_forward(half, space, lanes);
  space.turn();
  store(read(space.data()), out, n, bundle, scale, scale);
}

template class FftSpace<float>;
template class FftSpace<double>;
template void fft_forward(const FftPlan<float>&, FftSpace<float>&, int64_t);
template void fft_forward(const FftPlan<double>&, FftSpace<double>&, int64_t);
template void fft_complex(const FftPlan<float>&, FftSpace<float>&, FftLines<const float>, FftLines<float>,
                          FftBundle, bool, float);
template void fft_from_real(const RealFftPlan<float>&, FftSpace<float>&, int64_t, FftLines<const float>,
                            FftLines<float>, FftBundle, bool, float);
template void fft_to_real(const RealFftPlan<float>&, FftSpace<float>&, int64_t, FftLines<const float>,
                          FftLines<float>, FftBundle, float);
template void fft_complex(const FftPlan<double>&, FftSpace<double>&, FftLines<const double>, FftLines<double>,
                          FftBundle, bool, double);
template void fft_from_real(const RealFftPlan<double>&, FftSpace<double>&, int64_t, FftLines<const double>,
                            FftLines<double>, FftBundle, bool, double);
template void fft_to_real(const RealFftPlan<double>&, FftSpace<double>&, int64_t, FftLines<const double>,
                          FftLines<double>, FftBundle, double);

}  // namespace tenon::cpu
