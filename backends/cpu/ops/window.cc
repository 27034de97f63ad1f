// Sums, maxima and copies over the taps of axes (tenon/ops/window/axis.h). A tensor is [batch.., axis 0, axis
// 1, axis 2, inner]: axes are the spatial ones, `inner` is what is closest in memory where that is no axis:
// channels, or the parts of complex numbers. Work is done by rows of the last axis: outer axes first combine
// whole rows, element by element, then the last axis combines within the row. Both are loops along memory.
#include <memory>

#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/ops/stub_functions.h"
#include "backends/cpu/ops/whole_axes.h"
#include "backends/cpu/report.h"
#include "backends/cpu/window/window_kernels.h"
#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/parallel.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

constexpr size_t kAxes = 3;
/// Elements of a row that are computed at a time.
constexpr int64_t kRowTile = 2048;
/// Elements that are worth another thread.
constexpr int64_t kElementsPerThread = 1 << 15;

size_t at(int64_t i) noexcept { return static_cast<size_t>(i); }

/// One tensor, as described above; strides are in bytes.
struct Layout {
  char* data;
  DType dtype;
  StridedDims batch;
  int64_t axes[kAxes] = {0, 0, 0};
  int64_t inner = 1, inner_stride = 0;

  Layout(const Tensor& t, size_t num_axes, bool inner_channels)
      : data(static_cast<char*>(t.data_ptr())), dtype(t.dtype()) {
    const auto item = static_cast<int64_t>(t.itemsize());
    size_t num_batch = t.sizes().size() - num_axes;
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
bool channels_inside(const Tensor& t, size_t num_axes) {
  const size_t ndim = t.sizes().size();
  if (ndim == num_axes || num_axes == 0) return false;
  const size_t c = ndim - num_axes - 1;
  return t.sizes()[c] > 1 && t.strides()[c] == 1 && t.strides()[ndim - 1] != 1;
}

/// The outputs in [begin, end) whose tap t is inside of the input, and the first of those inputs.
struct TapRange {
  int64_t begin, end, place;
};
TapRange tap_range(const Axis& a, int64_t t, int64_t begin, int64_t end) {
  const int64_t shift = t * a.dilation - a.pad;  // place = o * stride + shift
  if (shift < 0) begin = std::max(begin, (-shift + a.stride - 1) / a.stride);
  // o * stride + shift <= inputs - 1
  const int64_t room = a.inputs - 1 - shift;
  end = room < 0 ? begin : std::min(end, room / a.stride + 1);
  return {begin, std::max(begin, end), begin * a.stride + shift};
}

/// The taps that are inside of the input for some output in [begin, end): of windows that are mostly padding,
/// few.
std::pair<int64_t, int64_t> taps_inside(const Axis& a, int64_t begin, int64_t end) {
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

  LastAxis(const Axis& a, int64_t inner) : axis(a) {
    by_taps = a.taps == Axis::Taps::Affine;
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

std::vector<Axis> three_axes(std::span<const Axis> axes) {
  std::vector<Axis> all(kAxes - axes.size(), Axis::identity(1));
  all.insert(all.end(), axes.begin(), axes.end());
  return all;
}

template <class T>
std::vector<T> as_vector(const std::vector<double>& values) {
  return std::vector<T>(values.begin(), values.end());
}
double at_or_one(const std::vector<double>& values, int64_t i) {
  return values.empty() ? 1.0 : values[at(i)];
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

// Sums

/// Buffers of one thread: each holds a row of inputs.
template <class T>
struct Scratch {
  int64_t size;
  std::unique_ptr<T[]> memory;

  Scratch(int64_t row, int64_t count) : size(row), memory(new T[at(row * count)]) {}
  T* operator[](int64_t i) const { return memory.get() + i * size; }
};

template <class T>
class WindowSum {
 public:
  WindowSum(const Layout& in, const Layout& out, const std::vector<Axis>& axes, const SumKernels<T>& kernels,
            bool accumulate, ConvertFn load, ConvertFn store)
      : in_(in),
        out_(out),
        axes_(axes),
        last_(axes[2], in.inner),
        kernels_(kernels),
        accumulate_(accumulate),
        load_(load),
        store_(store),
        weights_(as_vector<T>(axes[2].weights)),
        divisors_(as_vector<T>(axes[2].divisors)),
        input_divisors_(as_vector<T>(axes[2].input_divisors)),
        inner_(in.inner) {
    divides_inputs_ =
        !axes[0].input_divisors.empty() || !axes[1].input_divisors.empty() || !input_divisors_.empty();
    list_evenly();
    stays_ = !load_ && in.dense() && !divides_inputs_;
    one_plane_ = axes[0].taps == Axis::Taps::Affine && axes[0].kernel == 1;
    divides_ = !axes[0].divisors.empty() || !axes[1].divisors.empty() || !divisors_.empty();
  }

  void run() {
    const int64_t widest = last_.widest() * inner_;
    for_each_row(
        out_, axes_, static_cast<int64_t>(last_.chunks.size()), widest,
        [&] { return Scratch<T>(widest, kBuffers); },
        [&](const Scratch<T>& s, int64_t b, int64_t o0, int64_t o1, int64_t c) {
          row(s, b, o0, o1, last_.chunks[at(c)]);
        });
  }

 private:
  // Buffers: sums over axis 1, results; and two sets of (loaded first, loaded next, sums over axis 0), since
  // the first row of a sum must outlive the second.
  static constexpr int64_t kOuterSum = 0, kResult = 1, kSets = 2, kSetSize = 3,
                           kBuffers = kSets + 2 * kSetSize;

  /// The inputs [low, high) of a row, divided where the axes say so.
  const T* load(int64_t b, int64_t i0, int64_t i1, const Chunk& c, T* buffer) {
    const char* from = in_.row(b, i0, i1) + c.low * in_.axes[2];
    const int64_t count = c.high - c.low;
    const T* x = reinterpret_cast<const T*>(from);
    if (load_ || !in_.dense()) {
      constexpr int64_t kItem = sizeof(T);
      const ConvertFn copy = load_ ? load_ : convert_fn(in_.dtype, in_.dtype);
      if (inner_ == 1)
        copy(buffer, {kItem, 0}, from, in_.block(), count, 1);
      else
        copy(buffer, {kItem, kItem * inner_}, from, in_.block(), inner_, count);
      x = buffer;
    }
    if (!divides_inputs_) return x;
    const T outer =
        static_cast<T>(at_or_one(axes_[0].input_divisors, i0) * at_or_one(axes_[1].input_divisors, i1));
    divide(buffer, x, outer, input_divisors_, c.low, count);
    return buffer;
  }
  void divide(T* out, const T* x, T outer, const std::vector<T>& each, int64_t first, int64_t count) {
    if (each.empty())
      kernels_.divide(out, x, outer, at(count * inner_));
    else if (inner_ == 1)
      kernels_.divide_each(out, x, outer, each.data() + first, at(count));
    else
      for (int64_t i = 0; i < count; ++i)
        kernels_.divide(out + i * inner_, x + i * inner_, outer * each[at(first + i)], at(inner_));
  }

  /// The sum of a row over the taps of axis 0, for one place of axis 1; null if there are none.
  const T* plane_row(const Scratch<T>& s, int64_t set, int64_t b, int64_t o0, int64_t i1, const Chunk& c) {
    T *const first = s[kSets + set * kSetSize], *const next = s[kSets + set * kSetSize + 1],
             *const sum = s[kSets + set * kSetSize + 2];
    return combine(axes_[0], o0, sum, at((c.high - c.low) * inner_), stays_,
                   [&](int64_t i0, bool is_first) { return load(b, i0, i1, c, is_first ? first : next); });
  }

  /// The sum over the taps of axis 1 where axis 0 has one and rows are read in place.
  const T* plane(T* sum, int64_t b, int64_t o0, int64_t o1, const Chunk& c, size_t n) {
    int64_t i0 = -1;
    axes_[0].for_each_tap(o0, [&](int64_t place, double) { i0 = place; });
    if (i0 < 0) return nullptr;
    const char* first = in_.row(b, i0, 0) + c.low * in_.axes[2];
    const Axis& axis = axes_[1];
    SmallVector<const T*, 16> all;
    SmallVector<T, 16> weights;
    axis.for_each_tap(o1, [&](int64_t place, double weight) {
      all.push_back(reinterpret_cast<const T*>(first + place * in_.axes[1]));
      if (!axis.weights.empty()) weights.push_back(static_cast<T>(weight));
    });
    if (all.empty()) return nullptr;
    if (all.size() == 1 && weights.empty()) return all[0];
    kernels_.rows(sum, all.data(), weights.empty() ? nullptr : weights.data(), all.size(), n);
    return sum;
  }

  /// The sum of rows(place, whether it is the first) over the taps of an axis; null if there are none. Rows
  /// that `stay` where they are while others are read are added in one pass.
  template <class Rows>
  const T* combine(const Axis& axis, int64_t o, T* sum, size_t n, bool stay, Rows&& rows) {
    const T* result = nullptr;
    if (stay) {
      SmallVector<const T*, 16> all;
      SmallVector<T, 16> weights;
      axis.for_each_tap(o, [&](int64_t place, double weight) {
        all.push_back(rows(place, true));
        if (!axis.weights.empty()) weights.push_back(static_cast<T>(weight));
      });
      if (all.empty()) return nullptr;
      if (all.size() == 1 && weights.empty()) return all[0];
      kernels_.rows(sum, all.data(), weights.empty() ? nullptr : weights.data(), all.size(), n);
      return sum;
    }
    axis.for_each_tap(o, [&](int64_t place, double weight) {
      const T* x = rows(place, result == nullptr);
      if (!x) return;
      if (!axis.weights.empty()) {
        (result ? kernels_.multiply_add : kernels_.multiply)(sum, x, static_cast<T>(weight), n);
        result = sum;
      } else if (!result) {
        result = x;
      } else {
        kernels_.add(sum, result, x, n);
        result = sum;
      }
    });
    return result;
  }

  void row(const Scratch<T>& s, int64_t b, int64_t o0, int64_t o1, const Chunk& c) {
    const size_t width = at((c.high - c.low) * inner_);
    const T* x = width == 0 ? nullptr
                 : stays_ && one_plane_
                     ? plane(s[kOuterSum], b, o0, o1, c, width)
                     : combine(axes_[1], o1, s[kOuterSum], width, false, [&](int64_t i1, bool first) {
                         return plane_row(s, first ? 0 : 1, b, o0, i1, c);
                       });
    if (accumulate_ && !x) return;
    const int64_t count = c.end - c.begin;
    char* to = out_.row(b, o0, o1) + c.begin * out_.axes[2];
    const bool direct = !store_ && out_.dense();
    T* result = direct ? reinterpret_cast<T*>(to) : s[kResult];
    if (accumulate_ && !direct) {
      constexpr int64_t kItem = sizeof(T);
      const ConvertFn copy = convert_fn(out_.dtype, dtype_of<T>);
      if (inner_ == 1)
        copy(result, {kItem, 0}, to, out_.block(), count, 1);
      else
        copy(result, {kItem, kItem * inner_}, to, out_.block(), inner_, count);
    } else if (!accumulate_ && (last_.by_taps || !x)) {
      std::fill_n(result, count * inner_, T(0));
    }
    if (x) {
      along(result, x, c, !accumulate_);
      if (divides_) {
        const T outer = static_cast<T>(at_or_one(axes_[0].divisors, o0) * at_or_one(axes_[1].divisors, o1));
        divide(result, result, outer, divisors_, c.begin, count);
      }
    }
    if (direct) return;
    constexpr int64_t kItem = sizeof(T);
    const ConvertFn copy = store_ ? store_ : convert_fn(out_.dtype, out_.dtype);
    if (inner_ == 1)
      copy(to, out_.block(), result, {kItem, 0}, count, 1);
    else
      copy(to, out_.block(), result, {kItem, kItem * inner_}, inner_, count);
  }

  /// Adds to the results [begin, end) of a row their taps along the last axis. Those of listed taps start at
  /// 0 if they are `fresh`.
  void along(T* result, const T* x, const Chunk& c, bool fresh) {
    const auto n = at(c.end - c.begin);
    if (last_.by_taps) {
      const int64_t stride = axes_[2].stride;
      for (const Span& s : c.spans) {
        T* to = result + s.to * inner_;
        const T* from = x + s.from * inner_;
        if (stride == 1 || inner_ == 1)
          kernels_.add_strided(to, from, stride, at(stride == 1 ? s.count * inner_ : s.count));
        else
          kernels_.add_pixels(to, from, stride * inner_, at(inner_), at(s.count));
      }
    } else if (even_ > 0) {
      kernels_.listed_evenly(result, x, at(c.high - c.low), static_cast<Place>(c.low),
                             even_places_.data() + c.begin, even_weights_.data() + c.begin, at(even_),
                             at(axes_[2].outputs), n, fresh);
    } else {
      const T* weights = weights_.empty() ? nullptr : weights_.data();
      const int64_t *begins = last_.begins.data() + c.begin, *places = last_.places.data();
      if (inner_ == 1) {
        if (fresh) std::fill_n(result, n, T(0));
        kernels_.listed(result, x, c.low, begins, places, weights, n);
      } else {
        kernels_.listed_pixels(result, x, c.low, begins, places, weights, at(inner_), n, fresh);
      }
    }
  }

  /// Where all outputs of the last axis have as many weighted taps, which ascend with them, as those of
  /// resizing do: the taps by their number in the window.
  void list_evenly() {
    const Axis& a = axes_[2];
    if (weights_.empty() || inner_ != 1 || a.outputs == 0 || a.inputs > INT32_MAX) return;
    const int64_t taps = last_.begins[1];
    for (int64_t o = 0; o < a.outputs; ++o) {
      if (last_.begins[at(o) + 1] - last_.begins[at(o)] != taps) return;
      for (int64_t t = 0; o > 0 && t < taps; ++t) {
        if (last_.places[at(o * taps + t)] < last_.places[at((o - 1) * taps + t)]) return;
      }
    }
    even_ = taps;
    for (int64_t t = 0; t < taps; ++t) {
      for (int64_t o = 0; o < a.outputs; ++o) {
        even_places_.push_back(static_cast<Place>(last_.places[at(o * taps + t)]));
        even_weights_.push_back(weights_[at(o * taps + t)]);
      }
    }
  }

  using Place = typename SumKernels<T>::Place;

  const Layout &in_, &out_;
  const std::vector<Axis>& axes_;
  const LastAxis last_;
  int64_t even_ = 0;  // taps of each output of the last axis, if all have as many
  std::vector<Place> even_places_;
  std::vector<T> even_weights_;
  const SumKernels<T>& kernels_;
  const bool accumulate_;
  const ConvertFn load_, store_;  // null: none is needed
  const std::vector<T> weights_, divisors_, input_divisors_;
  const int64_t inner_;
  bool divides_inputs_, divides_;
  bool stays_;      // rows are read in place
  bool one_plane_;  // axis 0 adds nothing up
};

// Maxima

template <class T, class Place>
class WindowMax {
 public:
  WindowMax(const Layout& in, const Layout& values, const Layout& places, const std::vector<Axis>& axes,
            const MaxKernels<T, Place>& kernels, ConvertFn load, ConvertFn store)
      : in_(in),
        values_(values),
        places_(places),
        axes_(axes),
        last_(axes[2], in.inner),
        kernels_(kernels),
        load_(load),
        store_(store),
        inner_(in.inner) {}

  void run() {
    const int64_t widest = last_.widest() * inner_;
    const auto make = [&] { return std::pair(Scratch<T>(widest, 3), Scratch<Place>(widest, 2)); };
    for_each_row(values_, axes_, static_cast<int64_t>(last_.chunks.size()), 2 * widest, make,
                 [&](const auto& s, int64_t b, int64_t o0, int64_t o1, int64_t c) {
                   row(s.first, s.second, b, o0, o1, last_.chunks[at(c)]);
                 });
  }

 private:
  void row(const Scratch<T>& s, const Scratch<Place>& p, int64_t b, int64_t o0, int64_t o1, const Chunk& c) {
    const int64_t count = c.end - c.begin;
    const size_t n = at((c.high - c.low) * inner_);
    T *const x = s[0], *const loaded = s[1];
    Place *const x_places = p[0], *const places = p[1];
    const bool direct = !store_ && values_.dense();
    T* const values =
        direct ? reinterpret_cast<T*>(values_.row(b, o0, o1) + c.begin * values_.axes[2]) : s[2];
    bool first = true;
    const T* one = nullptr;  // the first of two rows that start together
    Place one_number = 0;
    // Rows in the order of their elements: what is equal to an earlier one changes nothing.
    axes_[0].for_each_tap(o0, [&](int64_t i0, double) {
      axes_[1].for_each_tap(o1, [&](int64_t i1, double) {
        const T* next = load(b, i0, i1, c, loaded);
        const auto number = static_cast<Place>((i0 * axes_[1].inputs + i1) * axes_[2].inputs);
        if (first && next != loaded) {
          one = next, one_number = number;
        } else if (one) {
          kernels_.start_with_two(x, x_places, one, one_number, next, number, n);
          one = nullptr;
        } else {
          (first ? kernels_.start : kernels_.update)(x, x_places, next, number, n);
        }
        first = false;
      });
    });
    if (one) kernels_.start(x, x_places, one, one_number, n);
    // The first tap may be there for all outputs: then nothing need be there before it.
    const bool fresh = inner_ > 1 && !first && last_.by_taps && !c.spans.empty() && c.spans[0].to == 0 &&
                       c.spans[0].count == count;
    if (!fresh) {
      std::fill_n(values, count * inner_, lowest());
      std::fill_n(places, count * inner_, std::numeric_limits<Place>::max());
    }
    if (!first) {
      if (inner_ == 1) kernels_.locate(x_places, static_cast<Place>(c.low), n);
      along(values, places, x, x_places, c, fresh);
    }
    if (!direct)
      store(values_, store_ ? store_ : convert_fn(values_.dtype, values_.dtype), b, o0, o1, c, values);
    store(places_, convert_fn(dtype_of<Place>, places_.dtype), b, o0, o1, c, places);
  }

  const T* load(int64_t b, int64_t i0, int64_t i1, const Chunk& c, T* buffer) {
    const char* from = in_.row(b, i0, i1) + c.low * in_.axes[2];
    if (!load_ && in_.dense()) return reinterpret_cast<const T*>(from);
    constexpr int64_t kItem = sizeof(T);
    const ConvertFn copy = load_ ? load_ : convert_fn(in_.dtype, in_.dtype);
    if (inner_ == 1)
      copy(buffer, {kItem, 0}, from, in_.block(), c.high - c.low, 1);
    else
      copy(buffer, {kItem, kItem * inner_}, from, in_.block(), inner_, c.high - c.low);
    return buffer;
  }

  void along(T* values, Place* places, const T* x, const Place* x_places, const Chunk& c, bool fresh) {
    const Axis& a = axes_[2];
    const auto combine = [&](int64_t to, int64_t from, int64_t step, int64_t n) {
      // A place is complete, or lacks the one along this axis.
      const auto add = static_cast<Place>(inner_ == 1 ? 0 : c.low + from);
      kernels_.combine(values + to * inner_, places + to * inner_, x + from * inner_,
                       x_places + from * inner_, add, step, at(n));
    };
    if (last_.by_taps) {
      for (const Span& s : c.spans) {
        if (inner_ == 1) {
          combine(s.to, s.from, a.stride, s.count);
        } else {
          kernels_.combine_pixels(values + s.to * inner_, places + s.to * inner_, x + s.from * inner_,
                                  x_places + s.from * inner_, static_cast<Place>(c.low + s.from), a.stride,
                                  at(inner_), at(s.count), fresh);
          fresh = false;
        }
      }
      return;
    }
    for (int64_t o = c.begin; o < c.end; ++o) {
      for (int64_t i = last_.begins[at(o)]; i < last_.begins[at(o) + 1]; ++i)
        combine(o - c.begin, last_.places[at(i)] - c.low, 1, inner_);
    }
  }

  template <class V>
  void store(const Layout& out, ConvertFn convert, int64_t b, int64_t o0, int64_t o1, const Chunk& c,
             const V* from) {
    constexpr int64_t kItem = sizeof(V);
    char* to = out.row(b, o0, o1) + c.begin * out.axes[2];
    if (inner_ == 1)
      convert(to, out.block(), from, {kItem, 0}, c.end - c.begin, 1);
    else
      convert(to, out.block(), from, {kItem, kItem * inner_}, inner_, c.end - c.begin);
  }

  static constexpr T lowest() {
    return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity()
                                       : std::numeric_limits<T>::lowest();
  }

  const Layout &in_, &values_, &places_;
  const std::vector<Axis>& axes_;
  const LastAxis last_;
  const MaxKernels<T, Place>& kernels_;
  const ConvertFn load_, store_;
  const int64_t inner_;
};

// Copies

/// Elements of a row that come from equally distant ones: output begin + j is input place + j * step.
struct Run {
  int64_t begin, count, place, step;
};

/// The runs of an axis whose outputs have one tap at most, and none elsewhere.
std::vector<Run> runs_of(const Axis& a) {
  std::vector<Run> runs;
  if (a.taps == Axis::Taps::Affine) {
    const TapRange r = tap_range(a, 0, 0, a.outputs);
    if (r.begin < r.end) runs.push_back({r.begin, r.end - r.begin, r.place, a.stride});
    return runs;
  }
  for (int64_t o = 0; o < a.outputs; ++o) {
    a.for_each_tap(o, [&](int64_t place, double) {
      if (!runs.empty() && runs.back().begin + runs.back().count == o) {
        Run& run = runs.back();
        const int64_t step = place - (run.place + (run.count - 1) * run.step);
        if (run.count == 1 && step >= -1 && step <= 1) run.step = step;
        if (step == run.step) {
          ++run.count;
          return;
        }
      }
      runs.push_back({o, 1, place, 1});
    });
  }
  return runs;
}

/// out[o] = in[places[o]], but for negative places: for rows without long runs.
template <class T>
void take_row(char* out, int64_t out_stride, const char* in, int64_t in_stride, const int64_t* places,
              int64_t count) {
  for (int64_t o = 0; o < count; ++o, out += out_stride)
    if (places[o] >= 0) std::memcpy(out, in + places[o] * in_stride, sizeof(T));
}

struct Bytes16 {
  uint64_t low, high;
};
using TakeRow = void (*)(char*, int64_t, const char*, int64_t, const int64_t*, int64_t);
constexpr TakeRow kTakeRow[kNumElementSizes] = {&take_row<uint8_t>, &take_row<uint16_t>, &take_row<uint32_t>,
                                                &take_row<uint64_t>, &take_row<Bytes16>};

/// The tap of each output of an axis, or -1.
std::vector<int64_t> places_of(const Axis& a) {
  std::vector<int64_t> places(at(a.outputs), -1);
  for (int64_t o = 0; o < a.outputs; ++o)
    a.for_each_tap(o, [&](int64_t place, double) { places[at(o)] = place; });
  return places;
}

DType real_or_same(DType t) { return is_complex(t) ? real_dtype(t) : t; }
/// The conversion between two dtypes, null where they are the same.
ConvertFn convert_unless_same(DType from, DType to) { return from == to ? nullptr : convert_fn(from, to); }

template <class T>
void sum_as(const Layout& in, const Layout& out, const std::vector<Axis>& axes, const SumKernels<T>& kernels,
            bool accumulate) {
  WindowSum<T>(in, out, axes, kernels, accumulate, convert_unless_same(in.dtype, dtype_of<T>),
               convert_unless_same(dtype_of<T>, out.dtype))
      .run();
}
template <class T, class Place>
void max_as(const Layout& in, const Layout& values, const Layout& places, const std::vector<Axis>& axes,
            const MaxKernels<T, Place>& kernels) {
  WindowMax<T, Place>(in, values, places, axes, kernels, convert_unless_same(in.dtype, dtype_of<T>),
                      convert_unless_same(dtype_of<T>, values.dtype))
      .run();
}

}  // namespace

void axes_sum(const Tensor& self, std::span<const Axis> axes, bool accumulate, Tensor& out) {
  report_kernel("axes_sum", TENON_KERNEL_NAMES("window"));
  if (out.numel() == 0) return;
  if (!accumulate && sum_whole_axes(self, axes, out)) return;
  const bool channels = !self.is_complex() && channels_inside(out, axes.size());
  Layout in(self, axes.size(), channels), to(out, axes.size(), channels);
  if (self.is_complex()) {
    in.split_complex();
    to.split_complex();
  }
  const std::vector<Axis> all = three_axes(axes);
  if (real_or_same(self.dtype()) == DType::Float64)
    sum_as(in, to, all, window_kernels().sum_f64, accumulate);
  else
    sum_as(in, to, all, window_kernels().sum_f32, accumulate);
}

void axes_max(const Tensor& self, std::span<const Axis> axes, Tensor& values, Tensor& indices) {
  report_kernel("axes_max", TENON_KERNEL_NAMES("window"));
  if (values.numel() == 0) return;
  const bool channels = channels_inside(values, axes.size());
  const Layout in(self, axes.size(), channels), to(values, axes.size(), channels),
      places(indices, axes.size(), channels);
  const std::vector<Axis> all = three_axes(axes);
  const int64_t plane = all[0].inputs * all[1].inputs * all[2].inputs;
  if (!is_floating_point(self.dtype()))
    max_as(in, to, places, all, window_kernels().max_i64);
  else if (self.dtype() == DType::Float64 || plane >= INT32_MAX)
    max_as(in, to, places, all, window_kernels().max_f64);
  else
    max_as(in, to, places, all, window_kernels().max_f32);
}

void axes_copy(const Tensor& self, std::span<const Axis> axes, const Scalar& otherwise, Tensor& out) {
  report_kernel("axes_copy", TENON_KERNEL_NAMES("window"));
  if (out.numel() == 0) return;
  const bool channels = channels_inside(out, axes.size());
  const Layout in(self, axes.size(), channels), to(out, axes.size(), channels);
  const std::vector<Axis> all = three_axes(axes);
  const std::vector<int64_t> places0 = places_of(all[0]), places1 = places_of(all[1]),
                             places2 = places_of(all[2]);
  const std::vector<Run> runs = runs_of(all[2]);
  const int64_t count = all[2].outputs, inner = in.inner, row_stride = to.axes[2];
  const auto item = static_cast<int64_t>(out.itemsize());
  const bool short_runs = inner == 1 && static_cast<int64_t>(runs.size()) > count / 8;
  const TakeRow take = kTakeRow[element_size_index(item)];
  const ConvertFn copy = convert_fn(self.dtype(), self.dtype());
  int64_t covered = 0;
  for (const Run& r : runs) covered += r.count;
  // One element for all that are read from nowhere.
  Tensor number = make_empty({}, out.dtype());
  ops::fill_elements(number, otherwise, "axes_copy");
  const auto* value = static_cast<const char*>(number.data_ptr());
  const auto fill = [&](char* row, int64_t begin, int64_t end) {
    if (begin >= end) return;
    if (inner == 1)
      copy(row + begin * row_stride, to.block(), value, {0, 0}, end - begin, 1);
    else
      copy(row + begin * row_stride, to.block(), value, {0, 0}, inner, end - begin);
  };
  struct Last {
    const char* from = nullptr;
    char* to = nullptr;
  };
  for_each_row(
      to, all, 1, count * inner, [] { return Last(); },
      [&](Last& last, int64_t b, int64_t o0, int64_t o1, int64_t) {
        char* row = to.row(b, o0, o1);
        const int64_t i0 = places0[at(o0)], i1 = places1[at(o1)];
        if (i0 < 0 || i1 < 0) return fill(row, 0, count);
        const char* from = in.row(b, i0, i1);
        if (from == last.from) {  // as the row before, which is in the cache
          if (inner == 1)
            copy(row, to.block(), last.to, to.block(), count, 1);
          else
            copy(row, to.block(), last.to, to.block(), inner, count);
          return;
        }
        last = {from, row};
        int64_t done = 0;
        if (covered < count) {
          for (const Run& r : runs) {
            fill(row, done, r.begin);
            done = r.begin + r.count;
          }
          fill(row, done, count);
        }
        if (short_runs) return take(row, row_stride, from, in.axes[2], places2.data(), count);
        for (const Run& r : runs) {
          char* dst = row + r.begin * row_stride;
          const char* src = from + r.place * in.axes[2];
          if (inner == 1)
            copy(dst, to.block(), src, {in.axes[2] * r.step, 0}, r.count, 1);
          else
            copy(dst, to.block(), src, {in.inner_stride, in.axes[2] * r.step}, inner, r.count);
        }
      });
}

}  // namespace tenon::cpu
