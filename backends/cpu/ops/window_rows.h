// How sums, maxima and copies over the taps of axes (tenon/ops/window/axis.h) walk a tensor, which is
// [batch.., axis 0, axis 1, axis 2, inner]: axes are the spatial ones, `inner` is what is closest in memory
// where that is no axis: channels, or the parts of complex numbers. Work is done by rows of the last axis:
// outer axes first combine whole rows, element by element, then the last axis combines within the row. Both
// are loops along memory.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/ops/strided.h"
#include "tenon/core/parallel.h"
#include "tenon/ops/window/axis.h"

namespace tenon::cpu {

inline constexpr size_t kAxes = 3;
/// Elements of a row that are computed at a time.
inline constexpr int64_t kRowTile = 2048;
/// Elements that are worth another thread.
inline constexpr int64_t kElementsPerThread = 1 << 15;

inline size_t at(int64_t i) noexcept { return static_cast<size_t>(i); }

/// One tensor, as described above; strides are in bytes.
struct Layout {
  char* data;
  DType dtype;
  StridedDims batch;
  int64_t axes[kAxes] = {0, 0, 0};
  int64_t inner = 1, inner_stride = 0;

  /// `ones`: so many dimensions of one element after the axes.
  Layout(const Tensor& t, size_t num_axes, bool inner_channels, size_t ones = 0)
      : data(static_cast<char*>(t.data_ptr())), dtype(t.dtype()) {
    const auto item = static_cast<int64_t>(t.itemsize());
    size_t num_batch = t.sizes().size() - ones - num_axes;
    for (size_t i = 0; i < num_axes; ++i) axes[kAxes - num_axes + i] = t.strides()[num_batch + i] * item;
    inner_stride = item;
    if (inner_channels) {
      --num_batch;
      inner = t.sizes()[num_batch];
      inner_stride = t.strides()[num_batch] * item;
    }
    for (size_t i = 0; i < num_batch; ++i) batch.add(t.sizes()[i], t.strides()[i] * item);
  }
  /// As a tensor of real numbers, whose parts are `inner`.
  void split_complex() {
    dtype = real_dtype(dtype);
    inner = 2;
    inner_stride = static_cast<int64_t>(item_size(dtype));
  }
  char* row(int64_t b, int64_t i0, int64_t i1) const {
    return data + batch.offset(b) + i0 * axes[0] + i1 * axes[1];
  }
  /// Strides of a row's elements, as conversions take them: `inner` inside of the last axis, unless it is one
  /// element.
  BlockStrides block() const {
    return inner == 1 ? BlockStrides{axes[2], 0} : BlockStrides{inner_stride, axes[2]};
  }
  /// Whether the elements of a row are contiguous.
  bool dense() const {
    const auto item = static_cast<int64_t>(item_size(dtype));
    return (inner == 1 || inner_stride == item) && axes[2] == inner * item;
  }
};

/// Whether the dimension before the axes is closest in memory.
inline bool channels_inside(const Tensor& t, size_t num_axes) {
  const size_t ndim = t.sizes().size();
  if (ndim == num_axes || num_axes == 0) return false;
  const size_t c = ndim - num_axes - 1;
  return t.sizes()[c] > 1 && t.strides()[c] == 1 && t.strides()[ndim - 1] != 1;
}

/// The outputs in [begin, end) whose tap t is inside of the input, and the first of those inputs.
struct TapRange {
  int64_t begin, end, place;
};
inline TapRange tap_range(const Axis& a, int64_t t, int64_t begin, int64_t end) {
  const int64_t shift = t * a.dilation - a.pad;  // place = o * stride + shift
  if (shift < 0) begin = std::max(begin, (-shift + a.stride - 1) / a.stride);
  // o * stride + shift <= inputs - 1
  const int64_t room = a.inputs - 1 - shift;
  end = room < 0 ? begin : std::min(end, room / a.stride + 1);
  return {begin, std::max(begin, end), begin * a.stride + shift};
}

/// The taps that are inside of the input for some output in [begin, end): of windows that are mostly padding,
/// few.
inline std::pair<int64_t, int64_t> taps_inside(const Axis& a, int64_t begin, int64_t end) {
  const int64_t before = a.pad - (end - 1) * a.stride, room = a.inputs - 1 + a.pad - begin * a.stride;
  const int64_t first = before > 0 ? (before + a.dilation - 1) / a.dilation : 0;
  return {first, room < 0 ? first : std::min(a.kernel, room / a.dilation + 1)};
}

/// `count` outputs that read one input each, from output `to` and input `from` of a chunk on.
struct Span {
  int64_t to, from, count;
};

/// Some outputs of the last axis and the inputs that they read.
struct Chunk {
  int64_t begin, end, low, high;
  std::vector<Span> spans = {};  ///< Of an affine axis, tap by tap.
};

/// The last axis, prepared for all rows of a call.
struct LastAxis {
  const Axis& axis;
  std::vector<Chunk> chunks;
  /// As listed taps, where no loop over a window's taps does.
  std::vector<int64_t> begins, places;
  bool by_taps;  // one pass for each tap of the window

