// Values of an image at the places of a grid, and their gradients. A place is read once for all channels: its
// elements and their weights first, for a tile of places, then sums over elements for each channel. Sums are
// in the order of elements, gradients of the image in the order of places.
#include <algorithm>
#include <cmath>
#include <memory>

#include "backends/cpu/report.h"
#include "backends/cpu/window/grid_kernels.h"
#include "tenon/core/parallel.h"
#include "tenon/core/tensor.h"
#include "tenon/generated/window/kernels.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/window/grid.h"

namespace tenon::cpu {
namespace {

using ops::GridPadding;
using ops::Sampling;

constexpr size_t kAxes = 3;
constexpr int64_t kTile = kGridTile;
/// Products that are worth another thread.
constexpr int64_t kProductsPerThread = 1 << 15;

/// What does not call a library where the processor may lack the instruction.
template <class T>
T floor_of(T x) {
  if (!(std::abs(x) < T(1 << 30))) return std::floor(x);
  const auto whole = static_cast<T>(static_cast<int32_t>(x));
  return whole > x ? whole - 1 : whole;
}

/// One axis of the image. Strides count elements.
struct GridAxis {
  int64_t size, stride;
  bool align_corners;
  GridPadding padding;
};

/// A coordinate as a place among elements, and the slope of that place by the coordinate.
template <class T>
struct Place {
  T at, slope;
};

template <class T>
void reflect(Place<T>& x, const GridAxis& a) {
  const T low = a.align_corners ? T(0) : T(-0.5), span = static_cast<T>(a.size - a.align_corners);
  if (span == 0) {
    x = {x.at * 0, 0};
    return;
  }
  const T from = x.at - low, away = std::abs(from);
  bool back = false;
  T extra = away;
  if (!(away < span)) {
    extra = std::fmod(away, span);
    back = std::fmod(floor_of(away / span), T(2)) != 0;
  }
  x.at = back ? span - extra + low : extra + low;
  if ((from < 0) != back) x.slope = -x.slope;
}

/// Brings a place into the image. NaN is at the first element; the slope is 0 at the border.
template <class T>
void pad(Place<T>& x, const GridAxis& a) {
  if (a.padding == GridPadding::Zeros) return;
  if (a.padding == GridPadding::Reflection) reflect(x, a);
  const auto last = static_cast<T>(a.size - 1);
  if (!(x.at > 0))
    x = {0, 0};
  else if (!(x.at < last))
    x = {last, 0};
}

/// The elements along one axis that a place is made of: offsets, weights, slopes of weights.
template <class T, int kTaps>
struct AxisTaps {
  bool inside[kTaps] = {true};
  int64_t offset[kTaps] = {};
  T weight[kTaps], slope[kTaps];

  void set(int i, T place, T by, T by_slope, const GridAxis& a) {
    inside[i] = place >= 0 && place <= static_cast<T>(a.size - 1);
    offset[i] = inside[i] ? static_cast<int64_t>(place) * a.stride : 0;
    weight[i] = by;
    slope[i] = by_slope;
  }

  /// The cubic convolution of Keys (1981) with a = -0.75.
  void set_cubic(Place<T> x, const GridAxis& axis) {
    constexpr T a = -0.75;
    const T below = floor_of(x.at), t = x.at - below;
    const T from[4] = {t + 1, t, 1 - t, 2 - t};
    for (int i = 0; i < kTaps; ++i) {
      const T d = from[i];
      const bool far = i == 0 || i == 3;
      const T by = far ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : ((a + 2) * d - (a + 3)) * d * d + 1;
      const T slope_by = far ? (3 * a * d - 10 * a) * d + 8 * a : (3 * (a + 2) * d - 2 * (a + 3)) * d;
      Place<T> tap{below + static_cast<T>(i - 1), 0};
      pad(tap, axis);
      set(i, tap.at, by, (i < 2 ? slope_by : -slope_by) * x.slope, axis);
    }
  }

  void read(T coordinate, const GridAxis& a) {
    const T half = static_cast<T>(a.size - a.align_corners) / 2;
    Place<T> x{(coordinate + 1) * half - (a.align_corners ? T(0) : T(0.5)), half};
    if constexpr (kTaps == 4) {
      set_cubic(x, a);
    } else {
      pad(x, a);
      if constexpr (kTaps == 1) {
        set(0, std::nearbyint(x.at), 1, 0, a);
      } else {
        const T below = floor_of(x.at), t = x.at - below;
        set(0, below, 1 - t, -x.slope, a);
        set(1, below + 1, t, x.slope, a);
      }
    }
  }
};

/// The grid of a call, which is contiguous, and the axes of its image.
template <class T>
struct Sampler {
  const T* grid;
  int64_t places = 1;  ///< Of one image.
  size_t rank;
  Sampling mode;
  GridAxis axes[kAxes];  ///< Axis 0 has one element where rank is 2.

