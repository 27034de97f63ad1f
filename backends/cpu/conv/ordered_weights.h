// Weights in the order of the rows of Windows: in place, if they are in that order, or copied block by block.
// Used by the products of this folder.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/conv/window_product.h"
#include "backends/cpu/copy/row_kernels.h"

namespace tenon::cpu {

/// The weights of one group.
template <class T>
class OrderedWeights {
 public:
  OrderedWeights(const WindowWeights& w, const Windows& windows, int64_t group_offset)
      : w_(w), windows_(windows), data_(w.data + group_offset) {
    // Taps and channels that follow each other without gaps: a matrix already.
    int64_t next = w.item;
    in_place_ = w.same_type && w.row % w.item == 0;
    for (size_t a = kWindowAxes; a-- > 0;) {
      if (windows.axes[a].taps.count > 1) in_place_ &= w.tap[a] == next;
      next *= windows.axes[a].taps.count;
    }
    if (windows.channels > 1) in_place_ &= w.channel == next;
  }

  /// Rows side by side, and what a row has equally far apart; how far, in elements. 0 for others.
  int64_t turned_step() const {
    if (!w_.same_type || w_.row != w_.item || windows_.channels == 0) return 0;
    int64_t step = 0, count = 1;
    const auto fits = [&](int64_t n, int64_t stride) {
      if (n == 1) return true;
      if (step == 0) step = stride / count;
      count *= n;
      return stride == step * (count / n);
    };
    bool even = true;
    for (size_t a = kWindowAxes; a-- > 0;) even = even && fits(windows_.axes[a].taps.count, w_.tap[a]);
    even = even && fits(windows_.channels, w_.channel);
    return even && step % w_.item == 0 ? step / w_.item : 0;
  }
  bool in_place() const { return in_place_; }
  const T* at(int64_t row, int64_t k) const { return reinterpret_cast<const T*>(data_ + row * w_.row) + k; }
  ptrdiff_t row_stride() const { return w_.row / w_.item; }

  /// A channel's first tap.
  const char* bytes(int64_t row, int64_t channel) const {
    return data_ + row * w_.row + channel * w_.channel;
  }
  /// Bytes from a channel's first tap to each of them.
  std::vector<int64_t> tap_offsets() const {
    std::vector<int64_t> offsets;
    const auto count = [&](size_t axis) { return windows_.axes[axis].taps.count; };
    for (int64_t d = 0; d < count(0); ++d) {
      for (int64_t h = 0; h < count(1); ++h) {
        for (int64_t x = 0; x < count(2); ++x)
          offsets.push_back(d * w_.tap[0] + h * w_.tap[1] + x * w_.tap[2]);
      }
    }
    return offsets;
  }

  /// Rows [first, last) and rows [k, k_end) of Windows, as a contiguous matrix.
  void load(int64_t first, int64_t last, int64_t k, int64_t k_end, T* to) const {
    if (w_.same_type && windows_.taps() == 1 && w_.row == w_.item) return turn(first, last, k, k_end, to);
    if (!w_.same_type) return convert(first, last - first, k, k_end, to);
    // Where rows are closer together than channels are, some rows at a time take the taps of some channels:
    // few enough that the lines which are read and written stay in the cache.
    const std::vector<int64_t> taps = tap_offsets();
    const auto count = static_cast<int64_t>(taps.size());
    const bool close = w_.row < w_.channel;
    const int64_t step = close ? 24 : 1, channels = close ? 8 : k_end;
    for (int64_t at = k; at < k_end;) {
      const int64_t end = std::min((at / count + channels) * count, k_end);
      for (int64_t row = first; row < last; row += step)
        copy(row, std::min(step, last - row), at, end, taps, to + (row - first) * (k_end - k) + (at - k),
             k_end - k);
      at = end;
    }
  }

 private:
  /// One tap, rows side by side.
  void turn(int64_t first, int64_t last, int64_t k, int64_t k_end, T* to) const {
    row_kernels().transpose[element_size_index(sizeof(T))](
        to, (k_end - k) * w_.item, data_ + first * w_.row + k * w_.channel, w_.channel,
        static_cast<size_t>(k_end - k), static_cast<size_t>(last - first));
  }

  /// To rows `stride` apart.
  void copy(int64_t row, int64_t rows, int64_t k, int64_t k_end, const std::vector<int64_t>& taps, T* to,
            int64_t stride) const {
    const auto per_channel = static_cast<int64_t>(taps.size());
    bool side_by_side = true;
    for (int64_t t = 0; t < per_channel; ++t) side_by_side &= taps[static_cast<size_t>(t)] == t * w_.item;
    for (int64_t at = k; at < k_end;) {
      const int64_t channel = at / per_channel, tap = at % per_channel;
      const int64_t n = std::min(per_channel - tap, k_end - at);
      const char* from = data_ + row * w_.row + channel * w_.channel;
      T* out = to + (at - k);
      for (int64_t i = 0; i < rows; ++i, from += w_.row, out += stride) {
        if (side_by_side) {
          copy_few(out, reinterpret_cast<const T*>(from) + tap, n);
        } else if (n == 1) {
          *out = *reinterpret_cast<const T*>(from + taps[static_cast<size_t>(tap)]);
        } else if (n == 2) {
          const auto first = static_cast<size_t>(tap);
          const T pair[] = {*reinterpret_cast<const T*>(from + taps[first]),
                            *reinterpret_cast<const T*>(from + taps[first + 1])};
          std::memcpy(out, pair, sizeof(pair));
        } else {
          for (int64_t t = 0; t < n; ++t)
            out[t] = *reinterpret_cast<const T*>(from + taps[static_cast<size_t>(tap + t)]);
        }
      }
      at += n;
    }
  }

  /// Taps are few: two copies of a fixed size that overlap cost less than a call.
  static void copy_few(T* to, const T* from, int64_t n) {
    constexpr int64_t kStep = 32 / sizeof(T);
    if (n < kStep) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i];
      return;
    }
    for (int64_t i = 0; i < n - kStep; i += kStep) std::memcpy(to + i, from + i, 32);
    std::memcpy(to + n - kStep, from + n - kStep, 32);
  }

  void convert(int64_t first, int64_t rows, int64_t k, int64_t k_end, T* to) const {
    const int64_t taps = windows_.taps();
    const int64_t height = windows_.axes[1].taps.count, width = windows_.axes[2].taps.count;
    constexpr int64_t kItem = sizeof(T);
    for (int64_t at = k; at < k_end;) {
      const int64_t channel = at / taps, tap = at % taps;
      const int64_t d = tap / (height * width), h = tap / width % height, x = tap % width;
      // A whole plane of taps at a time, or what is left of a line of it.
      int64_t n = std::min(width - x, k_end - at), lines = 1;
      if (x == 0 && h == 0 && k_end - at >= height * width) n = width, lines = height;
      const char* from = data_ + channel * w_.channel + d * w_.tap[0] + h * w_.tap[1] + x * w_.tap[2];
      for (int64_t i = 0; i < rows; ++i) {
        w_.convert(to + i * (k_end - k) + (at - k), {kItem, n * kItem}, from + (first + i) * w_.row,
                   {w_.tap[2], w_.tap[1]}, n, lines);
      }
      at += n * lines;
    }
  }

  const WindowWeights& w_;
  const Windows& windows_;
  const char* data_;
  bool in_place_ = false;
};

}  // namespace tenon::cpu
