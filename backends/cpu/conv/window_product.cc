#include "backends/cpu/conv/window_product.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "backends/cpu/conv/ordered_weights.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// Multiplications that another thread must bring, as for a matrix product.
constexpr int64_t kParallelWork = int64_t{1} << 20;
/// A multiple of the columns of every instruction set's tiles.
constexpr int64_t kColumnStep = 32;

constexpr int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

struct Task {
  size_t product;
  ProductPart part;
};

/// Columns of a part: its band fills half of the second cache, its sums at most as much again.
template <class T>
int64_t part_columns(const WindowProduct<T>& w, int64_t rows, int64_t threads) {
  constexpr int64_t kMost = 4096 / sizeof(T), kBand = (int64_t{1} << 19) / sizeof(T), kSums = 2 * kBand;
  const int64_t channels = std::clamp<int64_t>(w.windows.channels, 1, 256 / w.windows.taps() + 2);
  const auto down = [](int64_t n) { return std::max(kColumnStep, n / kColumnStep * kColumnStep); };
  const int64_t most = std::min({kMost, down(kBand / channels), down(kSums / rows)});
  return std::min(most, round_up((w.windows.columns() + threads - 1) / threads, kColumnStep));
}

/// Whether the products run along lines, one channel at a time, because a tile would have too few rows; of
/// integers, which are for exact results, they all run in tiles.
template <template <class> class Work, class T>
bool is_depthwise(const Work<T>& w) {
  return std::is_floating_point_v<T> && w.groups > 1 && w.windows.channels == 1 && w.rows <= 4;
}

/// Whether vectors run along rows, which must fill them then: columns are read from the band in place
/// and results are turned on the way out.
template <class T>
bool is_turned(const WindowProduct<T>& w) {
  constexpr int64_t kVector = 64 / sizeof(T), kFewest = 4;
  return std::is_floating_point_v<T> && w.windows.channels > 0 && !is_depthwise(w) &&
         w.windows.axes[2].outputs >= kFewest && round_up(w.rows, kVector) * 8 <= w.rows * 9 &&
         (w.windows.taps() > 1 || !OrderedWeights<T>(w.weights, w.windows, 0).in_place());
}

/// Whether the windows are a matrix of a few rows, once each is written down: the product of few rows reads
/// the weights once, in place. A tile would be mostly empty.
template <class T>
bool is_of_few_columns(const WindowProduct<T>& w) {
  constexpr int64_t kMostColumns = 4, kMostElements = int64_t{1} << 15;
  const int64_t columns = w.windows.columns();
  return std::is_floating_point_v<T> && columns > 0 && columns <= kMostColumns && w.windows.channels > 0 &&
         w.windows.same_type && !is_depthwise(w) && columns * w.windows.rows() <= kMostElements &&
         w.out_same_type && w.out_row % w.out_item == 0 && w.out_positions.axes[2] % w.out_item == 0 &&
         even_columns(w.windows, w.out_positions) >= columns && w.alpha == T(1) && w.beta == T(0) &&
         (OrderedWeights<T>(w.weights, w.windows, 0).in_place() ||
          OrderedWeights<T>(w.weights, w.windows, 0).turned_step() > 0);
}

/// Inputs along the last axis, that a window reads: taps from `tap` on.
struct TapsInside {
  int64_t tap, count;
  int64_t from, step;  ///< Bytes, within a channel.
};
/// What a column reads of a channel, without the zeros around it.
std::vector<TapsInside> taps_inside(const Windows& w, int64_t column) {
  std::vector<TapsInside> out;
  const Positions at(w, column);
  const auto input = [&](size_t axis, int64_t tap) {
    return at[axis] * w.axes[axis].step + w.axes[axis].taps.shift(tap);
  };
  const auto is_inside = [&](size_t axis, int64_t tap) {
    return 0 <= input(axis, tap) && input(axis, tap) < w.axes[axis].inputs;
  };
  const int64_t width = w.axes[2].taps.count;
  int64_t first = 0, last = width;
  while (first < last && !is_inside(2, first)) ++first;
  while (last > first && !is_inside(2, last - 1)) --last;
  if (first == last) return out;
  for (int64_t d = 0; d < w.axes[0].taps.count; ++d) {
    for (int64_t h = 0; h < w.axes[1].taps.count; ++h) {
      if (!is_inside(0, d) || !is_inside(1, h)) continue;
      out.push_back({(d * w.axes[1].taps.count + h) * width + first, last - first,
                     at.batch() * w.batch_stride + input(0, d) * w.axes[0].stride +
                         input(1, h) * w.axes[1].stride + input(2, first) * w.axes[2].stride,
                     w.axes[2].taps.step * w.axes[2].stride});
    }
  }
  return out;
}

template <class T>
void copy_strided(T* to, int64_t to_step, const char* from, int64_t from_bytes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = *reinterpret_cast<const T*>(from + i * from_bytes);
}

