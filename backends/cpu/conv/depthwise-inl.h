// Single-threaded products of groups that have one channel each. Included once per instruction set by
// window_kernels_*.cc, with all that they export. Knows vectors and bands; nothing of threads.

#if defined(TENON_CPU_DEPTHWISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_DEPTHWISE_INL
#undef TENON_CPU_DEPTHWISE_INL
#else
#define TENON_CPU_DEPTHWISE_INL
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "backends/cpu/conv/turned_product-inl.h"
#include "backends/cpu/conv/window_product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Up to a vector of neighbouring results of one line.
struct LineVector {
  int64_t place;  ///< In the band.
  int64_t out;    ///< Bytes.
  size_t count;
};

inline std::vector<LineVector> line_vectors(const Windows& windows, const Band& band,
                                            const PositionStrides& out, int64_t first, int64_t last,
                                            int64_t lanes) {
  std::vector<LineVector> vectors;
  Positions at(windows, first);
  for (int64_t j = first; j < last;) {
    const int64_t n = std::min({lanes, at.left_in_line(), last - j});
    vectors.push_back(
        {band.columns()[static_cast<size_t>(j - first)], at.offset(out), static_cast<size_t>(n)});
    at.advance(n);
    j += n;
  }
  return vectors;
}

/// kVecs vectors of results of one channel, whose taps have the given weights: to[v * lanes].
template <size_t kVecs, class D, class T = hn::TFromD<D>>
HWY_INLINE void filter_vectors(D d, const T* band, const LineVector* at, const int64_t* taps,
                               const T* weights, int64_t count, T* to) {
  using V = hn::Vec<D>;
  const T* from[kVecs];
  V total[kVecs];
  for (size_t v = 0; v < kVecs; ++v) from[v] = band + at[v].place;
  for (int64_t start = 0; start < count; start += kGemmBlock) {
    V sum[kVecs];
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) sum[v] = hn::Zero(d);
    for (int64_t t = start; t < std::min(start + kGemmBlock, count); ++t) {
      const V weight = hn::Set(d, weights[t]);
#pragma GCC unroll 8
      for (size_t v = 0; v < kVecs; ++v)
        sum[v] = fused_mul_add(d, weight, hn::LoadU(d, from[v] + taps[t]), sum[v]);
    }
#pragma GCC unroll 8
    for (size_t v = 0; v < kVecs; ++v) total[v] = start == 0 ? sum[v] : hn::Add(total[v], sum[v]);
  }
#pragma GCC unroll 8
  for (size_t v = 0; v < kVecs; ++v) hn::Store(total[v], d, to + v * hn::Lanes(d));
}

/// Where the taps of four neighbouring results begin, and how far the next four's are where those are inside
/// of the input, too: `zeros` is read for those outside.
template <class T>
class SideBySideTaps {
 public:
  static constexpr int64_t kPixels = 4;

  SideBySideTaps(const Windows& windows, const T* zeros)
      : windows_(windows),
        zeros_(zeros),
        from_(static_cast<size_t>(windows.taps() * kPixels)),
        steps_(from_.size()) {}

  /// Four for each tap.
  const T* const* from() const { return from_.data(); }

  /// Of `n` results from `at` on; the last one's replace missing ones. `data`: the first group.
  void find(const Positions& at, int64_t n, const char* data) {
    const WindowAxis &depth = windows_.axes[0], &height = windows_.axes[1], &width = windows_.axes[2];
    const int64_t first = at[2] * width.step, lowest = first + width.taps.lowest();
    const bool whole =
        n == kPixels && lowest >= 0 && lowest + (n - 1) * width.step + width.taps.span() <= width.inputs;
    const bool follows = whole && next_;
    next_ = whole && at.left_in_line() > n;
    if (follows) return advance();
    const char* entry = data + at.batch() * windows_.batch_stride;
    size_t place = 0;
    for (int64_t a = 0; a < depth.taps.count; ++a) {
      const int64_t i0 = at[0] * depth.step + depth.taps.shift(a);
      for (int64_t b = 0; b < height.taps.count; ++b) {
        const int64_t i1 = at[1] * height.step + height.taps.shift(b);
        const bool line = i0 >= 0 && i0 < depth.inputs && i1 >= 0 && i1 < height.inputs;
        const char* row = line ? entry + i0 * depth.stride + i1 * height.stride : nullptr;
        const int64_t step = line ? kPixels * width.step * width.stride : 0;
        for (int64_t c = 0; c < width.taps.count; ++c) {
          for (int64_t p = 0; p < kPixels; ++p, ++place) {
            const int64_t i2 = first + width.taps.shift(c) + std::min(p, n - 1) * width.step;
            const bool inside = line && i2 >= 0 && i2 < width.inputs;
            from_[place] = inside ? reinterpret_cast<const T*>(row + i2 * width.stride) : zeros_;
            steps_[place] = step;
          }
        }
      }
    }
  }

