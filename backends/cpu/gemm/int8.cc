#include "backends/cpu/gemm/int8.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/gemm/gemm_scratch.h"
#include "backends/cpu/gemm/int8_kernels.h"
#include "tenon/core/parallel.h"

namespace tenon::cpu {
namespace {

/// Multiplications that each further thread must bring, and bytes that it must pack.
constexpr int64_t kParallelWork = int64_t{1} << 22, kParallelBytes = int64_t{1} << 17;

const Int8Kernels& kernels() {
  static const Int8Kernels all = int8_kernels(cpu_target(), has_byte_products(cpu_target()));
  return all;
}

/// Copies elements, of int8 as uint8 that count from 128, and adds zeros up to a multiple of four.
void copy_row(const uint8_t* from, ptrdiff_t step, int64_t k, uint8_t flip, size_t item, std::byte* to) {
  const int64_t width = (k + kInt8Group - 1) / kInt8Group * kInt8Group;
  int64_t p = 0;
  if (item == 1) {
    const uint64_t flips = flip * 0x0101010101010101u;
    for (; step == 1 && p + 8 <= k; p += 8) {
      uint64_t eight;
      std::memcpy(&eight, from + p, 8);
      eight ^= flips;
      std::memcpy(to + p, &eight, 8);
    }
    for (; p < k; ++p) to[p] = static_cast<std::byte>(from[p * step] ^ flip);
  } else {
    auto* words = reinterpret_cast<int16_t*>(to);
    for (; p < k; ++p) words[p] = from[p * step] ^ flip;
  }
  std::memset(to + k * static_cast<int64_t>(item), 0, static_cast<size_t>(width - k) * item);
}

class Product {
 public:
  Product(const Int8Kernels& kernels, const Int8Product& g)
      : kernels_(kernels), g_(g), item_(static_cast<int64_t>(kernels.item)), has_zeros_(has_zeros()) {}

  void run() {
    // A block of A stays in L2 while all of B passes by.
    constexpr int64_t kBlockBytes = 131072;
    const auto tall = static_cast<int64_t>(kernels_.many.rows);
    const int64_t most = std::max<int64_t>(1, kBlockBytes / ((g_.k + 1) * item_) / tall) * tall;
    for (int64_t i = 0; i < g_.m; i += most) run_rows(i, std::min(most, g_.m - i));
  }

 private:
  /// Whether any column has a zero.
  bool has_zeros() const {
    int32_t any = 0;
    for (int64_t p = 0; p < int8_panels(g_.n); ++p) {
      int32_t zeros[kInt8Columns];
      std::memcpy(zeros, g_.packed + p * int8_panel_bytes(g_.k) + sizeof(zeros), sizeof(zeros));
      for (const int32_t zero : zeros) any |= zero;
    }
    return any != 0;
  }

  void run_rows(int64_t first, int64_t rows) {
    const uint8_t* from = g_.a.data + first * g_.a.row;
    if (item_ == 1 && !g_.a.is_signed && g_.a.column == 1 && g_.k % kInt8Group == 0) {
      a_ = reinterpret_cast<const std::byte*>(from), a_row_ = g_.a.row;
    } else {
      a_row_ = (g_.k + kInt8Group - 1) / kInt8Group * kInt8Group;
      auto* copy = static_cast<std::byte*>(
          gemm_scratch(GemmScratch::PackedA, static_cast<size_t>(rows * a_row_ * item_)));
      a_ = copy;
      for (int64_t i = 0; i < rows; ++i, from += g_.a.row, copy += a_row_ * item_)
        copy_row(from, g_.a.column, g_.k, g_.a.is_signed ? 128 : 0, kernels_.item, copy);
    }
    zeros_ = static_cast<int32_t*>(
        gemm_scratch(GemmScratch::Totals, static_cast<size_t>(2 * rows) * sizeof(int32_t)));
    for (int64_t i = 0; i < rows; ++i) {
      zeros_[i] = g_.a.zeros.at(first + i) + (g_.a.is_signed ? 128 : 0);
      if (has_zeros_) zeros_[rows + i] = kernels_.row_sum(a_ + i * a_row_ * item_, g_.k);
    }
    sums_ = has_zeros_ ? zeros_ + rows : nullptr;
    const int64_t panels = int8_panels(g_.n);
    const auto wide = static_cast<int64_t>((rows == 1 ? kernels_.one : kernels_.many).panels);
    for (int64_t p = 0; p < panels; p += wide) {
      check_stop();
      for (int64_t i = 0; i < rows;) {
        const int64_t left = rows - i;
        const Int8Kernels::Tiles& tiles = rows == 1                                         ? kernels_.one
                                          : left <= static_cast<int64_t>(kernels_.few.rows) ? kernels_.few
                                                                                            : kernels_.many;
        const int64_t step = std::min(left, static_cast<int64_t>(tiles.rows));
        run_tile(tiles, first, i, step, p, std::min(wide, panels - p));
        i += step;
      }
    }
  }