  /// Of an affine axis, `listed` lists the taps nevertheless.
  LastAxis(const Axis& a, int64_t inner, bool listed = false) : axis(a) {
    by_taps = a.taps == Axis::Taps::Affine && !listed;
    const int64_t step = std::max<int64_t>(kRowTile / std::max<int64_t>(inner, 1), 1);
    for (int64_t o = 0; o < a.outputs; o += step) {
      Chunk c{o, std::min(o + step, a.outputs), a.inputs, 0};
      if (by_taps) {
        c.low = std::clamp<int64_t>(c.begin * a.stride - a.pad, 0, a.inputs);
        c.high = std::clamp<int64_t>((c.end - 1) * a.stride - a.pad + (a.kernel - 1) * a.dilation + 1, c.low,
                                     a.inputs);
        const auto [first, end] = taps_inside(a, c.begin, c.end);
        for (int64_t t = first; t < end; ++t) {
          const TapRange r = tap_range(a, t, c.begin, c.end);
          if (r.begin < r.end) c.spans.push_back({r.begin - c.begin, r.place - c.low, r.end - r.begin});
        }
      } else {
        for (int64_t i = c.begin; i < c.end; ++i) {
          a.for_each_tap(i, [&](int64_t place, double) {
            c.low = std::min(c.low, place);
            c.high = std::max(c.high, place + 1);
          });
        }
        c.low = std::min(c.low, c.high);
      }
      chunks.push_back(std::move(c));
    }
    if (by_taps) return;
    begins.reserve(at(a.outputs) + 1);
    begins.push_back(0);
    for (int64_t o = 0; o < a.outputs; ++o) {
      a.for_each_tap(o, [&](int64_t place, double) { places.push_back(place); });
      begins.push_back(static_cast<int64_t>(places.size()));
    }
  }
  int64_t widest() const {
    int64_t n = 0;
    for (const Chunk& c : chunks) n = std::max({n, c.high - c.low, c.end - c.begin});
    return n;
  }
};

inline std::vector<Axis> three_axes(std::span<const Axis> axes) {
  std::vector<Axis> all(kAxes - axes.size(), Axis::identity(1));
  all.insert(all.end(), axes.begin(), axes.end());
  return all;
}

/// Calls f(batch, o0, o1, chunk) for all rows of the output, some of them on each thread; `begin` is called
/// first on each thread, and its result given to f.
template <class Begin, class F>
void for_each_row(const Layout& out, const std::vector<Axis>& axes, int64_t chunks, int64_t cost,
                  Begin&& begin_thread, F&& f) {
  const int64_t n0 = axes[0].outputs, n1 = axes[1].outputs;
  const int64_t rows = out.batch.numel() * n0 * n1 * chunks;
  const int64_t grain = std::max<int64_t>(kElementsPerThread / std::max<int64_t>(cost, 1), 1);
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    auto scratch = begin_thread();
    for (int64_t r = begin; r < end; ++r) {
      int64_t rest = r;
      const int64_t chunk = rest % chunks;
      rest /= chunks;
      const int64_t o1 = rest % n1;
      rest /= n1;
      f(scratch, rest / n0, rest % n0, o1, chunk);
    }
  });
}

/// Buffers of one thread: each holds a row of inputs.
template <class T>
struct Scratch {
  int64_t size;
  std::unique_ptr<T[]> memory;

  Scratch(int64_t row, int64_t count) : size(row), memory(new T[at(row * count)]) {}
  T* operator[](int64_t i) const { return memory.get() + i * size; }
};

/// The conversion between two dtypes, null where they are the same.
inline ConvertFn convert_unless_same(DType from, DType to) {
  return from == to ? nullptr : convert_fn(from, to);
}

/// `count` elements of a row from `from` on, by `convert` (null: none is needed) and without gaps.
template <class T>
const T* loaded_row(const Layout& in, ConvertFn convert, const char* from, int64_t count, T* buffer) {
  if (!convert && in.dense()) return reinterpret_cast<const T*>(from);
  constexpr int64_t kItem = sizeof(T);
  const ConvertFn copy = convert ? convert : convert_fn(in.dtype, in.dtype);
  if (in.inner == 1)
    copy(buffer, {kItem, 0}, from, in.block(), count, 1);
  else
    copy(buffer, {kItem, kItem * in.inner}, from, in.block(), in.inner, count);
  return buffer;
}
/// The other way.
template <class T>
void store_row(const Layout& out, ConvertFn convert, char* to, int64_t count, const T* from) {
  constexpr int64_t kItem = sizeof(T);
  const ConvertFn copy = convert ? convert : convert_fn(out.dtype, out.dtype);
  if (out.inner == 1)
    copy(to, out.block(), from, {kItem, 0}, count, 1);
  else
    copy(to, out.block(), from, {kItem, kItem * out.inner}, out.inner, count);
}

}  // namespace tenon::cpu