  Sampler(const Tensor& grid, const Tensor& image, int64_t mode, int64_t padding, bool align_corners)
      : grid(static_cast<const T*>(grid.data_ptr())),
        rank(image.sizes().size() - 2),
        mode(static_cast<Sampling>(mode)) {
    for (size_t d = 1; d <= rank; ++d) places *= grid.sizes()[d];
    axes[0] = {1, 0, false, GridPadding::Border};
    for (size_t d = 0; d < rank; ++d)
      axes[kAxes - rank + d] = {image.sizes()[d + 2], image.strides()[d + 2], align_corners,
                                static_cast<GridPadding>(padding)};
  }
  GridExtent<T> extent(size_t axis) const {
    const GridAxis& a = axes[axis];
    return {static_cast<T>(a.size - a.align_corners) / 2, a.align_corners ? T(0) : T(0.5),
            static_cast<T>(a.size - 1), a.stride};
  }
  /// Elements that a place is made of.
  int64_t elements() const {
    const int64_t taps = mode == Sampling::Nearest ? 1 : mode == Sampling::Bilinear ? 2 : 4;
    return rank == 3 ? taps * taps * taps : taps * taps;
  }
};

/// The elements of a tile of places: offsets and weights, and if they are wanted the slopes of the weights by
/// each coordinate, as GridKernels has them.
template <class T>
class Tile {
 public:
  using Kernels = GridKernels<T>;
  using Offset = typename Kernels::Offset;

  Tile(const Sampler<T>& sampler, bool with_slopes)
      : s_(sampler), kernels_(kernels_of()), count_(static_cast<size_t>(sampler.elements())) {
    const size_t all = count_ * kGridTile;
    offsets_.reset(new Offset[all]);
    weights_.reset(new T[all]());
    std::fill_n(offsets_.get(), all, Kernels::kOutside);
    if (with_slopes) slopes_.reset(new T[all * sampler.rank]());
  }

  /// Reads `n` places, from place `first` of image `image` on. Elements of later places stay as they were.
  void read(int64_t image, int64_t first, int64_t n) {
    const auto rank = static_cast<int64_t>(s_.rank);
    const T* from = s_.grid + (image * s_.places + first) * rank;
    const GridPadding padding = s_.axes[2].padding;
    const auto read_plane = kernels_.read_plane[static_cast<size_t>(s_.mode)];
    const bool has_slopes = !slopes_ || s_.mode == Sampling::Bilinear;
    if (read_plane && rank == 2 && has_slopes && padding != GridPadding::Reflection) {
      T whole[2 * kGridTile] = {};
      if (n < kTile) from = std::copy_n(from, 2 * n, whole) - 2 * n;
      read_plane(from, s_.extent(2), s_.extent(1), padding == GridPadding::Border, offsets_.get(),
                 weights_.get(), slopes_.get());
    } else if (s_.mode == Sampling::Nearest) {
      read_as<1>(from, n);
    } else if (s_.mode == Sampling::Bilinear) {
      read_as<2>(from, n);
    } else {
      read_as<4>(from, n);
    }
  }

  /// The values of the first `n` places.
  void sum(T* out, const T* channel, int64_t n) const {
    if (n == kTile) return kernels_.sum(out, channel, offsets_.get(), weights_.get(), count_);
    T whole[kGridTile];
    kernels_.sum(whole, channel, offsets_.get(), weights_.get(), count_);
    std::copy_n(whole, n, out);
  }

  /// Adds to `shares` [elements, kGridTile] what a channel brings to the slopes.
  void share(T* shares, const T* channel, const T* grad, int64_t n) const {
    T whole[kGridTile] = {};
    if (n < kTile) grad = std::copy_n(grad, n, whole) - n;
    kernels_.share(shares, channel, grad, offsets_.get(), count_);
  }

  /// Adds the gradients of `n` places to their elements, place by place.
  void scatter(T* channel, const T* grad, int64_t n) const {
    for (int64_t p = 0; p < n; ++p) {
      for (size_t i = 0; i < count_; ++i) {
        const size_t at = i * kGridTile + static_cast<size_t>(p);
        if (offsets_[at] != Kernels::kOutside) channel[offsets_[at]] += grad[p] * weights_[at];
      }
    }
  }