template <class T>
void few_columns(const WindowProduct<T>& w) {
  const int64_t k = w.windows.rows(), columns = w.windows.columns(), taps = w.windows.taps();
  const auto size = static_cast<size_t>(columns * k);
  T* const rows = static_cast<T*>(gemm_scratch(GemmScratch::Band, size * sizeof(T)));
  T* const sums =
      static_cast<T*>(gemm_scratch(GemmScratch::FloatC, static_cast<size_t>(columns * w.rows) * sizeof(T)));
  for (int64_t group = 0; group < w.groups; ++group) {
    std::fill_n(rows, size, T(0));
    for (int64_t j = 0; j < columns; ++j) {
      const char* channel = w.windows.data + group * w.windows_group;
      for (const TapsInside& run : taps_inside(w.windows, j)) {
        for (int64_t i = 0; i < run.count; ++i)
          copy_strided(rows + j * k + run.tap + i, taps, channel + run.from + i * run.step,
                       w.windows.channel_stride, w.windows.channels);
      }
    }
    const OrderedWeights<T> weights(w.weights, w.windows, group * w.weights_group);
    const int64_t turned = weights.in_place() ? 0 : weights.turned_step();
    gemm(GemmArgs<T>{.m = columns,
                     .n = w.rows,
                     .k = k,
                     .a = rows,
                     .a_row = k,
                     .a_col = 1,
                     .b = weights.at(0, 0),
                     .b_row = turned > 0 ? turned : 1,
                     .b_col = turned > 0 ? 1 : weights.row_stride(),
                     .c = sums,
                     .c_row = w.rows,
                     .c_col = 1});
    T* out = reinterpret_cast<T*>(w.out + group * w.out_group);
    const int64_t row = w.out_row / w.out_item, step = w.out_positions.axes[2] / w.out_item;
    const T* const bias = w.bias ? w.bias + group * w.rows : nullptr;
    for (int64_t i = 0; i < w.rows; ++i, out += row) {
      for (int64_t j = 0; j < columns; ++j) {
        const T sum = sums[j * w.rows + i];
        out[j * step] = bias ? sum + bias[i] : sum;
      }
    }
  }
}

/// Parts of some columns and groups each.
template <class T>
void cut_depthwise(size_t index, const WindowProduct<T>& w, int64_t threads, std::vector<Task>& tasks) {
  constexpr int64_t kMostColumns = 4096;
  const int64_t columns = w.windows.columns(), line = w.windows.axes[2].outputs;
  const int64_t length = line >= kMostColumns ? line : columns / line * line;
  const int64_t step = line >= kMostColumns ? kMostColumns : kMostColumns / line * line;
  // Groups that are side by side fill vectors.
  const int64_t least = w.windows_group == w.windows.item ? 16 : 1;
  const int64_t groups = round_up((w.groups + threads * 4 - 1) / (threads * 4), least);
  for (int64_t start = 0; start < columns; start += length) {
    for (int64_t c = 0; c < length; c += step) {
      for (int64_t g = 0; g < w.groups; g += threads == 1 ? w.groups : groups) {
        tasks.push_back({index,
                         {0, g, std::min(g + (threads == 1 ? w.groups : groups), w.groups), start + c,
                          start + std::min(c + step, length)}});
      }
    }
  }
}

template <class T>
void cut(size_t index, const WindowProduct<T>& w, int64_t threads, std::vector<Task>& tasks) {
  constexpr int64_t kMostRows = 8192;
  const int64_t row_step = is_turned(w) ? kColumnStep : 24;
  int64_t part_rows = std::min(w.rows, kMostRows);
  const int64_t columns = w.windows.columns(), most = part_columns(w, part_rows, threads);
  // A part does not share lines with another if lines are long: a band has whole lines.
  const int64_t line = w.windows.axes[2].outputs;
  const int64_t length = line >= most ? line : columns;
  const int64_t pieces = (length + most - 1) / most;
  const int64_t unit = is_turned(w) && line < most ? line : kColumnStep;
  const int64_t step = round_up((length + pieces - 1) / pieces, unit);
  const int64_t parts = w.groups * (columns / length) * pieces;
  if (parts < threads)
    part_rows = std::min(part_rows, round_up((w.rows * parts + threads - 1) / threads, row_step));
  for (int64_t group = 0; group < w.groups; ++group) {
    for (int64_t row = 0; row < w.rows; row += part_rows) {
      for (int64_t start = 0; start < columns; start += length) {
        for (int64_t c = 0; c < length; c += step) {
          tasks.push_back({index,
                           {group, row, std::min(row + part_rows, w.rows), start + c,
                            start + std::min(c + step, length)}});
        }
      }
    }
  }
}

