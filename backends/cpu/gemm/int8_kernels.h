// The loops of int8.h that each instruction set exports. Used by int8.cc, and by tests that compare
// instruction sets.
#pragma once

#include "backends/cpu/cpu_target.h"
#include "backends/cpu/gemm/int8.h"

namespace tenon::cpu {

/// Some rows of A and some panels of B. Rows are side by side, in unsigned items, with a multiple of four k.
struct Int8Tile {
  const void* a;
  ptrdiff_t a_row;  ///< in items
  size_t rows;
  const std::byte* panel;
  ptrdiff_t panel_bytes;
  size_t panels;
  int64_t groups;
};

/// Where a tile's totals go, of `columns` columns, and what their rows bring.
struct Int8Output {
  const int32_t* zeros;     ///< of rows of A
  const int32_t* row_sums;  ///< null where no column of B has a zero
  int32_t* c;
  ptrdiff_t c_row;
  size_t columns;
};

/// The loops of one instruction set.
struct Int8Kernels {
  /// Products of at most `rows` rows and `panels` panels: totals [rows, panels, 16], aligned to 64 bytes.
  struct Tiles {
    void (*run)(const Int8Tile& tile, int32_t* totals);
    size_t rows, panels;
  };
  Tiles one, few, many;
  size_t item;  ///< bytes of an item of A: 1 or 2
  int32_t (*row_sum)(const void* row, int64_t count);
  /// Totals, less what zeros take from them, to C.
  void (*finish)(const Int8Tile& tile, const int32_t* totals, size_t totals_row, const Int8Output& out);
  /// The sums of 16 columns, over `count` groups of a panel; `sums` is aligned to 64 bytes.
  void (*column_sums)(const int8_t* groups, int64_t count, int32_t* sums);
  decltype(&int8_quantize) quantize;
  decltype(&int8_to_float) to_float;
};

/// Whether the machine has the instruction that adds four products of bytes (VNNI), for vectors of `target`.
bool has_byte_products(CpuTarget target) noexcept;

/// Those of one instruction set, with or without that instruction; the machine must have both.
Int8Kernels int8_kernels(CpuTarget target, bool byte_products);

/// A whole product on the calling thread. Arguments as int8_product's, with m, n >= 1.
void int8_product_with(const Int8Kernels& kernels, const Int8Product& args);

/// Panels [first, last) of int8_pack.
void int8_pack_with(const Int8Kernels& kernels, const Int8Right& b, int64_t k, int64_t n, int64_t first,
                    int64_t last, std::byte* packed);

/// The groups of a panel of `columns` columns from `column` on, on any processor.
void int8_pack_groups(const Int8Right& b, int64_t k, int64_t column, int64_t columns, int8_t* to);

}  // namespace tenon::cpu
