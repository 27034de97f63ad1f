// Single-threaded products of weights and windows. Included once per instruction set by window_kernels_*.cc.
// Knows caches, panels and bands; nothing of threads.

#if defined(TENON_CPU_WINDOW_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_WINDOW_PRODUCT_INL
#undef TENON_CPU_WINDOW_PRODUCT_INL
#else
#define TENON_CPU_WINDOW_PRODUCT_INL
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/cpu/conv/band.h"
#include "backends/cpu/conv/ordered_weights.h"
#include "backends/cpu/conv/window_product.h"
#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/gemm/gemm_pack-inl.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "backends/cpu/gemm/gemm_tile_table-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows of weights that are multiplied while a panel of windows passes by.
constexpr int64_t kBlockRows = 120;

/// rows x (vecs vectors) of sums, as gemm's tiles have them.
template <class T>
void multiply_tile(size_t rows, size_t vecs, int64_t k, const TileIn<T>& in, const TileOut<T>& out,
                   size_t columns) {
  const hn::ScalableTag<T> d;
  if constexpr (std::is_floating_point_v<T>) {
    const bool partial = columns != vecs * hn::Lanes(d);
    const size_t at = tile_place(rows, vecs);
    (partial ? partial_tiles(T()) : full_tiles(T()))[at](d, k, in, out, columns);
  } else {
    // The order is nothing to integers, which wrap.
    using U = std::make_unsigned_t<T>;
    for (size_t i = 0; i < rows; ++i) {
      U sum[kTileVecs * hn::MaxLanes(hn::ScalableTag<T>())] = {};
      const T* b = in.b;
      const T* a = in.a + static_cast<ptrdiff_t>(i) * in.a_row;
      for (int64_t p = 0; p < k; ++p, b += in.b_row, a += in.a_col) {
        for (size_t j = 0; j < columns; ++j) sum[j] += static_cast<U>(*a) * static_cast<U>(b[j]);
      }
      T* c = out.c + static_cast<ptrdiff_t>(i) * out.c_row;
      const T* before = out.resume ? out.resume + static_cast<ptrdiff_t>(i) * out.resume_row : nullptr;
      for (size_t j = 0; j < columns; ++j)
        c[j] = static_cast<T>(sum[j] + (before ? static_cast<U>(before[j]) : U(0)));
    }
  }
}

/// a + b; integers wrap.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  } else {
    return a + b;
  }
}

/// Where the elements of some neighbouring rows of Windows lie, from the place of a column in the band.
class RowOffsets {
 public:
  RowOffsets(const Band& band, int64_t taps, int64_t first, int64_t count) {
    int64_t at = 0, tap = first % taps;
    offsets_.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      offsets_.push_back(at + band.taps()[static_cast<size_t>(tap)]);
      if (++tap == taps) tap = 0, at += band.channel_elements();
    }
  }
  const int64_t* data() const { return offsets_.data(); }

 private:
  std::vector<int64_t> offsets_;
};

/// One vector of columns for `count` rows: to[i * width + lane]. `places` of the columns that exist.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void pack_vector(D d, T* to, size_t width, const T* band, const int64_t* places, size_t columns,
                            const int64_t* rows, int64_t count) {
  const size_t lanes = hn::Lanes(d);
  // Columns of one line lie side by side; a vector holds pieces of some lines.
  size_t starts[hn::MaxLanes(D())];
  const T* pieces[hn::MaxLanes(D())];
  starts[0] = 0;
  pieces[0] = band + places[0];
  size_t n = 1;
  for (size_t l = 1; l < std::min(lanes, columns); ++l) {
    if (places[l] != places[l - 1] + 1) {
      starts[n] = l;
      pieces[n++] = band + places[l] - static_cast<ptrdiff_t>(l);
    }
  }
  const T* first = pieces[0];
  if (n == 1) {
    for (int64_t i = 0; i < count; ++i, to += width) hn::StoreU(hn::LoadU(d, first + rows[i]), d, to);
  } else if (n == 2) {
    const auto mask = hn::FirstN(d, starts[1]);
    const T* second = pieces[1];
    for (int64_t i = 0; i < count; ++i, to += width) {
      hn::StoreU(hn::IfThenElse(mask, hn::LoadU(d, first + rows[i]), hn::LoadU(d, second + rows[i])), d, to);
    }
  } else {
    for (int64_t i = 0; i < count; ++i, to += width) {
      auto v = hn::LoadU(d, first + rows[i]);
      for (size_t p = 1; p < n; ++p)
        v = hn::IfThenElse(hn::FirstN(d, starts[p]), v, hn::LoadU(d, pieces[p] + rows[i]));
      hn::StoreU(v, d, to);
    }
  }
}