/// Puts the weights in order once for all parts where they are few enough to be kept; others are put in order
/// block by block. Returns how many bytes were copied.
template <class T>
size_t order_weights(std::span<WindowProduct<T>> products) {
  constexpr int64_t kMost = (int64_t{3} << 20) / static_cast<int64_t>(sizeof(T));
  const auto elements = [](const WindowProduct<T>& w) {
    const bool needed = w.windows.channels > 0 && !is_depthwise(w) && !is_turned(w) &&
                        !is_of_few_columns(w) && !OrderedWeights<T>(w.weights, w.windows, 0).in_place();
    return needed ? w.groups * w.rows * w.windows.rows() : 0;
  };
  int64_t total = 0;
  for (const WindowProduct<T>& w : products) total += elements(w);
  if (total == 0 || total > kMost) return 0;
  T* to = static_cast<T*>(gemm_scratch(GemmScratch::Weights, static_cast<size_t>(total) * sizeof(T)));
  for (WindowProduct<T>& w : products) {
    if (elements(w) == 0) continue;
    w.ordered = to;
    for (int64_t g = 0; g < w.groups; ++g, to += w.rows * w.windows.rows())
      OrderedWeights<T>(w.weights, w.windows, g * w.weights_group).load(0, w.rows, 0, w.windows.rows(), to);
  }
  return static_cast<size_t>(total) * sizeof(T);
}

template <class T>
WindowKernels<T> kernels() {
  static const WindowKernels<T> k = window_kernels<T>(cpu_target());
  return k;
}

}  // namespace

template <class T>
size_t window_products(std::span<WindowProduct<T>> products) {
  const size_t copied = order_weights(products);
  int64_t work = 0;
  for (const WindowProduct<T>& w : products)
    work += w.groups * w.rows * w.windows.columns() * std::max<int64_t>(w.windows.rows(), 1);
  const int64_t threads =
      in_parallel_region() ? 1 : std::clamp<int64_t>(work / kParallelWork, 1, num_threads());
  std::vector<Task> tasks;
  for (size_t i = 0; i < products.size(); ++i) {
    if (is_of_few_columns(products[i]))
      few_columns(products[i]);
    else if (is_depthwise(products[i]))
      cut_depthwise(i, products[i], threads, tasks);
    else
      cut(i, products[i], threads, tasks);
  }
  const auto count = static_cast<int64_t>(tasks.size());
  parallel_for(0, count, threads == 1 ? count : std::max<int64_t>(1, count / (threads * 4)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   if (i > begin) check_stop();
                   const Task& task = tasks[static_cast<size_t>(i)];
                   const WindowProduct<T>& w = products[task.product];
                   const WindowKernels<T> k = kernels<T>();
                   (is_depthwise(w) ? k.depthwise : is_turned(w) ? k.turned : k.product)(w, task.part);
                 }
               });
  return copied;
}

template <class T>
void window_gradient(const WindowGradient<T>& w) {
  const int64_t rows = w.windows.rows(), k = w.windows.columns();
  const int64_t work = w.groups * w.rows * rows * k;
  const int64_t threads =
      in_parallel_region() ? 1 : std::clamp<int64_t>(work / kParallelWork, 1, num_threads());
  if (is_depthwise(w)) {
    // Groups side by side in a vector; 16 of them fill every instruction set's.
    constexpr int64_t kStep = 16;
    return parallel_for(
        0, (w.groups + kStep - 1) / kStep,
        threads == 1 ? w.groups : std::max<int64_t>(1, w.groups / kStep / (threads * 4)),
        [&](int64_t begin, int64_t end) {
          kernels<T>().depthwise_gradient(w, {0, begin * kStep, std::min(end * kStep, w.groups), 0, rows});
        });
  }
  // Threads divide the windows' rows, and each row is packed once; few rows leave the gradient's.
  const int64_t row_parts = std::max<int64_t>(1, std::min((threads + w.groups - 1) / w.groups, rows / 24));
  const int64_t wanted = std::max<int64_t>(1, threads / (row_parts * w.groups));
  // Sums of all the gradient's rows side by side stay within the cache.
  const int64_t widest = std::min<int64_t>(2048, round_up((w.rows + wanted - 1) / wanted, kColumnStep));
  const int64_t row_step = round_up((rows + row_parts - 1) / row_parts, 6);
  std::vector<ProductPart> parts;
  for (int64_t g = 0; g < w.groups; ++g) {
    for (int64_t i = 0; i < w.rows; i += widest) {
      for (int64_t r = 0; r < rows; r += row_step)
        parts.push_back({g, i, std::min(i + widest, w.rows), r, std::min(r + row_step, rows)});
    }
  }
  const auto count = static_cast<int64_t>(parts.size());
  parallel_for(0, count, threads == 1 ? count : std::max<int64_t>(1, count / (threads * 4)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   if (i > begin) check_stop();
                   kernels<T>().gradient(w, parts[static_cast<size_t>(i)]);
                 }
               });
}

template size_t window_products(std::span<WindowProduct<float>>);
template size_t window_products(std::span<WindowProduct<double>>);
template size_t window_products(std::span<WindowProduct<int32_t>>);
template size_t window_products(std::span<WindowProduct<int64_t>>);
template void window_gradient(const WindowGradient<float>&);
template void window_gradient(const WindowGradient<double>&);
template void window_gradient(const WindowGradient<int32_t>&);
template void window_gradient(const WindowGradient<int64_t>&);

}  // namespace tenon::cpu