 private:
  void advance() {
    for (size_t i = 0; i < from_.size(); ++i)
      from_[i] = reinterpret_cast<const T*>(reinterpret_cast<const char*>(from_[i]) + steps_[i]);
  }

  const Windows& windows_;
  const T* zeros_;
  std::vector<const T*> from_;
  std::vector<int64_t> steps_;
  bool next_ = false;
};

/// Neighbouring results of one line that share the inputs they read.
constexpr size_t kRunPixels = 7;

/// One line of inputs that a run of results reads: from the first tap of the first result on, `step` elements
/// apart.
template <class T>
struct RunLine {
  const T* from;
  ptrdiff_t step;
};

/// kRunPixels neighbouring results of a vector of groups: each input is loaded once for the kTaps results
/// that read it, and meets each of them in the order of its taps. Of each line the inputs [first, last)
/// exist.
template <size_t kTaps, class D, class T = hn::TFromD<D>>
HWY_INLINE void filter_run(D d, const RunLine<T>* lines, int64_t count, const T* weights, ptrdiff_t padded,
                           size_t first, size_t last, const T* bias, T* to, ptrdiff_t to_step) {
  using V = hn::Vec<D>;
  constexpr size_t kInputs = kRunPixels + kTaps - 1;
  V sum[kRunPixels];
#pragma GCC unroll 8
  for (size_t p = 0; p < kRunPixels; ++p) sum[p] = hn::Zero(d);
  for (int64_t i = 0; i < count; ++i, weights += static_cast<ptrdiff_t>(kTaps) * padded) {
    const T* from = lines[i].from;
    V weight[kTaps];
#pragma GCC unroll 8
    for (size_t t = 0; t < kTaps; ++t) weight[t] = hn::Load(d, weights + static_cast<ptrdiff_t>(t) * padded);
#pragma GCC unroll 16
    for (size_t x = 0; x < kInputs; ++x, from += lines[i].step) {
      // Only the outer inputs of a run may be missing.
      V v;
      if ((x < kTaps - 1 && x < first) || (x >= kRunPixels && x >= last))
        v = hn::Zero(d);
      else
        v = hn::LoadU(d, from);
#pragma GCC unroll 8
      for (size_t t = 0; t < kTaps; ++t) {
        if (x >= t && x - t < kRunPixels) sum[x - t] = fused_mul_add(d, weight[t], v, sum[x - t]);
      }
    }
  }
#pragma GCC unroll 8
  for (size_t p = 0; p < kRunPixels; ++p, to += to_step)
    hn::StoreU(bias ? hn::Add(sum[p], hn::LoadU(d, bias)) : sum[p], d, to);
}

/// Whether neighbouring results read neighbouring inputs, and as many as there are kernels for; at
/// most the outer ones of a run are missing.
template <class T>
bool shares_inputs(const WindowProduct<T>& w) {
  const WindowAxis& width = w.windows.axes[2];
  const auto item = static_cast<int64_t>(sizeof(T));
  return width.step == 1 && width.taps.step == 1 && (width.taps.count == 3 || width.taps.count == 5) &&
         width.stride % item == 0 && w.out_positions.axes[2] % item == 0 &&
         width.taps.first > -width.taps.count && width.outputs + width.taps.first <= width.inputs;
}

