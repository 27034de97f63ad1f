// Weights in the order of the rows of Windows: where they lie, if they lie so, or copied block by block. Used
// by the products of this folder.
#pragma once

#include <algorithm>

#include "backends/cpu/conv/window_product.h"

namespace tenon::cpu {

/// The weights of one group.
template <class T>
class OrderedWeights {
 public:
  OrderedWeights(const WindowWeights& w, const Windows& windows, int64_t group_offset)
      : w_(w), windows_(windows), data_(w.data + group_offset) {
    // Taps and channels that follow each other without gaps: a matrix as it stands.
    int64_t next = w.item;
    in_place_ = w.same_type && w.row % w.item == 0;
    for (size_t a = kWindowAxes; a-- > 0;) {
      if (windows.axes[a].taps.count > 1) in_place_ &= w.tap[a] == next;
      next *= windows.axes[a].taps.count;
    }
    if (windows.channels > 1) in_place_ &= w.channel == next;
  }

  bool in_place() const { return in_place_; }
  const T* at(int64_t row, int64_t k) const { return reinterpret_cast<const T*>(data_ + row * w_.row) + k; }
  ptrdiff_t row_stride() const { return w_.row / w_.item; }

  /// Rows [first, last) and rows [k, k_end) of Windows, as a contiguous matrix.
  void load(int64_t first, int64_t last, int64_t k, int64_t k_end, T* to) const {
    const int64_t taps = windows_.taps();
    const int64_t height = windows_.axes[1].taps.count, width = windows_.axes[2].taps.count;
    constexpr int64_t kItem = sizeof(T);
    for (int64_t row = first; row < last; ++row) {
      for (int64_t at = k; at < k_end;) {
        const int64_t channel = at / taps, tap = at % taps;
        const char* from = data_ + row * w_.row + channel * w_.channel;
        const int64_t d = tap / (height * width), h = tap / width % height, x = tap % width;
        // A whole plane of taps at a time, or what is left of a line of it.
        int64_t n = std::min(width - x, k_end - at), lines = 1;
        if (x == 0 && h == 0 && k_end - at >= height * width) n = width, lines = height;
        w_.convert(to, {kItem, n * kItem}, from + d * w_.tap[0] + h * w_.tap[1] + x * w_.tap[2],
                   {w_.tap[2], w_.tap[1]}, n, lines);
        to += n * lines;
        at += n * lines;
      }
    }
  }

 private:
  const WindowWeights& w_;
  const Windows& windows_;
  const char* data_;
  bool in_place_ = false;
};

}  // namespace tenon::cpu
