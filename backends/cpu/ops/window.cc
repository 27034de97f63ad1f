// Sums and copies over the taps of axes; see window_rows.h.
#include <cmath>
#include <cstdlib>

#include "backends/cpu/ops/stub_functions.h"
#include "backends/cpu/ops/whole_axes.h"
#include "backends/cpu/ops/window_rows.h"
#include "backends/cpu/report.h"
#include "backends/cpu/window/window_kernels.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

template <class T>
std::vector<T> as_vector(const std::vector<double>& values) {
  return std::vector<T>(values.begin(), values.end());
}
double at_or_one(const std::vector<double>& values, int64_t i) {
  return values.empty() ? 1.0 : values[at(i)];
}

// Sums

template <class T>
class WindowSum {
 public:
  WindowSum(const Layout& in, const Layout& out, const std::vector<Axis>& axes, const SumKernels<T>& kernels,
            bool accumulate, ConvertFn load, ConvertFn store)
      : in_(in),
        out_(out),
        axes_(axes),
        last_(axes[2], in.inner, in.inner > 1),
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
    const T* x = loaded_row(in_, load_, from, count, buffer);
    if (!divides_inputs_) return x;
    const T outer =
        static_cast<T>(at_or_one(axes_[0].input_divisors, i0) * at_or_one(axes_[1].input_divisors, i1));
    divide(buffer, x, outer, input_divisors_, c.low, count);
    return buffer;
  }
  void divide(T* out, const T* x, T outer, const std::vector<T>& each, int64_t first, int64_t count) {
    if (std::ranges::all_of(each, [&](T by) { return by == each[0]; }))
      divide_all(out, x, each.empty() ? outer : outer * each[0], count * inner_);
    else if (inner_ == 1)
      kernels_.divide_each(out, x, outer, each.data() + first, at(count));
    else
      for (int64_t i = 0; i < count; ++i)
        divide_all(out + i * inner_, x + i * inner_, outer * each[at(first + i)], inner_);
  }
  void divide_all(T* out, const T* x, T by, int64_t n) {
    // A power of two has an exact inverse, and a product is faster than a quotient.
    int exponent = 0;
    const bool is_power = std::frexp(by, &exponent) == T(0.5) && std::abs(exponent) < 64;
    is_power ? kernels_.multiply(out, x, 1 / by, at(n)) : kernels_.divide(out, x, by, at(n));
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
      loaded_row(out_, convert_fn(out_.dtype, dtype_of<T>), to, count, result);
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
    if (!direct) store_row(out_, store_, to, count, result);
  }

  /// Adds to the results [begin, end) of a row their taps along the last axis. Those of listed taps start at
  /// 0 if they are `fresh`.
  void along(T* result, const T* x, const Chunk& c, bool fresh) {
    const auto n = at(c.end - c.begin);
    if (last_.by_taps) {
      for (const Span& s : c.spans)
        kernels_.add_strided(result + s.to, x + s.from, axes_[2].stride, at(s.count));
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
template <class T>
void sum_as(const Layout& in, const Layout& out, const std::vector<Axis>& axes, const SumKernels<T>& kernels,
            bool accumulate) {
  WindowSum<T>(in, out, axes, kernels, accumulate, convert_unless_same(in.dtype, dtype_of<T>),
               convert_unless_same(dtype_of<T>, out.dtype))
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
