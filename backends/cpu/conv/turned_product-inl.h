// Single-threaded products of weights and windows whose vectors run along the rows of the weights: weights
// are packed, windows are read from the band as they are. Included once per instruction set by
// depthwise-inl.h. Knows caches, panels and bands; nothing of threads.

#if defined(TENON_CPU_TURNED_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_TURNED_PRODUCT_INL
#undef TENON_CPU_TURNED_PRODUCT_INL
#else
#define TENON_CPU_TURNED_PRODUCT_INL
#endif

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "backends/cpu/conv/turned_tile-inl.h"
#include "backends/cpu/conv/window_product-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// A part of a product, panel by panel of rows.
template <class T>
class TurnedProduct {
 public:
  TurnedProduct(const WindowProduct<T>& w, const ProductPart& part)
      : w_(w),
        part_(part),
        windows_(of_group(w.windows, part.group * w.windows_group)),
        band_(windows_, part.column, part.column_end, sizeof(T), true),
        weights_(w.weights, windows_, part.group * w.weights_group),
        k_(windows_.rows()),
        rows_(part.row_end - part.row),
        columns_(part.column_end - part.column),
        out_(w.out + part.group * w.out_group + part.row * w.out_row),
        bias_(w.bias ? w.bias + part.group * w.rows + part.row : nullptr),
        taps_(weights_.tap_offsets()) {
    const int64_t most_k = std::min(k_, kGemmBlock);
    packed_ = scratch(GemmScratch::PackedB, kWidth * most_k);
    if (k_ > kGemmBlock) totals_ = scratch(GemmScratch::Totals, (rows_ + kWidth) * columns_);
    const bool plain = w.out_same_type && w.alpha == T(1) && w.beta == T(0);
    const int64_t step = w.out_positions.axes[2];
    if (plain && w.out_row == w.out_item && step % w.out_item == 0)
      way_ = Way::Straight;
    else if (plain && (step == w.out_item || windows_.axes[2].outputs == 1))
      way_ = Way::Turned;
    find_pieces();
  }

  void run() {
    const int64_t taps = windows_.taps();
    for (int64_t pc = 0; pc < k_; pc += kGemmBlock) {
      const int64_t block_k = std::min(kGemmBlock, k_ - pc);
      const T* in_band = static_cast<const T*>(band_.fill(pc / taps, (pc + block_k - 1) / taps + 1));
      const RowOffsets offsets(band_, taps, pc, block_k);
      for (int64_t row = 0; row < rows_; row += kWidth) {
        const int64_t rows = std::min(kWidth, rows_ - row);
        pack(row, rows, pc, block_k);
        for (const Piece& piece : pieces_)
          multiply(piece, row, rows, pc, block_k, {in_band, offsets.data(), packed_});
      }
    }
  }