/// A tile's results to where they belong: alpha * t + beta * before + bias, converted.
template <class T>
HWY_NOINLINE void store_tile(const WindowProduct<T>& w, const T* tile, size_t width, size_t rows,
                             size_t columns, char* out, const int64_t* places, const T* bias) {
  constexpr int64_t kItem = sizeof(T);
  const bool plain = w.alpha == T(1) && w.beta == T(0);
  for (size_t i = 0; i < rows; ++i, tile += width, out += w.out_row) {
    T line[kTileVecs * hn::MaxLanes(hn::ScalableTag<T>())];
    for (size_t j = 0; j < columns; ++j) {
      T x = tile[j];
      if (!plain) {
        x = static_cast<T>(w.alpha * x);
        if (w.beta != T(0)) {
          T before;
          w.load(&before, {kItem, 0}, out + places[j], {w.out_item, 0}, 1, 1);
          x = static_cast<T>(x + static_cast<T>(w.beta * before));
        }
      }
      if (bias) x = plus(x, bias[i]);
      line[j] = x;
    }
    if (w.out_same_type) {
      for (size_t j = 0; j < columns; ++j) *reinterpret_cast<T*>(out + places[j]) = line[j];
    } else {
      for (size_t j = 0; j < columns;) {
        size_t end = j + 1;
        while (end < columns && places[end] - places[end - 1] == places[j + 1] - places[j]) ++end;
        const int64_t step = end > j + 1 ? places[j + 1] - places[j] : 0;
        w.store(out + places[j], {step, 0}, line + j, {kItem, 0}, static_cast<int64_t>(end - j), 1);
        j = end;
      }
    }
  }
}

template <class D, class T = hn::TFromD<D>>
HWY_INLINE void add_bias(D d, T* c, ptrdiff_t row, size_t rows, size_t columns, const T* bias) {
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < rows; ++i, c += row) {
    const auto b = hn::Set(d, bias[i]);
    size_t j = 0;
    for (; j + lanes <= columns; j += lanes) hn::StoreU(hn::Add(hn::LoadU(d, c + j), b), d, c + j);
    for (; j < columns; ++j) c[j] = plus(c[j], bias[i]);
  }
}

/// Weights as a tile reads them.
template <class T>
struct WeightBlock {
  const T* data;
  ptrdiff_t row;
};

// A result of no products: the bias, or what beta leaves.
template <class T>
void product_of_nothing(const WindowProduct<T>& w, const ProductPart& part) {
  const T zero = T(0);
  Positions at(w.windows, part.column);
  for (int64_t j = part.column; j < part.column_end; ++j) {
    for (int64_t i = part.row; i < part.row_end; ++i) {
      char* out = w.out + part.group * w.out_group + i * w.out_row + at.offset(w.out_positions);
      const int64_t here = 0;
      store_tile(w, &zero, 1, 1, 1, out, &here, w.bias ? w.bias + part.group * w.rows + i : nullptr);
    }
    at.advance(1);
  }
}