  /// The gradients of the first `n` places by each coordinate: out [n, rank].
  void gradients(T* out, const T* shares, int64_t n) const {
    for (size_t d = 0; d < s_.rank; ++d) {
      const T* slope = slopes_.get() + d * count_ * kGridTile;
      T sum[kGridTile] = {};
      for (size_t i = 0; i < count_ * kGridTile; ++i) sum[i % kGridTile] += shares[i] * slope[i];
      for (size_t p = 0; p < static_cast<size_t>(n); ++p) out[p * s_.rank + d] = sum[p];
    }
  }
  size_t count() const { return count_; }

 private:
  static const Kernels& kernels_of() {
    if constexpr (std::is_same_v<T, float>)
      return grid_kernels().f32;
    else
      return grid_kernels().f64;
  }

  template <int kTaps>
  void read_as(const T* from, int64_t n) {
    AxisTaps<T, kTaps> z, y, x;
    z.weight[0] = 1, z.slope[0] = 0;
    const int outer = s_.rank == 3 ? kTaps : 1;
    const size_t by_axis = count_ * kGridTile;
    for (size_t p = 0; p < static_cast<size_t>(n); ++p, from += s_.rank) {
      x.read(from[0], s_.axes[2]);
      y.read(from[1], s_.axes[1]);
      if (s_.rank == 3) z.read(from[2], s_.axes[0]);
      size_t at = p;
      for (int k = 0; k < outer; ++k) {
        for (int j = 0; j < kTaps; ++j) {
          const bool inside = z.inside[k] && y.inside[j];
          const int64_t row = z.offset[k] + y.offset[j];
          const T by = z.weight[k] * y.weight[j];
          for (int i = 0; i < kTaps; ++i, at += kGridTile) {
            offsets_[at] = inside && x.inside[i] ? static_cast<Offset>(row + x.offset[i]) : Kernels::kOutside;
            weights_[at] = by * x.weight[i];
            if (!slopes_) continue;
            slopes_[at] = by * x.slope[i];
            slopes_[at + by_axis] = z.weight[k] * y.slope[j] * x.weight[i];
            if (s_.rank == 3) slopes_[at + 2 * by_axis] = z.slope[k] * y.weight[j] * x.weight[i];
          }
        }
      }
    }
  }

  const Sampler<T>& s_;
  const Kernels& kernels_;
  const size_t count_;
  std::unique_ptr<Offset[]> offsets_;
  std::unique_ptr<T[]> weights_, slopes_;
};

/// A tensor [N, C, *] by images and channels.
template <class T>
struct Planes {
  T* data;
  int64_t images, channels, image_stride, channel_stride;