/// Results of one line from `at` on, at least kRunPixels, for all groups.
template <size_t kTaps, class T>
void filter_line(const WindowProduct<T>& w, const Positions& at, int64_t count, int64_t groups,
                 const T* weights, const T* zeros, const T* bias, const char* data, char* out,
                 std::vector<RunLine<T>>& lines) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const WindowAxis &depth = w.windows.axes[0], &height = w.windows.axes[1], &width = w.windows.axes[2];
  constexpr auto kRun = static_cast<int64_t>(kRunPixels), kInputs = kRun + static_cast<int64_t>(kTaps) - 1;
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  const char* entry = data + at.batch() * w.windows.batch_stride;
  const int64_t step = width.stride / kItem, out_step = w.out_positions.axes[2];
  for (int64_t j = 0; j < count; j += kRun) {
    // The last run begins earlier and computes some results again.
    const int64_t pixel = std::min(j, count - kRun), column = at[2] + pixel + width.taps.first;
    const int64_t first = std::clamp<int64_t>(-column, 0, kInputs);
    const int64_t last = std::clamp<int64_t>(width.inputs - column, 0, kInputs);
    lines.clear();
    for (int64_t a = 0; a < depth.taps.count; ++a) {
      const int64_t i0 = at[0] * depth.step + depth.taps.shift(a);
      for (int64_t b = 0; b < height.taps.count; ++b) {
        const int64_t i1 = at[1] * height.step + height.taps.shift(b);
        const bool inside = i0 >= 0 && i0 < depth.inputs && i1 >= 0 && i1 < height.inputs;
        const char* line = entry + i0 * depth.stride + i1 * height.stride + column * width.stride;
        lines.push_back(inside ? RunLine<T>{reinterpret_cast<const T*>(line), step} : RunLine<T>{zeros, 0});
      }
    }
    T* to = reinterpret_cast<T*>(out + at.offset(w.out_positions) + pixel * out_step);
    for (int64_t g = 0; g < groups; g += lanes) {
      filter_run<kTaps>(d, lines.data(), static_cast<int64_t>(lines.size()), weights + g, groups,
                        static_cast<size_t>(first), static_cast<size_t>(last), bias ? bias + g : nullptr,
                        to + g, out_step / kItem);
      for (RunLine<T>& line : lines) line.from += line.step == 0 ? 0 : lanes;
    }
  }
}

