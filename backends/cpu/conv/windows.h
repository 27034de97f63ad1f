// Windows: the elements that a convolution reads, as a matrix [channels * taps, positions] that is never
// stored. Used by the products of this folder; filled in by backends/cpu/ops/convolution.cc. Knows pointers
// and strides; nothing of tensors.
#pragma once

#include <array>
#include <cstdint>

#include "tenon/iter/host.h"

namespace tenon::cpu {

/// Spatial axes: depth, height, width. Those that a tensor lacks have one output, one input and one tap.
inline constexpr size_t kWindowAxes = 3;

/// The taps of a window along one axis: tap j reads `first + j * step` inputs after the output's own.
struct TapRun {
  int64_t count = 1, first = 0, step = 1;

  int64_t shift(int64_t j) const noexcept { return first + j * step; }
  int64_t lowest() const noexcept { return step < 0 ? shift(count - 1) : first; }
  /// Inputs from the lowest to the highest, both counted.
  int64_t span() const noexcept { return (count - 1) * (step < 0 ? -step : step) + 1; }
};

/// Output o reads the inputs o * step + shift; those outside of [0, inputs) are zero.
struct WindowAxis {
  int64_t outputs = 1;
  int64_t step = 1;
  int64_t inputs = 1;
  int64_t stride = 0;  ///< Bytes from one input to the next.
  TapRun taps;
};

/// Rows are ordered by channel, then tap (depth, height, width); columns by batch entry, then output.
struct Windows {
  const char* data = nullptr;
  int64_t item = 0;                     ///< Bytes of an element.
  ConvertFn convert = nullptr;          ///< To the compute type.
  bool same_type = false;               ///< Whether the elements have it already.
  int64_t batch = 1, batch_stride = 0;  // strides in bytes
  int64_t channels = 1, channel_stride = 0;
  std::array<WindowAxis, kWindowAxes> axes;

  int64_t taps() const noexcept { return axes[0].taps.count * axes[1].taps.count * axes[2].taps.count; }
  int64_t rows() const noexcept { return channels * taps(); }
  /// Lines of outputs along the last axis.
  int64_t lines() const noexcept { return batch * axes[0].outputs * axes[1].outputs; }
  int64_t columns() const noexcept { return lines() * axes[2].outputs; }
};

/// Where one row of a result goes, or one row of an operand comes from, by column of Windows. Bytes.
struct PositionStrides {
  int64_t batch = 0;
  std::array<int64_t, kWindowAxes> axes{};
};

/// How many columns from a multiple of that number on are axes[2] apart: a line, a plane, or more.
inline int64_t even_columns(const Windows& w, const PositionStrides& s) noexcept {
  int64_t n = w.axes[2].outputs;
  for (const size_t axis : {size_t{1}, size_t{0}}) {
    if (w.axes[axis].outputs > 1 && s.axes[axis] != n * s.axes[2]) return n;
    n *= w.axes[axis].outputs;
  }
  return w.batch == 1 || s.batch == n * s.axes[2] ? n * w.batch : n;
}

/// Walks the columns of Windows in order.
class Positions {
 public:
  Positions(const Windows& w, int64_t column) noexcept : w_(w) {
    at_[2] = column % w.axes[2].outputs, column /= w.axes[2].outputs;
    at_[1] = column % w.axes[1].outputs, column /= w.axes[1].outputs;
    at_[0] = column % w.axes[0].outputs;
    batch_ = column / w.axes[0].outputs;
  }
  int64_t batch() const noexcept { return batch_; }
  int64_t operator[](size_t axis) const noexcept { return at_[axis]; }
  int64_t offset(const PositionStrides& s) const noexcept {
    return batch_ * s.batch + at_[0] * s.axes[0] + at_[1] * s.axes[1] + at_[2] * s.axes[2];
  }
  /// Columns until the next line begins.
  int64_t left_in_line() const noexcept { return w_.axes[2].outputs - at_[2]; }
  /// Goes on by at most left_in_line() columns.
  void advance(int64_t columns) noexcept {
    at_[2] += columns;
    if (at_[2] < w_.axes[2].outputs) return;
    at_[2] = 0;
    if (++at_[1] < w_.axes[1].outputs) return;
    at_[1] = 0;
    if (++at_[0] < w_.axes[0].outputs) return;
    at_[0] = 0;
    ++batch_;
  }

 private:
  const Windows& w_;
  int64_t batch_;
  std::array<int64_t, kWindowAxes> at_;
};

}  // namespace tenon::cpu