/// A part of a product: its band, its panels of columns and where they go.
template <class T>
class PartialProduct {
 public:
  PartialProduct(const WindowProduct<T>& w, const ProductPart& part)
      : w_(w),
        part_(part),
        windows_(of_group(w.windows, part.group * w.windows_group)),
        band_(windows_, part.column, part.column_end, sizeof(T)),
        weights_(w.weights, windows_, part.group * w.weights_group),
        k_(windows_.rows()),
        columns_(part.column_end - part.column),
        rows_(part.row_end - part.row),
        panels_((columns_ + kWidth - 1) / kWidth),
        out_(w.out + part.group * w.out_group + part.row * w.out_row),
        bias_(w.bias ? w.bias + part.group * w.rows + part.row : nullptr) {
    const int64_t most_k = std::min(k_, kGemmBlock);
    packed_ = scratch(GemmScratch::PackedB, kWidth * most_k);
    if (k_ > kGemmBlock) totals_ = scratch(GemmScratch::Totals, rows_ * panels_ * kWidth);
    if (w.ordered) ordered_ = w.ordered + (part.group * w.rows + part.row) * k_;
    if (!readable()) block_ = scratch(GemmScratch::PackedA, std::min(kBlockRows, rows_) * most_k);
    find_places();
  }

  void run() {
    const int64_t taps = windows_.taps();
    for (int64_t pc = 0; pc < k_; pc += kGemmBlock) {
      const int64_t block_k = std::min(kGemmBlock, k_ - pc);
      const T* in_band = static_cast<const T*>(band_.fill(pc / taps, (pc + block_k - 1) / taps + 1));
      const RowOffsets offsets(band_, taps, pc, block_k);
      const auto pack = [&](int64_t p) {
        for (int64_t j = p * kWidth; j < std::min(columns_, (p + 1) * kWidth); j += kLanes) {
          pack_vector(hn::ScalableTag<T>(), packed_ + j % kWidth, static_cast<size_t>(kWidth), in_band,
                      band_.columns().data() + j, static_cast<size_t>(std::min(kLanes, columns_ - j)),
                      offsets.data(), block_k);
        }
      };
      if (readable()) {
        // The packed panel stays in the first cache while all rows pass by it.
        for (int64_t p = 0; p < panels_; ++p) {
          pack(p);
          for (int64_t ic = 0; ic < rows_; ic += kBlockRows)
            multiply(p, ic, pc, block_k, rows_in_order(ic, pc));
        }
      } else {
        for (int64_t ic = 0; ic < rows_; ic += kBlockRows) {
          weights_.load(part_.row + ic, part_.row + std::min(rows_, ic + kBlockRows), pc, pc + block_k,
                        block_);
          for (int64_t p = 0; p < panels_; ++p) {
            pack(p);
            multiply(p, ic, pc, block_k, {block_, block_k});
          }
        }
      }
    }
  }

 private:
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  static constexpr int64_t kWidth = static_cast<int64_t>(kTileVecs) * kLanes;
  /// How the results of a panel are stored: by the tile itself, turned (channels-last), or one by one.
  enum class Way : char { Straight, Turned, Scattered };

  static Windows of_group(Windows w, int64_t offset) {
    w.data += offset;
    return w;
  }
  static T* scratch(GemmScratch slot, int64_t elements) {
    return static_cast<T*>(gemm_scratch(slot, static_cast<size_t>(elements) * sizeof(T)));
  }

  bool readable() const { return ordered_ || weights_.in_place(); }
  WeightBlock<T> rows_in_order(int64_t ic, int64_t pc) const {
    if (ordered_) return {ordered_ + ic * k_ + pc, k_};
    return {weights_.at(part_.row + ic, pc), weights_.row_stride()};
  }

  void find_places() {
    Positions at(windows_, part_.column);
    places_.resize(static_cast<size_t>(columns_));
    for (int64_t& place : places_) place = at.offset(w_.out_positions), at.advance(1);
    const bool plain = w_.out_same_type && w_.alpha == T(1) && w_.beta == T(0);
    for (int64_t first = 0; first < columns_; first += kWidth) {
      const auto from = places_.begin() + first, end = places_.begin() + std::min(columns_, first + kWidth);
      const int64_t step = end - from > 1 ? from[1] - from[0] : w_.out_item;
      const bool even =
          std::adjacent_find(from, end, [step](int64_t x, int64_t y) { return y - x != step; }) == end;
      Way way = Way::Scattered;
      if (plain && even && step == w_.out_item && w_.out_row % w_.out_item == 0)
        way = Way::Straight;
      else if (plain && even && w_.out_row == w_.out_item)
        way = Way::Turned;
      ways_.push_back(way);
    }
  }