 private:
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));
  static constexpr int64_t kWidth = static_cast<int64_t>(kTurnedVecs) * kLanes;
  static constexpr int64_t kMostColumns = static_cast<int64_t>(kTurnedColumns);
  /// Columns whose results are turned at once.
  static constexpr int64_t kPiece = 4 * kMostColumns;
  /// How results are stored: by the tile itself, turned, or one by one.
  enum class Way : char { Straight, Turned, Scattered };
  /// Neighbouring columns of one line.
  struct Piece {
    int64_t first, count;
    int64_t from;  ///< In the band.
    int64_t out;   ///< Bytes.
  };

  static Windows of_group(Windows w, int64_t offset) {
    w.data += offset;
    return w;
  }
  static T* scratch(GemmScratch slot, int64_t elements) {
    return static_cast<T*>(gemm_scratch(slot, static_cast<size_t>(elements) * sizeof(T)));
  }
  static int64_t padded(int64_t rows) { return (rows + kLanes - 1) / kLanes * kLanes; }

  void find_pieces() {
    Positions at(windows_, part_.column);
    for (int64_t j = 0; j < columns_;) {
      const int64_t n = std::min({kPiece, at.left_in_line(), columns_ - j});
      pieces_.push_back({j, n, band_.columns()[static_cast<size_t>(j)], at.offset(w_.out_positions)});
      at.advance(n);
      j += n;
    }
  }

  /// A panel: for each k the weights of some rows side by side, then zeros.
  void pack(int64_t row, int64_t rows, int64_t pc, int64_t block_k) {
    const hn::ScalableTag<T> d;
    constexpr int64_t kItem = sizeof(T);
    const auto width = static_cast<size_t>(padded(rows)), here = static_cast<size_t>(rows);
    const WindowWeights& w = w_.weights;
    if (weights_.in_place()) {
      return pack_b_panel(d, packed_, width, weights_.at(part_.row + row, pc), 1, weights_.row_stride(),
                          block_k, here);
    }
    if (!w.same_type || w.row % kItem != 0) {
      weights_.load(part_.row + row, part_.row + row + rows, pc, pc + block_k, block());
      return pack_b_panel(d, packed_, width, block(), 1, block_k, block_k, here);
    }
    const auto count = static_cast<int64_t>(taps_.size());
    if (count == 1 && w.row == kItem && w.channel % kItem == 0) {
      const T* from = reinterpret_cast<const T*>(weights_.bytes(part_.row + row, pc));
      return pack_b_panel(d, packed_, width, from, w.channel / kItem, 1, block_k, here);
    }
    bool side_by_side = count > 1;
    for (int64_t t = 0; t < count; ++t) side_by_side &= taps_[static_cast<size_t>(t)] == t * w.item;
    T* to = packed_;
    for (int64_t at = pc; at < pc + block_k;) {
      const int64_t tap = at % count, n = std::min(count - tap, pc + block_k - at);
      const char* from = weights_.bytes(part_.row + row, at / count);
      if (side_by_side) {
        pack_b_panel(d, to, width, reinterpret_cast<const T*>(from) + tap, 1, w.row / kItem, n, here);
        to += static_cast<ptrdiff_t>(width) * n;
      } else {
        for (int64_t t = tap; t < tap + n; ++t, to += width)
          copy_rows(to, reinterpret_cast<const T*>(from + taps_[static_cast<size_t>(t)]), w.row / kItem, here,
                    width);
      }
      at += n;
    }
  }

  static void copy_rows(T* to, const T* from, ptrdiff_t stride, size_t rows, size_t width) {
    if (rows == static_cast<size_t>(kWidth)) {
#pragma GCC unroll 32
      for (size_t i = 0; i < static_cast<size_t>(kWidth); ++i, from += stride) to[i] = *from;
      return;
    }
    for (size_t i = 0; i < rows; ++i, from += stride) to[i] = *from;
    std::fill(to + rows, to + width, T(0));
  }

  /// Room for a panel's weights in order, where they are converted first.
  T* block() {
    if (!block_) block_ = scratch(GemmScratch::PackedA, kWidth * std::min(k_, kGemmBlock));
    return block_;
  }

  void multiply(const Piece& piece, int64_t row, int64_t rows, int64_t pc, int64_t block_k, TurnedIn<T> in) {
    const int64_t width = padded(rows), vecs = width / kLanes;
    const bool final = pc + block_k == k_;
    HWY_ALIGN T buffer[kPiece * kWidth];
    HWY_ALIGN T bias[kWidth];
    T* total = totals_ ? totals_ + row * columns_ + piece.first * width : nullptr;
    TurnedOut<T> to{total, width, pc > 0 ? total : nullptr, nullptr};
    const bool straight = final && way_ == Way::Straight && width == rows;
    if (straight) {
      to.c = reinterpret_cast<T*>(out_ + piece.out) + row;
      to.c_column = w_.out_positions.axes[2] / w_.out_item;
    } else if (final) {
      to.c = buffer;
    }
    if (final && bias_ && way_ != Way::Scattered) {
      std::copy_n(bias_ + row, rows, bias);
      std::fill(bias + rows, bias + width, T(0));
      to.bias = bias;
    }
    // Columns are dealt evenly, so that no tile has too few sums to hide the latency of fma.
    const int64_t parts = (piece.count + kMostColumns - 1) / kMostColumns;
    in.windows += piece.from;
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t n = piece.count / parts + (part < piece.count % parts ? 1 : 0);
      kTurnedTiles<T>[static_cast<size_t>((n - 1) * static_cast<int64_t>(kTurnedVecs) + vecs - 1)](block_k,
                                                                                                   in, to);
      in.windows += n;
      to.c += n * to.c_column;
      if (to.resume) to.resume += n * width;
    }
    if (final && !straight) store(piece, row, rows, buffer, width);
  }

  /// Sums of a piece by column to where they belong.
  void store(const Piece& piece, int64_t row, int64_t rows, const T* sums, int64_t width) {
    constexpr int64_t kItem = sizeof(T);
    const int64_t step = w_.out_positions.axes[2];
    char* out = out_ + row * w_.out_row + piece.out;
    if (way_ == Way::Straight) {
      for (int64_t j = 0; j < piece.count; ++j)
        std::memcpy(out + j * step, sums + j * width, static_cast<size_t>(rows * kItem));
      return;
    }
    const auto turn = row_kernels().transpose[element_size_index(kItem)];
    if (way_ == Way::Turned) {
      turn(out, w_.out_row, sums, width * kItem, static_cast<size_t>(piece.count), static_cast<size_t>(rows));
      return;
    }
    constexpr int64_t kMost = static_cast<int64_t>(kTileVecs) * kLanes;
    HWY_ALIGN T by_row[kWidth * kMost];
    int64_t places[kMost];
    for (int64_t j = 0; j < piece.count; j += kMost, out += kMost * step) {
      const int64_t n = std::min(kMost, piece.count - j);
      for (int64_t i = 0; i < n; ++i) places[i] = i * step;
      turn(by_row, kMost * kItem, sums + j * width, width * kItem, static_cast<size_t>(n),
           static_cast<size_t>(rows));
      store_tile(w_, by_row, static_cast<size_t>(kMost), static_cast<size_t>(rows), static_cast<size_t>(n),
                 out, places, bias_ ? bias_ + row : nullptr);
    }
  }

  const WindowProduct<T>& w_;
  const ProductPart& part_;
  const Windows windows_;
  const Band band_;
  const OrderedWeights<T> weights_;
  const int64_t k_, rows_, columns_;
  char* const out_;
  const T* const bias_;
  const std::vector<int64_t> taps_;  // bytes from a channel's first
  Way way_ = Way::Scattered;
  T* packed_ = nullptr;
  T* totals_ = nullptr;
  T* block_ = nullptr;
  std::vector<Piece> pieces_;
};

template <class T>
void turned_product(const WindowProduct<T>& w, const ProductPart& part) {
  TurnedProduct<T>(w, part).run();
}

}  // namespace

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
