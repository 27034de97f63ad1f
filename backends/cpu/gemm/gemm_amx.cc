// Products of bfloat16 by matrix units: tiles of 16 rows by 16 columns, a block of 32 k at a time. The left
// matrix has contiguous k in each row; the right one has pairs of k, column by column.
//
// What the instruction computes: Intel 64 and IA-32 Architectures Software Developer's Manual, TDPBF16PS.
#include "backends/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm/gemm_amx.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target:
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/gemm/gemm_amx.h"
#include "backends/cpu/gemm/gemm_few_rows-inl.h"
#include "backends/cpu/gemm/gemm_halves-inl.h"
#include "backends/cpu/gemm/gemm_scratch.h"
#include "hwy/highway.h"
#include "tenon/core/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_AVX3
namespace {

#define TENON_AMX __attribute__((target("amx-tile,amx-bf16")))

constexpr int64_t kTile = 16;               // rows and columns of a tile of results
constexpr int64_t kTileBytes = kTile * 64;  // of a tile of operands
constexpr int64_t kElements = kTileBytes / 2;
constexpr int64_t kPair = 2 * kTile;  // two tiles of rows by two of columns are multiplied at a time

/// Shapes of the tiles while a product runs: 0 to 3 hold sums, 4 and 5 rows, 6 and 7 columns.
class TileShapes {
 public:
  TENON_AMX explicit TileShapes(int64_t columns) {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {};
      uint8_t rows[16] = {};
    } shapes;
    for (int i = 0; i < 8; ++i) {
      shapes.row_bytes[i] = static_cast<uint16_t>(i == 4 || i == 5 ? 64 : 4 * columns);
      shapes.rows[i] = kTile;
    }
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  TENON_AMX ~TileShapes() { asm volatile("tilerelease"); }
  TileShapes(const TileShapes&) = delete;
  TileShapes& operator=(const TileShapes&) = delete;
};

#define TENON_LOAD(tile, p, row) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(p), "r"(row) : "memory")
#define TENON_STORE(tile, p, row) \
  asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(p), "r"(row) : "memory")