  /// Rows from `ic` on, at most kBlockRows, of panel `p`, whose windows are packed.
  void multiply(int64_t p, int64_t ic, int64_t pc, int64_t block_k, WeightBlock<T> a) {
    constexpr auto kMost = static_cast<int64_t>(kTileRows);
    const bool final = pc + block_k == k_;
    const int64_t j = p * kWidth, rows = std::min(kBlockRows, rows_ - ic);
    const auto columns = static_cast<size_t>(std::min(kWidth, columns_ - j));
    const size_t vecs = (columns + static_cast<size_t>(kLanes) - 1) / static_cast<size_t>(kLanes);
    const Way way = ways_[static_cast<size_t>(p)];
    const int64_t place = places_[static_cast<size_t>(j)], totals_row = panels_ * kWidth;
    HWY_ALIGN T buffer[kBlockRows * kWidth];
    // Rows are dealt evenly, so that no tile has too few sums to hide the latency of fma.
    const int64_t parts = (rows + kMost - 1) / kMost;
    for (int64_t part = 0, i = 0; part < parts; ++part) {
      const int64_t n = rows / parts + (part < rows % parts ? 1 : 0);
      const TileIn<T> in{a.data + i * a.row, a.row, 1, packed_, kWidth};
      T* total = totals_ ? totals_ + (ic + i) * totals_row + j : nullptr;
      TileOut<T> to{total, totals_row, 1, T(1), T(0), pc > 0 ? total : nullptr, totals_row};
      // Totals and the buffer have room for whole vectors.
      size_t stored = vecs * static_cast<size_t>(kLanes);
      if (final && way == Way::Straight) {
        to.c = reinterpret_cast<T*>(out_ + (ic + i) * w_.out_row + place);
        to.c_row = w_.out_row / w_.out_item;
        stored = columns;
      } else if (final) {
        to.c = buffer + i * kWidth, to.c_row = kWidth;
      }
      multiply_tile(static_cast<size_t>(n), vecs, block_k, in, to, stored);
      if (final && bias_ && way != Way::Scattered)
        add_bias(hn::ScalableTag<T>(), to.c, to.c_row, static_cast<size_t>(n), columns, bias_ + ic + i);
      i += n;
    }
    if (!final || way == Way::Straight) return;
    char* out = out_ + ic * w_.out_row;
    if (way == Way::Turned) {
      const int64_t step = columns > 1 ? places_[static_cast<size_t>(j + 1)] - place : 0;
      turn()(out + place, step, buffer, kWidth * static_cast<int64_t>(sizeof(T)), static_cast<size_t>(rows),
             columns);
    } else {
      store_tile(w_, buffer, static_cast<size_t>(kWidth), static_cast<size_t>(rows), columns, out,
                 places_.data() + j, bias_ ? bias_ + ic : nullptr);
    }
  }

  static RowKernels::Transpose turn() {
    static const RowKernels::Transpose kernel = row_kernels().transpose[element_size_index(sizeof(T))];
    return kernel;
  }

  const WindowProduct<T>& w_;
  const ProductPart& part_;
  const Windows windows_;
  const Band band_;
  const OrderedWeights<T> weights_;
  const int64_t k_, columns_, rows_, panels_;
  char* const out_;
  const T* const bias_;
  T* packed_ = nullptr;
  T* totals_ = nullptr;
  T* block_ = nullptr;
  const T* ordered_ = nullptr;
  std::vector<int64_t> places_;  // of the columns, in bytes
  std::vector<Way> ways_;        // of the panels
};

template <class T>
void product(const WindowProduct<T>& w, const ProductPart& part) {
  if (w.windows.rows() == 0) return product_of_nothing(w, part);
  PartialProduct<T>(w, part).run();
}

/// Columns [first, first + count) of some rows of the incoming gradient, which begin at `from` and lie
/// `row_stride` bytes apart, as a contiguous matrix.
template <class T>
void load_gradient(const WindowGradient<T>& w, const Windows& windows, const char* from, int64_t row_stride,
                   int64_t rows, int64_t first, int64_t count, T* to) {
  constexpr int64_t kItem = sizeof(T);
  Positions at(windows, first);
  for (int64_t j = 0; j < count;) {
    const int64_t n = std::min(at.left_in_line(), count - j);
    w.convert(to + j, {kItem, count * kItem}, from + at.offset(w.grad_positions),
              {w.grad_positions.axes[2], row_stride}, n, rows);
    at.advance(n);
    j += n;
  }
}

