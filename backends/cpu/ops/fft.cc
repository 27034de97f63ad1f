// Discrete Fourier transforms of tensors: along each dimension in turn, whose lines go one by one or side by
// side in panels. Real dimensions are the last ones that are listed.

#include <cmath>

#include "backends/cpu/fft/transform.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/ops/stub_functions.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/fft/kernels.h"

namespace tenon::cpu {
namespace {

/// Lines shorter than this one go in panels wherever there are enough of them.
constexpr int64_t kShort = 64;
/// Panels of longer lines would not stay in the caches.
constexpr int64_t kLongPanel = 1 << 13;

/// The lines of two tensors along one dimension: those of one more dimension go side by side.
struct Walk {
  StridedDims in, out;  ///< The other dimensions, with strides in elements; not merged.
  int64_t lines = 1, in_lane = 0, out_lane = 0;

  Walk(const Tensor& from, const Tensor& to, int64_t dim) {
    int64_t lane = -1;
    for (int64_t d = 0; d < from.dim(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (d == dim || from.sizes()[i] == 1) continue;
      const bool dense = from.strides()[i] == 1;
      if (lane < 0 || dense || (from.sizes()[i] >= lines && from.strides()[static_cast<size_t>(lane)] != 1)) {
        lane = d;
        lines = from.sizes()[i];
      }
    }
    for (int64_t d = 0; d < from.dim(); ++d) {
      const auto i = static_cast<size_t>(d);
      if (d == lane) {
        in_lane = from.strides()[i];
        out_lane = to.strides()[i];
      } else if (d != dim) {
        in.sizes.push_back(from.sizes()[i]);
        in.strides.push_back(from.strides()[i]);
        out.sizes.push_back(from.sizes()[i]);
        out.strides.push_back(to.strides()[i]);
      }
    }
  }
};

/// Calls f(space, in offset, out offset, bundle) for bundles of the lines along a dimension of n elements;
/// offsets are in elements.
template <class T, class Plan, class F>
void for_each_bundle(const Walk& walk, int64_t n, const Plan& plan, F&& f) {
  constexpr int64_t kLanes = kFftLanes<T>;
  const bool uneven = n % (kLanes * 4) != 0;
  const bool panels = plan.in_panels() && walk.lines >= kLanes / 2 && n <= kLongPanel &&
                      (walk.in_lane == 1 || n < kShort || (uneven && n < 16 * kShort));
  const int64_t lanes = panels ? kLanes : 1, across = (walk.lines + lanes - 1) / lanes;
  const int64_t grain = std::max<int64_t>(1, (1 << 14) / (n * lanes));
  parallel_for(0, walk.in.numel() * across, grain, [&](int64_t begin, int64_t end) {
    FftSpace<T> space(plan.capacity(), lanes);
    int64_t outer = begin / across, first = begin % across * lanes, until_stop = grain;
    int64_t from = walk.in.offset(outer), to = walk.out.offset(outer);
    for (int64_t i = begin; i < end; ++i) {
      f(space, from + first * walk.in_lane, to + first * walk.out_lane,
        FftBundle{lanes, std::min(lanes, walk.lines - first)});
      first += lanes;
      if (first >= walk.lines) {
        first = 0;
        from = walk.in.offset(++outer);
        to = walk.out.offset(outer);
      }
      if (--until_stop == 0) {
        check_stop();
        until_stop = grain;
      }
    }
  });
}

/// What a result is multiplied by: 1, 1 / sqrt(n) or 1 / n, where n is the size of the transform.
double scale_of(int64_t normalization, const Tensor& sized, IntArrayRef dims) {
  double n = 1;
  for (const int64_t d : dims)
    n *= static_cast<double>(sized.sizes()[static_cast<size_t>(wrap_dim(d, sized.dim(), "fft"))]);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(n) : 1 / n;
}

template <class T>
FftLines<T> complex_lines(void* base, int64_t offset, int64_t step, int64_t lane) {
  T* p = static_cast<T*>(base) + 2 * offset;
  return {p, p + 1, 2 * step, 2 * lane};
}
template <class T>
FftLines<const T> constant(FftLines<T> lines) {
  return {lines.re, lines.im, lines.step, lines.lane_step};
}
template <class T>
FftLines<T> real_lines(void* base, int64_t offset, int64_t step, int64_t lane) {
  return {static_cast<T*>(base) + offset, nullptr, step, lane};
}

template <class T>
void complex_along(const Tensor& from, const Tensor& to, int64_t dim, bool forward, double scale) {
  const auto d = static_cast<size_t>(dim);
  const auto plan = fft_plan<T>(from.sizes()[d]);
  const Walk walk(from, to, dim);
  for_each_bundle<T>(
      walk, plan->n, *plan, [&](FftSpace<T>& space, int64_t in, int64_t out, FftBundle bundle) {
        fft_complex<T>(*plan, space,
                       constant(complex_lines<T>(from.data_ptr(), in, from.strides()[d], walk.in_lane)),
                       complex_lines<T>(to.data_ptr(), out, to.strides()[d], walk.out_lane), bundle, forward,
                       static_cast<T>(scale));
      });
}

template <class T>
void real_along(const Tensor& from, const Tensor& to, int64_t dim, bool whole, double scale) {
  const auto d = static_cast<size_t>(dim);
  const int64_t n = from.sizes()[d];
  const auto plan = real_fft_plan<T>(n);
  const Walk walk(from, to, dim);
  for_each_bundle<T>(walk, n, *plan, [&](FftSpace<T>& space, int64_t in, int64_t out, FftBundle bundle) {
    fft_from_real<T>(*plan, space, n,
                     constant(real_lines<T>(from.data_ptr(), in, from.strides()[d], walk.in_lane)),
                     complex_lines<T>(to.data_ptr(), out, to.strides()[d], walk.out_lane), bundle, whole,
                     static_cast<T>(scale));
  });
}

template <class T>
void to_real_along(const Tensor& from, const Tensor& to, int64_t dim, double scale) {
  const auto d = static_cast<size_t>(dim);
  const int64_t n = to.sizes()[d];
  const auto plan = real_fft_plan<T>(n);
  const Walk walk(from, to, dim);
  for_each_bundle<T>(walk, n, *plan, [&](FftSpace<T>& space, int64_t in, int64_t out, FftBundle bundle) {
    fft_to_real<T>(
        *plan, space, n, constant(complex_lines<T>(from.data_ptr(), in, from.strides()[d], walk.in_lane)),
        real_lines<T>(to.data_ptr(), out, to.strides()[d], walk.out_lane), bundle, static_cast<T>(scale));
  });
}

/// Calls f<T>() with the type of the parts.
template <class F>
void with_parts(DType dtype, F&& f) {
  if (real_dtype(dtype) == DType::Float64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

/// Complex transforms along all of `dims`, the last one first; `from` may be `to`.
void complex_dims(const Tensor& from, const Tensor& to, IntArrayRef dims, bool forward, double scale) {
  const Tensor* source = &from;
  for (size_t i = dims.size(); i-- > 0;) {
    with_parts(to.dtype(), [&]<class T>() {
      complex_along<T>(*source, to, wrap_dim(dims[i], to.dim(), "fft"), forward, i == 0 ? scale : 1);
    });
    source = &to;
  }
}

}  // namespace

void _fft_c2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward, Tensor& out) {
  report_kernel("_fft_c2c", "fft");
  if (dim.empty()) return copy(out, self, false);
  if (self.numel() == 0) return;
  complex_dims(self, out, dim, forward, scale_of(normalization, self, dim));
}

void _fft_r2c(const Tensor& self, IntArrayRef dim, int64_t normalization, bool onesided, Tensor& out) {
  report_kernel("_fft_r2c", "fft");
  if (self.numel() == 0) return;
  const double scale = scale_of(normalization, self, dim);
  const IntArrayRef others(dim.data(), dim.size() - 1);
  with_parts(out.dtype(), [&]<class T>() {
    real_along<T>(self, out, wrap_dim(dim.back(), self.dim(), "fft"), !onesided, others.empty() ? scale : 1);
  });
  complex_dims(out, out, others, true, scale);
}

void _fft_c2r(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t, Tensor& out) {
  report_kernel("_fft_c2r", "fft");
  if (out.numel() == 0) return;
  const IntArrayRef others(dim.data(), dim.size() - 1);
  Tensor source = self;
  if (!others.empty()) {
    source = make_empty(self.sizes(), self.dtype(), self.device());
    complex_dims(self, source, others, false, 1);
  }
  with_parts(out.dtype(), [&]<class T>() {
    to_real_along<T>(source, out, wrap_dim(dim.back(), self.dim(), "fft"), scale_of(normalization, out, dim));
  });
}

}  // namespace tenon::cpu
