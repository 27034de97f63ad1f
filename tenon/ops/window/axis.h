// Axis: along one spatial dimension, which coordinates of the input each coordinate of the output reads, and
// with which weights. Padding, pooling, resizing and folding are axes and one kernel over them
// (axes_stubs.h); the gradient of a linear one is its transposed axes. Used by tenon/ops/window, convolution
// and kernels. Knows no tensors.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

/// The taps of output `o`, in ascending order; coordinates outside [0, inputs) are no taps. Windows are
/// computed from four numbers, so that an axis costs nothing however long it is; other taps are listed.
struct Axis {
  enum class Taps : uint8_t {
    Affine,    ///< o * stride - pad + t * dilation for t in [0, kernel)
    Adaptive,  ///< [floor(o * inputs / outputs), ceil((o + 1) * inputs / outputs))
    Listed,    ///< places[begins[o]] to places[begins[o + 1] - 1], with `weights`
  };

  Taps taps = Taps::Affine;
  int64_t inputs = 1, outputs = 1;
  int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;
  std::vector<int64_t> begins, places;
  std::vector<double> weights = {};  ///< One for each place; none: all are 1.
  /// What sums are divided by: one for each output, and for each input before it is read; none: all are 1.
  std::vector<double> divisors = {}, input_divisors = {};

  static Axis windows(int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride, int64_t pad,
                      int64_t dilation) {
    Axis axis;
    axis.inputs = inputs, axis.outputs = outputs;
    axis.kernel = kernel, axis.stride = stride, axis.pad = pad, axis.dilation = dilation;
    return axis;
  }
  static Axis identity(int64_t size) { return windows(size, size, 1, 1, 0, 1); }
  static Axis adaptive(int64_t inputs, int64_t outputs) {
    Axis axis = windows(inputs, outputs, 1, 1, 0, 1);
    axis.taps = Taps::Adaptive;
    return axis;
  }
  /// No taps yet; they are added output by output with `add`, `next`.
  static Axis listed(int64_t inputs, int64_t outputs) {
    Axis axis = windows(inputs, outputs, 1, 1, 0, 1);
    axis.taps = Taps::Listed;
    axis.begins.reserve(static_cast<size_t>(outputs) + 1);
    axis.begins.push_back(0);
    return axis;
  }
  void add(int64_t place) { places.push_back(place); }
  void add(int64_t place, double weight) {
    places.push_back(place);
    weights.push_back(weight);
  }
  /// The taps of an output are complete.
  void next() { begins.push_back(static_cast<int64_t>(places.size())); }

  /// Calls f(place, weight) for every tap of output `o`, ascending.
  template <class F>
  void for_each_tap(int64_t o, F&& f) const {
    switch (taps) {
      case Taps::Affine: {
        const int64_t first = o * stride - pad;
        // A window may be mostly padding.
        for (int64_t t = first < 0 ? (dilation - 1 - first) / dilation : 0; t < kernel; ++t) {
          const int64_t at = first + t * dilation;
          if (at >= inputs) return;
          f(at, 1.0);
        }
        return;
      }
      case Taps::Adaptive:
        for (int64_t at = adaptive_begin(o); at < adaptive_end(o); ++at) f(at, 1.0);
        return;
      case Taps::Listed:
        for (auto i = static_cast<size_t>(begins[static_cast<size_t>(o)]);
             i < static_cast<size_t>(begins[static_cast<size_t>(o) + 1]); ++i)
          f(places[i], weights.empty() ? 1.0 : weights[i]);
        return;
    }
  }
  int64_t adaptive_begin(int64_t o) const { return o * inputs / outputs; }
  int64_t adaptive_end(int64_t o) const { return ((o + 1) * inputs + outputs - 1) / outputs; }

  /// The axis that leads back: input i reads every output that has i among its taps, with the same weight.
  /// The gradient of a sum along this axis is a sum along that one.
  Axis transposed() const;
};

}  // namespace tenon
