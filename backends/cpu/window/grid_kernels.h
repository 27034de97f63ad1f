// What sampling at the places of a grid is made of: loops over tiles of places. Used by ops/grid_sampler.cc.
// Independent of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "backends/cpu/cpu_target.h"

namespace tenon::cpu {

/// Places that are prepared at a time.
inline constexpr size_t kGridTile = 64;

/// One axis of an image as coordinates from -1 to 1 see it: (coordinate + 1) * half - shift is a place, from
/// 0 to `last`. Strides count elements.
template <class T>
struct GridExtent {
  T half, shift, last;
  int64_t stride;
};

/// Arrays of elements have a row of kGridTile places for each element that a place is made of.
template <class T>
struct GridKernels {
  /// A signed integer as wide as T: an element's offset in its channel.
  using Offset = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  /// The offset of an element outside of the image, which counts as 0.
  static constexpr Offset kOutside = std::numeric_limits<Offset>::min();

  /// The elements that each place of a plane is made of, and their weights: the four around it, the nearest,
  /// the sixteen around it, in the order of ops::Sampling. `grid` has pairs x, y. With `clips`, places
  /// outside are moved to the border. Of four elements, `slopes` gets the slopes of the weights by x, then by
  /// y, unless it is null. Null of float64, which is rare.
  void (*read_plane[3])(const T* grid, const GridExtent<T>& x, const GridExtent<T>& y, bool clips,
                        Offset* offsets, T* weights, T* slopes);
  /// out: the sum of each place's elements times their weights, in their order.
  void (*sum)(T* out, const T* channel, const Offset* offsets, const T* weights, size_t elements);
  /// Adds to `shares` each element times its place's gradient.
  void (*share)(T* shares, const T* channel, const T* grad, const Offset* offsets, size_t elements);
};

struct AllGridKernels {
  GridKernels<float> f32;
  GridKernels<double> f64;
};

/// Those that this process runs.
const AllGridKernels& grid_kernels();

}  // namespace tenon::cpu
