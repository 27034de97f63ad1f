// Single-threaded products of weights and windows. Included once per instruction set by depthwise-inl.h.
// Knows caches, panels and bands; nothing of threads.

#if defined(TENON_CPU_WINDOW_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_WINDOW_PRODUCT_INL
#undef TENON_CPU_WINDOW_PRODUCT_INL
#else
#define TENON_CPU_WINDOW_PRODUCT_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <vector>

#include "backends/cpu/conv/band.h"
#include "backends/cpu/conv/gradient_tile-inl.h"
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

/// Where the elements of some neighbouring rows of Windows are, from the place of a column in the band.
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

/// One vector of columns for `count` rows: to[i * width + lane]. `places` of the columns that exist. Where
/// nothing `follows` them, nothing is read there.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE void pack_vector(D d, T* to, size_t width, const T* band, bool follows, const int64_t* places,
                            size_t columns, const int64_t* rows, int64_t count) {
  const size_t lanes = hn::Lanes(d);
  if (!follows && columns < lanes) {
    for (int64_t i = 0; i < count; ++i, to += width) {
      for (size_t l = 0; l < columns; ++l) to[l] = band[places[l] + rows[i]];
      for (size_t l = columns; l < lanes; ++l) to[l] = T(0);
    }
    return;
  }
  // Columns of one line are side by side; a vector holds pieces of some lines.
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
  if (plain && w.out_same_type) {
    for (size_t i = 0; i < rows; ++i, tile += width, out += w.out_row) {
      for (size_t j = 0; j < columns; ++j)
        *reinterpret_cast<T*>(out + places[j]) = bias ? plus(tile[j], bias[i]) : tile[j];
    }
    return;
  }
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

/// Weights as a tile reads them.
template <class T>
struct WeightBlock {
  const T* data;
  ptrdiff_t row;
};

// A result of no products: the bias, or what beta leaves.
template <class T>
void product_of_nothing(const WindowProduct<T>& w, const ProductPart& part) {
  const bool plain = w.out_same_type && w.alpha == T(1) && w.beta == T(0);
  const int64_t step = w.out_positions.axes[2], here = 0;
  Positions at(w.windows, part.column);
  for (int64_t j = part.column; j < part.column_end;) {
    const int64_t n = std::min(at.left_in_line(), part.column_end - j);
    for (int64_t i = part.row; i < part.row_end; ++i) {
      char* out = w.out + part.group * w.out_group + i * w.out_row + at.offset(w.out_positions);
      const T* bias = w.bias ? w.bias + part.group * w.rows + i : nullptr;
      const T value = bias ? *bias : T(0), zero = T(0);
      for (int64_t l = 0; l < n; ++l, out += step) {
        if (plain)
          *reinterpret_cast<T*>(out) = value;
        else
          store_tile(w, &zero, 1, 1, 1, out, &here, bias);
      }
    }
    at.advance(n);
    j += n;
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
        band_(windows_, part.column, part.column_end, sizeof(T), true),
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
                      !band_.in_place(), band_.columns().data() + j,
                      static_cast<size_t>(std::min(kLanes, columns_ - j)), offsets.data(), block_k);
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
  /// How the results of a panel are stored: by the tile itself, run by run, turned (rows side by side, as in
  /// channels-last), or one by one.
  enum class Way : char { Straight, Runs, Turned, Scattered };
  /// Columns of a panel that are evenly spaced: `count` from column `first` of it on, `step` bytes apart.
  struct Run {
    int64_t first, count, place, step;
  };

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
      const size_t before = runs_.size();
      add_runs(first, std::min(columns_, first + kWidth));
      first_runs_.push_back(before);
      const bool side_by_side = std::all_of(runs_.begin() + static_cast<ptrdiff_t>(before), runs_.end(),
                                            [&](const Run& r) { return r.step == w_.out_item; });
      Way way = Way::Scattered;
      if (plain && side_by_side && w_.out_row % w_.out_item == 0)
        way = runs_.size() == before + 1 ? Way::Straight : Way::Runs;
      else if (plain && w_.out_row == w_.out_item)
        way = Way::Turned;
      ways_.push_back(way);
    }
    first_runs_.push_back(runs_.size());
  }

  void add_runs(int64_t first, int64_t end) {
    for (int64_t j = first; j < end;) {
      const int64_t* place = places_.data() + j;
      const int64_t step = j + 1 < end ? place[1] - place[0] : w_.out_item;
      int64_t count = 1;
      while (j + count < end && place[count] - place[count - 1] == step) ++count;
      runs_.push_back({j - first, count, *place, count > 1 ? step : w_.out_item});
      j += count;
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
        add_to_columns(hn::ScalableTag<T>(), bias_ + ic + i, to.c, to.c_row, n, columns);
      i += n;
    }
    if (!final || way == Way::Straight) return;
    char* out = out_ + ic * w_.out_row;
    if (way == Way::Scattered) {
      store_tile(w_, buffer, static_cast<size_t>(kWidth), static_cast<size_t>(rows), columns, out,
                 places_.data() + j, bias_ ? bias_ + ic : nullptr);
      return;
    }
    for (size_t r = first_runs_[static_cast<size_t>(p)]; r < first_runs_[static_cast<size_t>(p) + 1]; ++r) {
      const Run& run = runs_[r];
      if (way == Way::Turned) {
        turn()(out + run.place, run.step, buffer + run.first, kWidth * static_cast<int64_t>(sizeof(T)),
               static_cast<size_t>(rows), static_cast<size_t>(run.count));
      } else {
        for (int64_t i = 0; i < rows; ++i) {
          std::memcpy(out + i * w_.out_row + run.place, buffer + i * kWidth + run.first,
                      static_cast<size_t>(run.count) * sizeof(T));
        }
      }
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
  std::vector<Run> runs_;
  std::vector<size_t> first_runs_;  // of each panel, and their number
};

template <class T>
void product(const WindowProduct<T>& w, const ProductPart& part) {
  if (w.windows.rows() == 0) return product_of_nothing(w, part);
  PartialProduct<T>(w, part).run();
}

/// Calls f(j, n, offset) for runs of columns [first + j, first + j + n), evenly spaced, and for the offset
/// of their first one.
template <class F>
void for_even_columns(const Windows& windows, const PositionStrides& strides, int64_t first, int64_t count,
                      F&& f) {
  const int64_t most = even_columns(windows, strides);
  for (int64_t j = 0; j < count;) {
    const int64_t n = std::min(most - (first + j) % most, count - j);
    f(j, n, Positions(windows, first + j).offset(strides));
    j += n;
  }
}

/// Columns [first, first + count) of some rows of the incoming gradient, which begin at `from` and are
/// `row_stride` bytes apart, as a contiguous matrix.
template <class T>
void load_gradient(const WindowGradient<T>& w, const Windows& windows, const char* from, int64_t row_stride,
                   int64_t rows, int64_t first, int64_t count, T* to) {
  constexpr int64_t kItem = sizeof(T);
  for_even_columns(windows, w.grad_positions, first, count, [&](int64_t j, int64_t n, int64_t offset) {
    w.convert(to + j, {kItem, count * kItem}, from + offset, {w.grad_positions.axes[2], row_stride}, n, rows);
  });
}

/// The same as panels of B, of up to kTileVecs vectors of rows each. `ordered` has room for all of it.
template <class T>
void pack_gradient(const WindowGradient<T>& w, const Windows& windows, const char* from, int64_t rows,
                   int64_t first, int64_t count, T* ordered, T* packed) {
  const hn::ScalableTag<T> d;
  constexpr int64_t kItem = sizeof(T);
  const int64_t width = static_cast<int64_t>(kTileVecs * hn::Lanes(d));
  const auto pack = [&](int64_t k, int64_t n, const T* b, int64_t k_step, int64_t row_step) {
    for (int64_t j = 0; j < rows; j += width) {
      pack_b_panel(d, packed + j * count + k * width, static_cast<size_t>(width), b + j * row_step,
                   static_cast<ptrdiff_t>(k_step), static_cast<ptrdiff_t>(row_step), n,
                   static_cast<size_t>(std::min(width, rows - j)));
    }
  };
  const int64_t step = w.grad_positions.axes[2];
  if (w.grad_same_type && w.grad_row % kItem == 0 && step % kItem == 0) {
    for_even_columns(windows, w.grad_positions, first, count, [&](int64_t j, int64_t n, int64_t offset) {
      pack(j, n, reinterpret_cast<const T*>(from + offset), step / kItem, w.grad_row / kItem);
    });
  } else {
    load_gradient(w, windows, from, w.grad_row, rows, first, count, ordered);
    pack(0, count, ordered, 1, count);
  }
}

/// The sums of one row of Windows, alpha * total + beta * before, for results `stride` bytes apart.
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

/// Whether one row of the gradient is stored as it is, in the order of the rows of Windows.
template <class T>
bool lies_in_order(const WindowGradient<T>& w, const Windows& windows) {
  int64_t next = w.out_item;
  bool in_order = w.out_same_type && w.alpha == T(1) && w.beta == T(0);
  for (size_t a = kWindowAxes; a-- > 0;) {
    if (windows.axes[a].taps.count > 1) in_order &= w.out_tap[a] == next;
    next *= windows.axes[a].taps.count;
  }
  return in_order && (windows.channels == 1 || w.out_channel == next);
}

/// The transposed gradient: rows are rows of Windows, which tiles read from the band; columns are those of
/// the incoming gradient.
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
  const bool side_by_side = lies_in_order(w, windows);
  T* packed = static_cast<T*>(gemm_scratch(GemmScratch::PackedB, bytes(padded * most_k)));
  T* ordered = static_cast<T*>(gemm_scratch(GemmScratch::FloatA, bytes(columns * most_k)));
  // Totals of so many rows fit into the cache.
  const int64_t chunk =
      std::max<int64_t>(kBlockRows, (int64_t{1} << 20) / static_cast<int64_t>(sizeof(T)) / padded);
  for (int64_t first = part.column; first < part.column_end; first += chunk) {
    const int64_t rows = std::min(chunk, part.column_end - first);
    T* totals = static_cast<T*>(gemm_scratch(GemmScratch::Totals, bytes(rows * padded)));
    for (int64_t pc = 0; pc < k; pc += kGemmBlock) {
      const int64_t block_k = std::min(kGemmBlock, k - pc);
      pack_gradient(w, windows, w.grad + part.group * w.grad_group + part.row * w.grad_row, columns, pc,
                    block_k, ordered, packed);
      const Band band(windows, pc, pc + block_k, sizeof(T), true);
      for (int64_t ic = 0; ic < rows; ic += kBlockRows) {
        const int64_t block_rows = std::min(kBlockRows, rows - ic), row = first + ic;
        const T* in_band = static_cast<const T*>(band.fill(row / taps, (row + block_rows - 1) / taps + 1));
        const RowOffsets offsets(band, taps, row, block_rows);
        for (int64_t p = 0; p < panels; ++p) {
          const int64_t here = std::min(width, columns - p * width), vecs = (here + lanes - 1) / lanes;
          // Rows are dealt evenly, as of products.
          constexpr auto kMost = static_cast<int64_t>(kGradientRows);
          const int64_t parts = (block_rows + kMost - 1) / kMost;
          for (int64_t dealt = 0, i = 0; dealt < parts; ++dealt) {
            const int64_t n = block_rows / parts + (dealt < block_rows % parts ? 1 : 0);
            kGradientTiles<T>[static_cast<size_t>((n - 1) * static_cast<int64_t>(kTileVecs) + vecs - 1)](
                block_k,
                {in_band, offsets.data() + i, band.columns().data(), packed + p * width * block_k, width},
                pc == 0, totals + (ic + i) * padded + p * width, padded);
            i += n;
          }
        }
      }
    }
    char* out = w.out + part.group * w.out_group + part.row * w.out_row;
    if (side_by_side) {
      constexpr int64_t kItem = sizeof(T);
      row_kernels().transpose[element_size_index(kItem)](out + first * kItem, w.out_row, totals,
                                                         padded * kItem, static_cast<size_t>(rows),
                                                         static_cast<size_t>(columns));
      continue;
    }
    for (int64_t i = 0; i < rows; ++i)
      store_gradient(w, totals + i * padded, columns, out, w.out_row, windows, first + i);
  }
}

}  // namespace

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