/// The sums of one row of Windows, alpha * total + beta * before, for results that lie `stride` bytes apart.
template <class T>
void store_gradient(const WindowGradient<T>& w, T* totals, int64_t count, char* out, int64_t stride,
                    const Windows& windows, int64_t row) {
  constexpr int64_t kItem = sizeof(T);
  const int64_t taps = windows.taps(), width = windows.axes[2].taps.count;
  const int64_t plane = windows.axes[1].taps.count * width, channel = row / taps, tap = row % taps;
  out += channel * w.out_channel + tap / plane * w.out_tap[0] + tap % plane / width * w.out_tap[1] +
         tap % width * w.out_tap[2];
  if (w.alpha != T(1) || w.beta != T(0)) {
    for (int64_t j = 0; j < count; ++j) {
      T x = static_cast<T>(w.alpha * totals[j]), before;
      if (w.beta != T(0)) {
        w.load(&before, {kItem, 0}, out + j * stride, {w.out_item, 0}, 1, 1);
        x = static_cast<T>(x + static_cast<T>(w.beta * before));
      }
      totals[j] = x;
    }
  }
  w.store(out, {stride, 0}, totals, {kItem, 0}, count, 1);
}

/// The transposed gradient: rows are rows of Windows, which tiles read as they are; columns are those of the
/// incoming gradient.
template <class T>
void gradient(const WindowGradient<T>& w, const ProductPart& part) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t width = static_cast<int64_t>(kTileVecs) * lanes;
  const int64_t taps = w.windows.taps(), k = w.windows.columns();
  const int64_t columns = part.row_end - part.row, panels = (columns + width - 1) / width;
  const int64_t padded = panels * width, most_k = std::min(k, kGemmBlock);
  const auto bytes = [](int64_t n) { return static_cast<size_t>(n) * sizeof(T); };
  Windows windows = w.windows;
  windows.data += part.group * w.windows_group;
  T* packed = static_cast<T*>(gemm_scratch(GemmScratch::PackedB, bytes(padded * most_k)));
  T* ordered = static_cast<T*>(gemm_scratch(GemmScratch::FloatA, bytes(columns * most_k)));
  // Totals of so many rows fit into the cache.
  const int64_t chunk =
      std::max<int64_t>(kBlockRows, (int64_t{1} << 20) / static_cast<int64_t>(sizeof(T)) / padded);
  for (int64_t first = part.column; first < part.column_end; first += chunk) {
    const int64_t rows = std::min(chunk, part.column_end - first);
    T* totals = static_cast<T*>(gemm_scratch(GemmScratch::Totals, bytes(rows * padded)));
    T* in_rows =
        static_cast<T*>(gemm_scratch(GemmScratch::PackedA, bytes((kBlockRows + 1) * (most_k + lanes))));
    for (int64_t pc = 0; pc < k; pc += kGemmBlock) {
      const int64_t block_k = std::min(kGemmBlock, k - pc);
      load_gradient(w, windows, w.grad + part.group * w.grad_group + part.row * w.grad_row, w.grad_row,
                    columns, pc, block_k, ordered);
      for (int64_t p = 0; p < panels; ++p) {
        pack_b_panel(d, packed + p * width * block_k, static_cast<size_t>(width),
                     ordered + p * width * block_k, 1, static_cast<ptrdiff_t>(block_k), block_k,
                     static_cast<size_t>(std::min(width, columns - p * width)));
      }
      const Band band(windows, pc, pc + block_k, sizeof(T));
      const int64_t row_length = (block_k + lanes - 1) / lanes * lanes;
      for (int64_t ic = 0; ic < rows; ic += kBlockRows) {
        const int64_t block_rows = std::min(kBlockRows, rows - ic), row = first + ic;
        const T* in_band = static_cast<const T*>(band.fill(row / taps, (row + block_rows - 1) / taps + 1));
        const RowOffsets offsets(band, taps, row, block_rows);
        for (int64_t j = 0; j < block_k; j += lanes) {
          pack_vector(d, in_rows + j, static_cast<size_t>(row_length), in_band, band.columns().data() + j,
                      static_cast<size_t>(std::min(lanes, block_k - j)), offsets.data(), block_rows);
        }
        for (int64_t p = 0; p < panels; ++p) {
          const auto here = static_cast<size_t>(std::min(width, columns - p * width));
          const size_t vecs = (here + hn::Lanes(d) - 1) / hn::Lanes(d);
          const int64_t most = static_cast<int64_t>(kTileRows);
          for (int64_t i = 0; i < block_rows; i += most) {
            const auto tile_rows = static_cast<size_t>(std::min(most, block_rows - i));
            const TileIn<T> in{in_rows + i * row_length, row_length, 1, packed + p * width * block_k, width};
            T* total = totals + (ic + i) * padded + p * width;
            const TileOut<T> to{total, padded, 1, T(1), T(0), pc > 0 ? total : nullptr, padded};
            multiply_tile(tile_rows, vecs, block_k, in, to, here);
          }
        }
      }
    }
    for (int64_t i = 0; i < rows; ++i) {
      store_gradient(w, totals + i * padded, columns, w.out + part.group * w.out_group + part.row * w.out_row,
                     w.out_row, windows, first + i);
    }
  }
}