/// Products of groups that have one channel and one row each and are side by side: vectors of groups, so that
/// nothing is copied first. Taps outside of the input read zeros.
template <class T>
void depthwise_side_by_side(const WindowProduct<T>& w, const ProductPart& part) {
  const hn::ScalableTag<T> d;
  const Windows& windows = w.windows;
  const int64_t taps = windows.taps(), groups = part.row_end - part.row;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t padded = (groups + lanes - 1) / lanes * lanes;
  T* weights = static_cast<T*>(
      gemm_scratch(GemmScratch::PackedA, static_cast<size_t>((taps + 1) * padded) * sizeof(T)));
  const T* zeros = std::fill_n(weights, (taps + 1) * padded, T(0)) - padded;
  std::vector<T> own(static_cast<size_t>(taps));
  for (int64_t g = 0; g < groups; ++g) {
    OrderedWeights<T>(w.weights, windows, (part.row + g) * w.weights_group).load(0, 1, 0, taps, own.data());
    for (int64_t t = 0; t < taps; ++t) weights[t * padded + g] = own[static_cast<size_t>(t)];
  }
  const T* bias = w.bias ? w.bias + part.row : nullptr;
  const char* data = windows.data + part.row * w.windows_group;
  char* out = w.out + part.row * w.out_group;
  constexpr int64_t kPixels = SideBySideTaps<T>::kPixels;
  SideBySideTaps<T> from(windows, zeros);
  std::vector<RunLine<T>> lines;
  Positions at(windows, part.column);
  const bool runs = shares_inputs(w) && groups % lanes == 0;
  for (int64_t j = part.column; j < part.column_end;) {
    const int64_t in_line = std::min(at.left_in_line(), part.column_end - j);
    if (runs && in_line >= static_cast<int64_t>(kRunPixels)) {
      if (windows.axes[2].taps.count == 3)
        filter_line<3>(w, at, in_line, groups, weights, zeros, bias, data, out, lines);
      else
        filter_line<5>(w, at, in_line, groups, weights, zeros, bias, data, out, lines);
      at.advance(in_line);
      j += in_line;
      continue;
    }
    const int64_t n = std::min({kPixels, at.left_in_line(), part.column_end - j});
    from.find(at, n, data);
    T* to[kPixels];
    for (int64_t p = 0; p < kPixels; ++p)
      to[p] = reinterpret_cast<T*>(out + at.offset(w.out_positions) +
                                   std::min(p, n - 1) * w.out_positions.axes[2]);
    int64_t g = 0;
    // Two vectors at a time share what says where the taps are.
    for (; g + 2 * lanes <= groups; g += 2 * lanes) {
      hn::Vec<decltype(d)> sum[kPixels], next[kPixels];
#pragma GCC unroll 4
      for (int64_t p = 0; p < kPixels; ++p) sum[p] = hn::Zero(d), next[p] = hn::Zero(d);
      const T* const* tap = from.from();
      for (int64_t t = 0; t < taps; ++t, tap += kPixels) {
        const T* weight = weights + t * padded + g;
        const auto first = hn::Load(d, weight), second = hn::Load(d, weight + lanes);
#pragma GCC unroll 4
        for (int64_t p = 0; p < kPixels; ++p) {
          sum[p] = fused_mul_add(d, first, hn::LoadU(d, tap[p] + g), sum[p]);
          next[p] = fused_mul_add(d, second, hn::LoadU(d, tap[p] + g + lanes), next[p]);
        }
      }
#pragma GCC unroll 4
      for (int64_t p = 0; p < kPixels; ++p) {
        if (p >= n) break;
        if (bias) {
          sum[p] = hn::Add(sum[p], hn::LoadU(d, bias + g));
          next[p] = hn::Add(next[p], hn::LoadU(d, bias + g + lanes));
        }
        hn::StoreU(sum[p], d, to[p] + g);
        hn::StoreU(next[p], d, to[p] + g + lanes);
      }
    }
    for (; g < groups; g += lanes) {
      const auto here = static_cast<size_t>(std::min(lanes, groups - g));
      hn::Vec<decltype(d)> sum[kPixels];
      const auto filter = [&](auto load) HWY_ATTR {
#pragma GCC unroll 4
        for (int64_t p = 0; p < kPixels; ++p) sum[p] = hn::Zero(d);
        const T* const* tap = from.from();
        for (int64_t t = 0; t < taps; ++t, tap += kPixels) {
          const auto weight = hn::Load(d, weights + t * padded + g);
#pragma GCC unroll 4
          for (int64_t p = 0; p < kPixels; ++p) sum[p] = fused_mul_add(d, weight, load(tap[p] + g), sum[p]);
        }
      };
      if (here == static_cast<size_t>(lanes))
        filter([&](const T* x) HWY_ATTR { return hn::LoadU(d, x); });
      else
        filter([&](const T* x) HWY_ATTR { return load_first(d, x, here); });
      for (int64_t p = 0; p < n; ++p) {
        auto x = sum[p];
        if (bias) x = hn::Add(x, load_first(d, bias + g, here));
        if (here == static_cast<size_t>(lanes))
          hn::StoreU(x, d, to[p] + g);
        else
          store_first(x, d, to[p] + g, here);
      }
    }
    at.advance(n);
    j += n;
  }
}