  /// Rows [i, i + rows) of the block of rows from `first` on, panels [p, p + panels).
  void run_tile(const Int8Kernels::Tiles& tiles, int64_t first, int64_t i, int64_t rows, int64_t p,
                int64_t panels) {
    alignas(64) int32_t totals[kMostTotals];
    const int64_t bytes = int8_panel_bytes(g_.k);
    const Int8Tile tile{a_ + i * a_row_ * item_,  a_row_, static_cast<size_t>(rows),
                        g_.packed + p * bytes,    bytes,  static_cast<size_t>(panels),
                        int8_panel_rows(g_.k) - 2};
    tiles.run(tile, totals);
    kernels_.finish(
        tile, totals, tiles.panels * kInt8Columns,
        {zeros_ + i, sums_ ? sums_ + i : nullptr, g_.c + (first + i) * g_.c_row + p * kInt8Columns, g_.c_row,
         static_cast<size_t>(std::min(panels * kInt8Columns, g_.n - p * kInt8Columns))});
  }

  static constexpr int64_t kMostTotals = 12 * kInt8Columns;
  const Int8Kernels& kernels_;
  const Int8Product& g_;
  const int64_t item_;
  const bool has_zeros_;
  const std::byte* a_ = nullptr;  // a block of rows
  int64_t a_row_ = 0;
  int32_t* zeros_ = nullptr;  // of its rows
  const int32_t* sums_ = nullptr;
};

/// Columns of panels [first, last).
Int8Product columns_of(Int8Product g, int64_t first, int64_t last) {
  g.n = std::min(g.n, last * kInt8Columns) - first * kInt8Columns;
  g.packed += first * int8_panel_bytes(g.k);
  g.c += first * kInt8Columns;
  return g;
}
/// Rows [first, last).
Int8Product rows_of(Int8Product g, int64_t first, int64_t last) {
  g.m = last - first;
  g.a.data += first * g.a.row;
  if (g.a.zeros.values) g.a.zeros.values += first * g.a.zeros.step;
  g.c += first * g.c_row;
  return g;
}

}  // namespace

void int8_product_with(const Int8Kernels& kernels, const Int8Product& args) { Product(kernels, args).run(); }

void int8_pack_with(const Int8Kernels& kernels, const Int8Right& b, int64_t k, int64_t n, int64_t first,
                    int64_t last, std::byte* packed) {
  for (int64_t panel = first; panel < last; ++panel) {
    check_stop();
    std::byte* to = packed + panel * int8_panel_bytes(k);
    const int64_t column = panel * kInt8Columns, columns = std::min(kInt8Columns, n - column);
    auto* groups = reinterpret_cast<int8_t*>(to + kInt8HeaderBytes);
    int8_pack_groups(b, k, column, columns, groups);
    alignas(64) int32_t header[2 * kInt8Columns];
    kernels.column_sums(groups, int8_panel_rows(k) - 2, header);
    for (int64_t j = 0; j < kInt8Columns; ++j) {
      const int32_t zero = j < columns ? b.zeros.at(column + j) - (b.is_signed ? 0 : 128) : 0;
      header[j] = static_cast<int32_t>(static_cast<uint32_t>(header[j]) -
                                       static_cast<uint32_t>(zero) * static_cast<uint32_t>(k));
      header[kInt8Columns + j] = zero;
    }
    std::memcpy(to, header, sizeof(header));
  }
}

void int8_pack(const Int8Right& b, int64_t k, int64_t n, std::byte* packed) {
  const int64_t grain = std::max<int64_t>(1, kParallelBytes / int8_panel_bytes(k));
  parallel_for(0, int8_panels(n), grain,
               [&](int64_t first, int64_t last) { int8_pack_with(kernels(), b, k, n, first, last, packed); });
}

void int8_product(const Int8Product& g) {
  if (g.m <= 0 || g.n <= 0) return;
  // Columns are dealt where each thread gets many: every thread reads all of A, or all of B.
  const int64_t panels = int8_panels(g.n), work = std::max<int64_t>(1, g.k) * kInt8Columns;
  const bool by_columns = g.m < 32 || panels >= 8 * static_cast<int64_t>(num_threads());
  const int64_t parts = by_columns ? panels : g.m;
  const int64_t grain = std::max<int64_t>(1, kParallelWork / (work * (by_columns ? g.m : panels)));
  parallel_for(0, parts, grain, [&](int64_t first, int64_t last) {
    int8_product_with(kernels(), by_columns ? columns_of(g, first, last) : rows_of(g, first, last));
  });
}

Int8Range int8_quantize(const float* x, int64_t n, uint8_t* to) { return kernels().quantize(x, n, to); }
void int8_to_float(const int32_t* sums, int64_t n, const float* scales, int64_t step, float scale,
                   float* to) {
  kernels().to_float(sums, n, scales, step, scale, to);
}

}  // namespace tenon::cpu