/// Up to a vector of neighbouring results of one line.
struct LineVector {
  int64_t place;  ///< In the band.
  int64_t out;    ///< Bytes.
  size_t count;
};

std::vector<LineVector> line_vectors(const Windows& windows, const Band& band, const PositionStrides& out,
                                     int64_t first, int64_t last, int64_t lanes) {
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

/// Products of groups that have one channel each, for groups [row, row_end) of the part: along the lines.
template <class T>
void depthwise(const WindowProduct<T>& w, const ProductPart& part) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  constexpr size_t kVecs = 4;
  Windows windows = w.windows;
  windows.channels = w.groups, windows.channel_stride = w.windows_group;
  const int64_t taps = windows.taps();
  const Band band(windows, part.column, part.column_end, sizeof(T));
  const std::vector<LineVector> vectors =
      line_vectors(windows, band, w.out_positions, part.column, part.column_end, static_cast<int64_t>(lanes));
  const bool straight = w.out_same_type && w.alpha == T(1) && w.beta == T(0) &&
                        (windows.axes[2].outputs == 1 || w.out_positions.axes[2] == w.out_item);
  std::vector<T> weights(static_cast<size_t>(w.rows * taps));
  std::vector<int64_t> places(lanes);
  for (size_t l = 0; l < lanes; ++l) places[l] = static_cast<int64_t>(l) * w.out_positions.axes[2];
  HWY_ALIGN T results[kVecs * hn::MaxLanes(hn::ScalableTag<T>())];
  for (int64_t group = part.row; group < part.row_end; ++group) {
    const T* in_band = static_cast<const T*>(band.fill(group, group + 1));
    OrderedWeights<T>(w.weights, w.windows, group * w.weights_group).load(0, w.rows, 0, taps, weights.data());
    for (int64_t row = 0; row < w.rows; ++row) {
      char* out = w.out + group * w.out_group + row * w.out_row;
      const T* bias = w.bias ? w.bias + group * w.rows + row : nullptr;
      const T* numbers = weights.data() + row * taps;
      for (size_t i = 0; i < vectors.size(); i += kVecs) {
        const size_t n = std::min(kVecs, vectors.size() - i);
        if (n == kVecs) {
          filter_vectors<kVecs>(d, in_band, &vectors[i], band.taps().data(), numbers, taps, results);
        } else {
          for (size_t v = 0; v < n; ++v)
            filter_vectors<1>(d, in_band, &vectors[i + v], band.taps().data(), numbers, taps,
                              results + v * lanes);
        }
        for (size_t v = 0; v < n; ++v) {
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

/// Sums that the registers hold beside the operands.
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
  return {&product<T>, &gradient<T>, &depthwise<T>, &depthwise_gradient<T>};
}

}  // namespace

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