#define TENON_ZERO(tile) asm volatile("tilezero %%tmm" #tile ::)
#define TENON_ADD(sum, rows, columns) \
  asm volatile("tdpbf16ps %%tmm" #columns ", %%tmm" #rows ", %%tmm" #sum ::)

/// Tiles of an operand. Distances are of bytes.
struct Tiles {
  const void* at;
  ptrdiff_t row;    ///< between rows of a tile
  ptrdiff_t block;  ///< to the next block of k
  ptrdiff_t tile;   ///< to the next 16 rows of the left matrix, or columns of the right one
};

/// Adds blocks of one or two tiles of rows times one or two of columns to totals, [kPair, kPair], from zero
/// on if these are the `first`. `fresh`: the rows are read for the first time, and those after them are asked
/// for.
template <bool kTwoLeft, bool kTwoRight>
TENON_AMX HWY_NOINLINE void add_tiles(int64_t blocks, const Tiles& l, const Tiles& r, float* totals,
                                      bool first, bool fresh) {
  constexpr ptrdiff_t kAhead = 512;
  const ptrdiff_t row = kPair * static_cast<ptrdiff_t>(sizeof(float)), l_row = l.row, r_row = r.row;
  const char* rows = static_cast<const char*>(l.at);
  const char* columns = static_cast<const char*>(r.at);
  float* below = totals + kTile * kPair;
  if (first) {
    TENON_ZERO(0);
    if constexpr (kTwoRight) TENON_ZERO(1);
    if constexpr (kTwoLeft) TENON_ZERO(2);
    if constexpr (kTwoLeft && kTwoRight) TENON_ZERO(3);
  } else {
    TENON_LOAD(0, totals, row);
    if constexpr (kTwoRight) TENON_LOAD(1, totals + kTile, row);
    if constexpr (kTwoLeft) TENON_LOAD(2, below, row);
    if constexpr (kTwoLeft && kTwoRight) TENON_LOAD(3, below + kTile, row);
  }
  for (int64_t b = 0; b < blocks; ++b, rows += l.block, columns += r.block) {
    for (int64_t i = 0; fresh && i < kTile; ++i) {
      __builtin_prefetch(rows + i * l_row + kAhead);
      if constexpr (kTwoLeft) __builtin_prefetch(rows + l.tile + i * l_row + kAhead);
    }
    TENON_LOAD(4, rows, l_row);
    TENON_LOAD(6, columns, r_row);
    TENON_ADD(0, 4, 6);
    if constexpr (kTwoLeft) {
      TENON_LOAD(5, rows + l.tile, l_row);
      TENON_ADD(2, 5, 6);
    }
    if constexpr (kTwoRight) {
      TENON_LOAD(7, columns + r.tile, r_row);
      TENON_ADD(1, 4, 7);
      if constexpr (kTwoLeft) TENON_ADD(3, 5, 7);
    }
  }
  TENON_STORE(0, totals, row);
  if constexpr (kTwoRight) TENON_STORE(1, totals + kTile, row);
  if constexpr (kTwoLeft) TENON_STORE(2, below, row);
  if constexpr (kTwoLeft && kTwoRight) TENON_STORE(3, below + kTile, row);
}

/// 16 pairs of k of contiguous columns, the first `count`, as the rows of a tile.
template <class D>
HWY_INLINE void interleave(D pairs, uint32_t* to, const BFloat16* b, ptrdiff_t b_row, int64_t k,
                           int64_t count) {
  const hn::Rebind<uint16_t, D> half;
  const auto row = [&](int64_t p) HWY_ATTR {
    return p < k ? load_first(half, reinterpret_cast<const uint16_t*>(b + p * b_row),
                              static_cast<size_t>(count))
                 : hn::Zero(half);
  };
  for (int64_t i = 0; i < kTile; ++i) {
    const auto low = hn::PromoteTo(pairs, row(2 * i)), high = hn::PromoteTo(pairs, row(2 * i + 1));
    hn::Store(hn::Or(low, hn::ShiftLeft<16>(high)), pairs, to + i * kTile);
  }
}

/// The same of two whole tiles, that is of lines of memory.
template <class D>
HWY_INLINE void interleave_lines(D pairs, uint32_t* to, uint32_t* to_next, const BFloat16* b,
                                 ptrdiff_t b_row) {
  const hn::Repartition<uint16_t, D> line;
  const hn::Half<decltype(line)> halves;
  constexpr int64_t kAhead = 4 * kTile;  // the lines that are packed after the next ones
  for (int64_t i = 0; i < kTile; ++i, b += 2 * b_row) {
    const auto low = hn::LoadU(line, reinterpret_cast<const uint16_t*>(b));
    const auto high = hn::LoadU(line, reinterpret_cast<const uint16_t*>(b + b_row));
    __builtin_prefetch(b + kAhead);
    __builtin_prefetch(b + kAhead + b_row);
    for (const bool upper : {false, true}) {
      const auto half = [&](auto v)
                            HWY_ATTR { return upper ? hn::UpperHalf(halves, v) : hn::LowerHalf(halves, v); };
      hn::Store(hn::Or(hn::PromoteTo(pairs, half(low)), hn::ShiftLeft<16>(hn::PromoteTo(pairs, half(high)))),
                pairs, (upper ? to_next : to) + i * kTile);
    }
  }
}

/// Two k of one column, zero after the last one.
HWY_INLINE uint32_t pair_at(const BFloat16* b, ptrdiff_t b_row, int64_t p, int64_t k) {
  const uint32_t low = p < k ? b[p * b_row].bits : 0, high = p + 1 < k ? b[(p + 1) * b_row].bits : 0;
  return low | high << 16;
}

/// A tile of `rows` rows of the left matrix with k elements each; what it lacks is zero.
void pack_left(BFloat16* to, const BFloat16* a, ptrdiff_t a_row, ptrdiff_t a_col, int64_t rows, int64_t k) {
  const hn::ScalableTag<uint32_t> pairs;
  auto* words = reinterpret_cast<uint32_t*>(to);
  if (a_col == 1) {
    const hn::Repartition<uint16_t, decltype(pairs)> line;
    for (int64_t i = 0; i < kTile; ++i) {
      const auto* row = reinterpret_cast<const uint16_t*>(a + i * a_row);
      __builtin_prefetch(row + 2 * kTile * a_row, 0, 2);  // of the tiles that come after these two
      hn::Store(i < rows ? load_first(line, row, static_cast<size_t>(k)) : hn::Zero(line), line,
                reinterpret_cast<uint16_t*>(words + i * kTile));
    }
  } else if (a_row == 1) {
    HWY_ALIGN uint32_t turned[kTile * kTile];
    interleave(pairs, turned, a, a_col, k, rows);
    turn_lines(
        pairs, [&](size_t lane) HWY_ATTR { return turned + lane * kTile; },
        [&](int64_t i, auto line) HWY_ATTR { hn::StoreU(line, pairs, words + i * kTile); });
  } else {
    for (int64_t i = 0; i < kTile; ++i) {
      for (int64_t p = 0; p < kTile; ++p)
        words[i * kTile + p] = i < rows ? pair_at(a + i * a_row, a_col, 2 * p, k) : 0;
    }
  }
}

/// A tile of `columns` columns of the right matrix, of `width` pairs a row.
void pack_right(BFloat16* to, int64_t width, const BFloat16* b, ptrdiff_t b_row, ptrdiff_t b_col, int64_t k,
                int64_t columns) {
  const hn::ScalableTag<uint32_t> pairs;
  auto* words = reinterpret_cast<uint32_t*>(to);
  if (b_col == 1 && width == kTile) {
    interleave(pairs, words, b, b_row, k, columns);
  } else if (b_row == 1 && k == kBFloat16Block) {
    const auto last = static_cast<size_t>(columns - 1);
    turn_lines(
        pairs,
        [&](size_t lane) HWY_ATTR {
          return reinterpret_cast<const uint32_t*>(b + static_cast<ptrdiff_t>(std::min(lane, last)) * b_col);
        },
        [&](int64_t i, auto line)
            HWY_ATTR { store_first(line, pairs, words + i * width, static_cast<size_t>(width)); });
  } else {
    for (int64_t i = 0; i < kTile; ++i) {
      for (int64_t j = 0; j < width; ++j)
        words[i * width + j] = j < columns ? pair_at(b + j * b_col, b_row, 2 * i, k) : 0;
    }
  }
}

constexpr int64_t parts(int64_t size, int64_t part) { return (size + part - 1) / part; }

/// The k of `columns` columns of the right matrix that one pass reads, as tiles: all of the first 16 columns,
/// then of the next ones.
void pack_columns_of_pass(char* to, int64_t width, const GemmArgs<BFloat16>& g, const BFloat16* b, int64_t k,
                          int64_t columns) {
  const int64_t blocks = parts(k, kBFloat16Block), tile = width * kTile * 4;
  for (int64_t p = 0; p < k; p += kBFloat16Block, b += kBFloat16Block * g.b_row) {
    const int64_t depth = std::min(kBFloat16Block, k - p);
    for (int64_t j = 0; j < columns;) {
      char* at = to + (j / kTile * blocks + p / kBFloat16Block) * tile;
      if (g.b_col == 1 && depth == kBFloat16Block && columns - j >= kPair) {
        interleave_lines(hn::ScalableTag<uint32_t>(), reinterpret_cast<uint32_t*>(at),
                         reinterpret_cast<uint32_t*>(at + blocks * tile), b + j, g.b_row);
        j += kPair;
      } else {
        pack_right(reinterpret_cast<BFloat16*>(at), width, b + j * g.b_col, g.b_row, g.b_col, depth,
                   std::min(kTile, columns - j));
        j += kTile;
      }
    }
  }
}

/// A product whose right matrix is packed, and the left one, too, unless it is read once and has contiguous
/// k. done(first row, rows, first column, columns, totals) is called for each block of totals, [kPair,
/// kPair].
template <class Done>
void tiled_product(const GemmArgs<BFloat16>& g, const Done& done) {
  // A block of the right matrix, and totals, stay in L2; tiles of the left one in L1. A left matrix that is
  // read once is read in long rows; a right one, in long rows, too, a few of them at a time, its tiles being
  // in L1.
  constexpr int64_t kRows = 128, kKept = int64_t{32} << 20, kBlock = kPair * kPair;
  const bool left_once = g.n <= kPair, in_place = left_once && g.a_col == 1,
             right_once = g.m <= kPair && !left_once;
  const int64_t pass = left_once ? 8192 : right_once ? 64 : 512, passes = parts(g.k, pass);
  const int64_t most_columns = std::min<int64_t>(g.n, right_once ? 2048 : 512),
                most_rows = std::min(g.m, kRows);
  const int64_t width = std::min(g.n, kTile), right_tile = width * kTile * 4;
  const int64_t most_blocks = parts(std::min(g.k, pass), kBFloat16Block);
  const int64_t pass_bytes = parts(right_once ? kPair : most_columns, kTile) * most_blocks * right_tile;
  const bool keeps = passes * pass_bytes <= kKept && g.m > kRows;
  const auto scratch = [](GemmScratch slot, int64_t bytes) {
    return gemm_scratch(slot, static_cast<size_t>(bytes));
  };
  auto* packed_left = static_cast<BFloat16*>(scratch(GemmScratch::PackedA, 2 * most_blocks * kTileBytes));
  auto* packed_right = static_cast<char*>(scratch(GemmScratch::PackedB, (keeps ? passes : 1) * pass_bytes));
  const int64_t row_of_blocks = parts(most_columns, kPair) * kBlock;
  auto* totals =
      static_cast<float*>(scratch(GemmScratch::Totals, parts(most_rows, kPair) * row_of_blocks * 4));
  const TileShapes shapes(width);
  for (int64_t j0 = 0; j0 < g.n; j0 += most_columns) {
    const int64_t columns = std::min(most_columns, g.n - j0);
    for (int64_t i0 = 0; i0 < g.m; i0 += kRows) {
      const int64_t rows = std::min(kRows, g.m - i0);
      for (int64_t p0 = 0; p0 < g.k; p0 += pass) {
        check_stop();
        const bool first = p0 == 0, last = p0 + pass >= g.k;
        const int64_t k = std::min(pass, g.k - p0), blocks = parts(k, kBFloat16Block);
        char* right = packed_right + (keeps ? p0 / pass * pass_bytes : 0);
        const BFloat16* b = g.b + p0 * g.b_row + j0 * g.b_col;
        if (!right_once && (i0 == 0 || !keeps)) pack_columns_of_pass(right, width, g, b, k, columns);
        for (int64_t i = 0; i < rows; i += kPair) {
          const int64_t here = std::min(kPair, rows - i);
          const BFloat16* a = g.a + (i0 + i) * g.a_row + p0 * g.a_col;
          // In place: whole tiles of whole blocks. The others are packed.
          const int64_t read = in_place && here % kTile == 0 ? k / kBFloat16Block : 0;
          for (int64_t p = read; p < blocks; ++p) {
            for (int64_t t = 0; t < here; t += kTile)
              pack_left(packed_left + (t / kTile * blocks + p) * kElements,
                        a + t * g.a_row + p * kBFloat16Block * g.a_col, g.a_row, g.a_col,
                        std::min(kTile, here - t), std::min(kBFloat16Block, k - p * kBFloat16Block));
          }
          const Tiles there{a, g.a_row * 2, 64, kTile * g.a_row * 2};
          const Tiles packed{packed_left + read * kElements, 64, kTileBytes, blocks * kTileBytes};
          float* block = totals + i / kPair * row_of_blocks;
          for (int64_t j = 0; j < columns; j += kPair, block += kBlock) {
            const int64_t wide = std::min(kPair, columns - j);
            const auto add = here > kTile
                                 ? (wide > kTile ? &add_tiles<true, true> : &add_tiles<true, false>)
                                 : (wide > kTile ? &add_tiles<false, true> : &add_tiles<false, false>);
            if (right_once) pack_columns_of_pass(right, width, g, b + j * g.b_col, k, wide);
            Tiles r{right + (right_once ? 0 : j / kTile * blocks * right_tile), width * 4, right_tile,
                    blocks * right_tile};
            if (read > 0) add(read, there, r, block, first, true);
            r.at = static_cast<const char*>(r.at) + read * right_tile;
            if (read < blocks) add(blocks - read, packed, r, block, first && read == 0, false);
            if (last) done(i0 + i, here, j0 + j, wide, block);
          }
        }
      }
    }
  }
}

void product_by_tiles(const GemmArgs<BFloat16>& g, HalfGemmScale scale) {
  const hn::ScalableTag<float> d;
  // Few rows that are read in the order of memory: turning pairs of them would take longer than vectors do.
  if (g.m <= 4 && g.b_col == 1) return half_gemm_kernel<BFloat16>(CpuTarget::Avx3)(g, scale);
  const auto finish = [&](int64_t i, int64_t rows, int64_t j, int64_t columns, const float* totals) {
    finish_bfloat16(d, totals, kPair, rows, columns, g.c + i * g.c_row + j * g.c_col, g.c_row, g.c_col,
                    scale);
  };
  // C^T = B^T A^T where that has contiguous k in its left matrix, and that is the larger one.
  if (g.b_row != 1 || (g.a_col == 1 && g.n < g.m)) return tiled_product(g, finish);
  tiled_product(transposed(g), [&](int64_t j, int64_t columns, int64_t i, int64_t rows, const float* totals) {
    HWY_ALIGN float turned[kPair * kPair];
    for (int64_t x = 0; x < rows; x += kTile) {
      for (int64_t y = 0; y < columns; y += kTile) {
        turn_lines(
            d, [&](size_t lane) HWY_ATTR { return totals + (y + static_cast<int64_t>(lane)) * kPair + x; },
            [&](int64_t q, auto line) HWY_ATTR {
              if (q < rows - x) hn::Store(line, d, turned + (x + q) * kPair + y);
            });
      }
    }
    finish(i, rows, j, columns, turned);
  });
}

}  // namespace

HalfGemmKernel<BFloat16> amx_kernel() { return &product_by_tiles; }
#endif
}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if defined(__linux__) && defined(__x86_64__) && (TENON_CPU_TARGETS & 4)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon::cpu {

#if defined(__linux__) && defined(__x86_64__) && (TENON_CPU_TARGETS & 4)
namespace {

/// Whether the processor has tiles of bfloat16, and the system lets this process use their registers.
bool may_use_tiles() {
  constexpr unsigned kBFloat16Tiles = 1u << 22 | 1u << 24;     // AMX-BF16 and AMX-TILE, leaf 7, EDX
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  return machine_has(CpuTarget::Avx3) && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (d & kBFloat16Tiles) == kBFloat16Tiles &&
         ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

HalfGemmKernel<BFloat16> amx_gemm_kernel() {
  static const HalfGemmKernel<BFloat16> kernel = may_use_tiles() ? N_AVX3::amx_kernel() : nullptr;
  return kernel;
}
#else
HalfGemmKernel<BFloat16> amx_gemm_kernel() { return nullptr; }
#endif

}  // namespace tenon::cpu
#endif