/// Products of groups that have one channel each, for groups [row, row_end) of the part: along the lines.
template <class T>
void depthwise(const WindowProduct<T>& w, const ProductPart& part) {
  const bool plain = w.out_same_type && w.alpha == T(1) && w.beta == T(0);
  if (plain && w.rows == 1 && w.windows.same_type && w.windows_group == w.windows.item &&
      w.out_group == w.out_item && w.windows.taps() <= kGemmBlock) {
    return depthwise_side_by_side(w, part);
  }
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kVecs = 4;
  Windows windows = w.windows;
  windows.channels = w.groups, windows.channel_stride = w.windows_group;
  const int64_t taps = windows.taps();
  const Band band(windows, part.column, part.column_end, sizeof(T));
  std::vector<LineVector> vectors =
      line_vectors(windows, band, w.out_positions, part.column, part.column_end, static_cast<int64_t>(lanes));
  // The last one is computed again in place of missing ones: one sum alone would wait for each of its taps.
  const size_t all = vectors.size();
  while (vectors.size() % kVecs != 0) vectors.push_back(vectors.back());
  const bool straight = w.out_same_type && w.alpha == T(1) && w.beta == T(0) &&
                        (windows.axes[2].outputs == 1 || w.out_positions.axes[2] == w.out_item);
  std::vector<T> weights(static_cast<size_t>(w.rows * taps));
  std::vector<int64_t> places(lanes);
  for (size_t l = 0; l < lanes; ++l) places[l] = static_cast<int64_t>(l) * w.out_positions.axes[2];
  HWY_ALIGN T results[kVecs * hn::MaxLanes(hn::ScalableTag<T>())];
  for (int64_t group = part.row; group < part.row_end; ++group) {
    const T* in_band = static_cast<const T*>(band.fill(group, group + 1, group != part.row));
    const OrderedWeights<T> own(w.weights, w.windows, group * w.weights_group);
    if (!own.in_place()) own.load(0, w.rows, 0, taps, weights.data());
    for (int64_t row = 0; row < w.rows; ++row) {
      char* out = w.out + group * w.out_group + row * w.out_row;
      const T* bias = w.bias ? w.bias + group * w.rows + row : nullptr;
      const T* numbers = own.in_place() ? own.at(row, 0) : weights.data() + row * taps;
      for (size_t i = 0; i < all; i += kVecs) {
        filter_vectors<kVecs>(d, in_band, &vectors[i], band.taps().data(), numbers, taps, results);
        for (size_t v = 0; v < std::min(kVecs, all - i); ++v) {
          const LineVector& at = vectors[i + v];
          const T* result = results + v * lanes;
          if (!straight) {
            store_tile(w, result, lanes, 1, at.count, out + at.out, places.data(), bias);
            continue;
          }
          auto x = hn::Load(d, result);
          if (bias) x = hn::Add(x, hn::Set(d, *bias));
          T* to = reinterpret_cast<T*>(out + at.out);
          if (at.count == lanes)
            hn::StoreU(x, d, to);
          else
            store_first(x, d, to, at.count);
        }
      }
    }
  }
}

/// The sums of kTaps taps over some columns, for a vector of groups: to[tap * lanes].
template <size_t kTaps, class D, class T = hn::TFromD<D>>
HWY_NOINLINE void sum_taps(D d, const T* band, const int64_t* places, const int64_t* taps, const T* grads,
                           int64_t count, bool first, T* to) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d);
  const auto stride = static_cast<ptrdiff_t>(lanes);
  V sum[kTaps];
  const T* from[kTaps];
#pragma GCC unroll 16
  for (size_t t = 0; t < kTaps; ++t) sum[t] = hn::Zero(d), from[t] = band + taps[t] * stride;
  for (int64_t j = 0; j < count; ++j) {
    const V grad = hn::Load(d, grads + j * stride);
    const ptrdiff_t at = places[j] * stride;
#pragma GCC unroll 16
    for (size_t t = 0; t < kTaps; ++t) sum[t] = fused_mul_add(d, hn::Load(d, from[t] + at), grad, sum[t]);
  }
#pragma GCC unroll 16
  for (size_t t = 0; t < kTaps; ++t)
    hn::Store(first ? sum[t] : hn::Add(hn::Load(d, to + t * lanes), sum[t]), d, to + t * lanes);
}