  explicit Planes(const Tensor& t)
      : data(static_cast<T*>(t.data_ptr())),
        images(t.sizes()[0]),
        channels(t.sizes()[1]),
        image_stride(t.strides()[0]),
        channel_stride(t.strides()[1]) {}
  T* plane(int64_t image, int64_t channel) const {
    return data + image * image_stride + channel * channel_stride;
  }
};

/// Calls f(tile, image, first, n) for tiles of places, on several threads where that pays.
template <class T, class F>
void for_tiles(const Sampler<T>& s, const Planes<T>& image, bool slopes, const F& f) {
  const int64_t tiles = (s.places + kTile - 1) / kTile;
  const int64_t work = kTile * (image.channels + 4) * s.elements();
  const int64_t grain = std::max<int64_t>(kProductsPerThread / work, 1);
  parallel_for(0, image.images * tiles, grain, [&](int64_t begin, int64_t end) {
    Tile<T> tile(s, slopes);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i % tiles * kTile, n = std::min(kTile, s.places - first);
      tile.read(i / tiles, first, n);
      f(tile, i / tiles, first, n);
    }
  });
}

template <class T>
void sample_as(const Sampler<T>& s, const Tensor& input, const Tensor& out) {
  const Planes<T> image(input), result(out);
  for_tiles(s, image, false, [&](const Tile<T>& tile, int64_t b, int64_t first, int64_t n) {
    for (int64_t c = 0; c < image.channels; ++c) tile.sum(result.plane(b, c) + first, image.plane(b, c), n);
  });
}

/// Each thread has planes of its own, and adds to their elements in the order of places.
template <class T>
void input_gradient_as(const Sampler<T>& s, const Tensor& grad_output, const Tensor& out) {
  const Planes<T> grad(grad_output), image(out);
  const int64_t work = std::max<int64_t>(s.places * s.elements(), 1);
  const int64_t grain = std::max<int64_t>(kProductsPerThread / work, 1);
  parallel_for(0, image.images * image.channels, grain, [&](int64_t begin, int64_t end) {
    Tile<T> tile(s, false);
    for (int64_t i = begin, stop = 0; i < end; i = stop) {
      const int64_t b = i / image.channels;
      stop = std::min(end, (b + 1) * image.channels);
      for (int64_t first = 0; first < s.places; first += kTile) {
        const int64_t n = std::min(kTile, s.places - first);
        tile.read(b, first, n);
        for (int64_t c = i - b * image.channels; c < stop - b * image.channels; ++c)
          tile.scatter(image.plane(b, c), grad.plane(b, c) + first, n);
      }
    }
  });
}

template <class T>
void slopes_as(const Sampler<T>& s, const Tensor& grad_output, const Tensor& input, const Tensor& out) {
  const Planes<T> grad(grad_output), image(input);
  auto* result = static_cast<T*>(out.data_ptr());
  for_tiles(s, image, true, [&](const Tile<T>& tile, int64_t b, int64_t first, int64_t n) {
    const std::unique_ptr<T[]> shares(new T[tile.count() * kGridTile]());
    for (int64_t c = 0; c < image.channels; ++c)
      tile.share(shares.get(), image.plane(b, c), grad.plane(b, c) + first, n);
    tile.gradients(result + (b * s.places + first) * static_cast<int64_t>(s.rank), shares.get(), n);
  });
}

/// The type that computes: that of the image, float32 for half types, and float64 where offsets in a channel
/// need 64 bits.
DType computed_type(const Tensor& image) {
  int64_t reach = 0;
  for (size_t d = 2; d < image.sizes().size(); ++d)
    reach += (image.sizes()[d] - 1) * std::abs(image.strides()[d]);
  return image.dtype() == DType::Float64 || reach >= INT32_MAX ? DType::Float64 : DType::Float32;
}

Tensor dense(const Tensor& t, DType type) { return ops::as_contiguous(ops::as_dtype(t, type)); }

/// Calls f(tag, result), with a result of the type that computes, whose elements are those of `out`.
template <class F>
void with_result(const char* kernel, DType type, Tensor& out, const F& f) {
  Tensor result = out;
  if (out.dtype() != type) {
    result = make_empty(out.sizes(), type);
    ops::zero_elements(result);
  }
  if (type == DType::Float64)
    f(double(), result);
  else
    f(float(), result);
  if (out.dtype() != type) ops::copy_elements(out, result, kernel);
}

void sample(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners,
            Tensor& out) {
  report_kernel("grid_sampler", TENON_KERNEL_NAMES("grid_sampler"));
  const DType type = computed_type(input);
  const Tensor image = ops::as_dtype(input, type), places = dense(grid, type);
  with_result("grid_sampler", type, out, [&]<class T>(T, const Tensor& result) {
    sample_as(Sampler<T>(places, image, mode, padding, align_corners), image, result);
  });
}

}  // namespace

void grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                     bool align_corners, Tensor& out) {
  sample(input, grid, mode, padding, align_corners, out);
}

void grid_sampler_3d(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                     bool align_corners, Tensor& out) {
  sample(input, grid, mode, padding, align_corners, out);
}

void grid_sampler_input_backward(const Tensor& grad_output, const Tensor& input, const Tensor& grid,
                                 int64_t mode, int64_t padding, bool align_corners, Tensor& out) {
  report_kernel("grid_sampler", TENON_KERNEL_NAMES("grid_sampler_input_backward"));
  const DType type = computed_type(out);
  const Tensor grad = dense(grad_output, type), places = dense(grid, type);
  with_result("grid_sampler", type, out, [&]<class T>(T, const Tensor& result) {
    input_gradient_as(Sampler<T>(places, result, mode, padding, align_corners), grad, result);
  });
}

void grid_sampler_slopes(const Tensor& grad_output, const Tensor& input, const Tensor& grid, int64_t mode,
                         int64_t padding, bool align_corners, Tensor& out) {
  report_kernel("grid_sampler", TENON_KERNEL_NAMES("grid_sampler_slopes"));
  const DType type = computed_type(input);
  const Tensor grad = dense(grad_output, type), image = ops::as_dtype(input, type),
               places = dense(grid, type);
  with_result("grid_sampler", type, out, [&]<class T>(T, const Tensor& result) {
    slopes_as(Sampler<T>(places, image, mode, padding, align_corners), grad, image, result);
  });
}

}  // namespace tenon::cpu
