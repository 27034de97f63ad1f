// Maxima over the taps of axes, with their places or without; see window_rows.h.
#include "backends/cpu/ops/stub_functions.h"
#include "backends/cpu/ops/window_rows.h"
#include "backends/cpu/report.h"
#include "backends/cpu/window/window_kernels.h"

namespace tenon::cpu {
namespace {

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
    T *const x = s[0], *const buffer = s[1];
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
        const T* next =
            loaded_row(in_, load_, in_.row(b, i0, i1) + c.low * in_.axes[2], c.high - c.low, buffer);
        const auto number = static_cast<Place>((i0 * axes_[1].inputs + i1) * axes_[2].inputs);
        if (first && next != buffer) {
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
      store_row(values_, store_, values_.row(b, o0, o1) + c.begin * values_.axes[2], count, values);
    store_row(places_, convert_fn(dtype_of<Place>, places_.dtype),
              places_.row(b, o0, o1) + c.begin * places_.axes[2], count, places);
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

/// Maxima alone, of windows that affine axes have. Taps are seen in the order of their elements, so that the
/// result has the bits of the one with places.
template <class T>
class WindowMaxValues {
 public:
  WindowMaxValues(const Layout& in, const Layout& out, const std::vector<Axis>& axes,
                  const MaxValueKernels<T>& kernels, ConvertFn load, ConvertFn store)
      : in_(in),
        out_(out),
        axes_(axes),
        last_(axes[2], in.inner),
        kernels_(kernels),
        load_(load),
        store_(store) {
    for (const Chunk& c : last_.chunks) runs_.push_back(runs_of(c));
  }

  void run() {
    const int64_t widest = last_.widest() * in_.inner;
    const int64_t buffers = (stays() ? 0 : kRows) + (direct() ? 0 : 1);
    for_each_row(
        out_, axes_, static_cast<int64_t>(last_.chunks.size()), widest,
        [&] { return Scratch<T>(widest, buffers); },
        [&](const Scratch<T>& s, int64_t b, int64_t o0, int64_t o1, int64_t c) {
          row(s, b, o0, o1, last_.chunks[at(c)], runs_[at(c)]);
        });
  }

 private:
  /// Rows that are read in one pass.
  static constexpr int64_t kRows = 16;

  /// Outputs in a row, from `begin` of the chunk on, that have `taps` taps inside of the input, the first one
  /// at `place`.
  struct Run {
    int64_t begin, count, place, first, taps;
  };
  std::vector<Run> runs_of(const Chunk& c) const {
    const Axis& a = axes_[2];
    std::vector<Run> runs;
    for (int64_t o = c.begin; o < c.end; ++o) {
      const auto [first, end] = taps_inside(a, o, o + 1);
      if (!runs.empty() && runs.back().first == first && runs.back().taps == end - first)
        ++runs.back().count;
      else
        runs.push_back(
            {o - c.begin, 1, o * a.stride - a.pad + first * a.dilation - c.low, first, end - first});
    }
    return runs;
  }

  bool stays() const { return !load_ && in_.dense(); }
  bool direct() const { return !store_ && out_.dense(); }

  void row(const Scratch<T>& s, int64_t b, int64_t o0, int64_t o1, const Chunk& c,
           const std::vector<Run>& runs) {
    char* to = out_.row(b, o0, o1) + c.begin * out_.axes[2];
    T* const values = direct() ? reinterpret_cast<T*>(to) : s[stays() ? 0 : kRows];
    const T* rows[kRows];
    int64_t count = 0;
    bool fresh = true;
    axes_[0].for_each_tap(o0, [&](int64_t i0, double) {
      axes_[1].for_each_tap(o1, [&](int64_t i1, double) {
        if (count == kRows) {
          along(values, rows, count, runs, fresh);
          count = 0, fresh = false;
        }
        const char* from = in_.row(b, i0, i1) + c.low * in_.axes[2];
        rows[count] = loaded_row(in_, load_, from, c.high - c.low, stays() ? nullptr : s[count]);
        ++count;
      });
    });
    along(values, rows, count, runs, fresh);
    if (!direct()) store_row(out_, store_, to, c.end - c.begin, values);
  }

  void along(T* values, const T* const* rows, int64_t count, const std::vector<Run>& runs, bool fresh) const {
    const Axis& a = axes_[2];
    const int64_t inner = in_.inner;
    for (const Run& r : runs) {
      if (inner == 1 || a.stride == 1) {
        kernels_.windows(values + r.begin * inner, rows, at(count), r.place * inner, r.taps,
                         a.dilation * inner, a.stride, at(r.count * inner), fresh);
        continue;
      }
      for (int64_t i = 0; i < r.count; ++i)
        kernels_.windows(values + (r.begin + i) * inner, rows, at(count), (r.place + i * a.stride) * inner,
                         r.taps, a.dilation * inner, 1, at(inner), fresh);
    }
  }

  const Layout &in_, &out_;
  const std::vector<Axis>& axes_;
  const LastAxis last_;
  std::vector<std::vector<Run>> runs_;  // of each chunk
  const MaxValueKernels<T>& kernels_;
  const ConvertFn load_, store_;  // null: none is needed
};

template <class T>
void max_values_as(const Layout& in, const Layout& out, const std::vector<Axis>& axes,
                   const MaxValueKernels<T>& kernels) {
  WindowMaxValues<T>(in, out, axes, kernels, convert_unless_same(in.dtype, dtype_of<T>),
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

/// Without axes of one element at the end, so that the last one has rows.
std::span<const Axis> without_ones(std::span<const Axis> axes) {
  while (axes.size() > 1 && axes.back().inputs == 1 && axes.back().outputs == 1)
    axes = axes.first(axes.size() - 1);
  return axes;
}

}  // namespace

void axes_max(const Tensor& self, std::span<const Axis> axes, Tensor& values, Tensor& indices) {
  report_kernel("axes_max", TENON_KERNEL_NAMES("window"));
  if (values.numel() == 0) return;
  const bool channels = channels_inside(values, axes.size());
  const std::span<const Axis> longer = channels ? axes : without_ones(axes);
  const size_t ones = axes.size() - longer.size(), num_axes = longer.size();
  const Layout in(self, num_axes, channels, ones), to(values, num_axes, channels, ones),
      places(indices, num_axes, channels, ones);
  const std::vector<Axis> all = three_axes(longer);
  const int64_t plane = all[0].inputs * all[1].inputs * all[2].inputs;
  if (!is_floating_point(self.dtype()))
    max_as(in, to, places, all, window_kernels().max_i64);
  else if (self.dtype() == DType::Float64 || plane >= INT32_MAX)
    max_as(in, to, places, all, window_kernels().max_f64);
  else
    max_as(in, to, places, all, window_kernels().max_f32);
}

void axes_max_values(const Tensor& self, std::span<const Axis> axes, Tensor& out) {
  report_kernel("axes_max_values", TENON_KERNEL_NAMES("window"));
  if (out.numel() == 0) return;
  const bool channels = channels_inside(out, axes.size());
  const std::span<const Axis> longer = channels ? axes : without_ones(axes);
  const size_t ones = axes.size() - longer.size();
  const Layout in(self, longer.size(), channels, ones), to(out, longer.size(), channels, ones);
  const std::vector<Axis> all = three_axes(longer);
  if (!is_floating_point(self.dtype()))
    max_values_as(in, to, all, window_kernels().max_values_i64);
  else if (self.dtype() == DType::Float64)
    max_values_as(in, to, all, window_kernels().max_values_f64);
  else
    max_values_as(in, to, all, window_kernels().max_values_f32);
}

}  // namespace tenon::cpu