/// Sums that the registers hold next to the operands.
constexpr size_t kMostTaps = 12;
template <class T>
using SumTaps = void (*)(hn::ScalableTag<T>, const T*, const int64_t*, const int64_t*, const T*, int64_t,
                         bool, T*);
/// By number of taps, less one.
template <class T>
constexpr auto kSumTaps = []<size_t... kIndex>(std::index_sequence<kIndex...>) {
  return std::array<SumTaps<T>, kMostTaps>{&sum_taps<kIndex + 1, hn::ScalableTag<T>>...};
}
(std::make_index_sequence<kMostTaps>());

/// The weights' gradient of groups that have one channel each, for groups [row, row_end) of the part: a
/// vector of groups at a time, side by side.
template <class T>
void depthwise_gradient(const WindowGradient<T>& w, const ProductPart& part) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  Windows windows = w.windows;
  windows.channels = w.groups, windows.channel_stride = w.windows_group;
  const int64_t taps = windows.taps(), columns = windows.columns();
  const int64_t block = std::min(kGemmBlock, columns);
  const auto scratch = [](GemmScratch slot, int64_t n) {
    return static_cast<T*>(gemm_scratch(slot, static_cast<size_t>(n) * sizeof(T)));
  };
  for (int64_t group = part.row; group < part.row_end; group += lanes) {
    const int64_t groups = std::min(lanes, part.row_end - group);
    for (int64_t row = 0; row < w.rows; ++row) {
      T* totals = scratch(GemmScratch::Totals, taps * lanes);
      for (int64_t pc = 0; pc < columns; pc += kGemmBlock) {
        const int64_t count = std::min(kGemmBlock, columns - pc);
        const Band band(windows, pc, pc + count, sizeof(T));
        const T* in_band = static_cast<const T*>(band.fill(group, group + groups));
        T* side_by_side = scratch(GemmScratch::PackedB, band.channel_elements() * lanes);
        pack_b_panel(d, side_by_side, static_cast<size_t>(lanes), in_band, 1, band.channel_elements(),
                     band.channel_elements(), static_cast<size_t>(groups));
        T* ordered = scratch(GemmScratch::FloatA, lanes * block);
        load_gradient(w, windows, w.grad + group * w.grad_group + row * w.grad_row, w.grad_group, groups, pc,
                      count, ordered);
        T* grads = scratch(GemmScratch::PackedA, block * lanes);
        pack_b_panel(d, grads, static_cast<size_t>(lanes), ordered, 1, count, count,
                     static_cast<size_t>(groups));
        // Taps are dealt evenly: few sums would wait for one another.
        const int64_t most = static_cast<int64_t>(kMostTaps), parts = (taps + most - 1) / most;
        for (int64_t part_of_taps = 0, tap = 0; part_of_taps < parts; ++part_of_taps) {
          const int64_t n = taps / parts + (part_of_taps < taps % parts ? 1 : 0);
          kSumTaps<T>[static_cast<size_t>(n - 1)](d, side_by_side, band.columns().data(),
                                                  band.taps().data() + tap, grads, count, pc == 0,
                                                  totals + tap * lanes);
          tap += n;
        }
      }
      for (int64_t tap = 0; tap < taps; ++tap) {
        store_gradient(w, totals + tap * lanes, groups, w.out + group * w.out_group + row * w.out_row,
                       w.out_group, windows, tap);
      }
    }
  }
}

template <class T>
WindowKernels<T> window_table() {
  WindowKernels<T> table{.product = &product<T>, .gradient = &gradient<T>};
  if constexpr (std::is_floating_point_v<T>) {
    table.turned = &turned_product<T>;
    table.depthwise = &depthwise<T>;
    table.depthwise_gradient = &depthwise_gradient<T>;
  }
  return table;
}

}  // namespace

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::cpu {

template <class T>
WindowKernels<T> window_kernels(CpuTarget target) {
  static const WindowKernels<T> kernels[kNumCpuTargets] = TENON_CPU_TARGET_TABLES(window_table<T>());
  return kernels[static_cast<size_t>(target)];
}

}  // namespace tenon::cpu
#endif

#endif
