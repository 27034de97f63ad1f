// The loop of a pointwise operator over any operands: blocks that a kernel can read are passed as they are,
// all others are converted into tiles that stay in the first-level cache.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "tenon/iter/host.h"
#include "tenon/iter/pointwise_call.h"
#include "tenon/iter/pointwise_state.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::detail {
namespace {

// A complex operand counts twice.
constexpr int kMaxOutputs = 2 * PointwiseInfo::kMaxOutputs;
constexpr int kMaxCount = kMaxOutputs + 2 * PointwiseInfo::kMaxTensors;
// Of one tile at most and at least; and of all of them together, so that they stay in the first-level cache
// with the memory that is read and written. They are adjacent: a power of two apart, they would share cache
// sets.
constexpr int64_t kTileBytes = 4096, kLeastTileBytes = 1024, kTilesBytes = 8192;
// Of inputs whose rows are columns in memory: how many there may be, and elements of a row at a time.
constexpr int kMaxTurned = 2;
constexpr int64_t kTurnedElements = 256, kLineBytes = 64;
constexpr int64_t kAllTilesBytes = std::max(kTilesBytes, kLeastTileBytes* kMaxCount);

class TileLoop {
 public:
  TileLoop(const TensorIterator& iter, const HostKernel& kernel, DType compute,
           std::span<const DType> results, const void* scalars, const HostKernel* of_parts)
      : kernel_(kernel),
        of_parts_(of_parts),
        scalars_(scalars),
        operands_(iter.ntensors()),
        item_(static_cast<int64_t>(item_size(compute))) {
    const auto add = [&](int operand, DType own, int64_t offset) {
      const int i = count_++;
      const bool writes = operand < iter.noutputs();
      from_[i] = operand;
      offset_[i] = offset;
      // Kernels that take bytes store truth as a byte, too.
      same_[i] = own == compute || (writes && own == DType::Bool && item_ == 1);
      convert_[i] = writes ? kHost.convert(compute, own) : kHost.convert(own, compute);
      TENON_CHECK(
          convert_[i], NotImplemented,
          fmt::format("{}: no conversion between {} and {}", iter.op_name(), name(own), name(compute)));
    };
    for (int i = 0; i < operands_; ++i) {
      const DType own = iter.dtype(i);
      // Interleaved parts are two operands with the stride of both. A real result fills both itself.
      const bool output = i < iter.noutputs();
      if (is_complex(own) && !is_complex(compute) &&
          (!output || is_complex(results[static_cast<size_t>(i)]))) {
        add(i, real_dtype(own), 0);
        add(i, real_dtype(own), static_cast<int64_t>(tenon::item_size(real_dtype(own))));
      } else {
        add(i, own, 0);
      }
      if (output) outputs_ = count_;
      if (own != results[0]) of_parts_ = nullptr;
    }
    // Divisions of 64 bits would be a good part of a small call.
    const int64_t bytes =
        static_cast<int64_t>(static_cast<uint32_t>(kTilesBytes) / static_cast<uint32_t>(count_));
    tile_ = std::clamp(bytes / 64 * 64, kLeastTileBytes, kTileBytes) >>
            std::countr_zero(static_cast<uint64_t>(item_));
    for (int i = 0; i + 1 < count_; ++i) pair_[i] = from_[i] == from_[i + 1] && same_[i];
    // An `out` of a wider dtype gets what the result's own dtype makes of a value: wrapped, rounded.
    for (int i = 0; i < outputs_; ++i) {
      const DType result = real_dtype(results[static_cast<size_t>(from_[i])]);
      if (result == real_dtype(compute) || result == real_dtype(iter.dtype(from_[i]))) continue;
      rounds_[i] = {kHost.convert(compute, result), kHost.convert(result, compute),
                    static_cast<int64_t>(tenon::item_size(result))};
      rounded_ |= 1u << i;
      same_[i] = pair_[i] = false;
    }
  }

  void run(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    if (count_ == operands_) return run_parts(ptrs, strides, n0, n1);
    if (of_parts_ && std::all_of(strides, strides + operands_, [&](int64_t s) { return s == 2 * item_; }))
      return run_pairs(ptrs, strides, n0, n1);
    char* part_ptrs[kMaxCount];
    int64_t part_strides[2 * kMaxCount];
    for (int i = 0; i < count_; ++i) {
      part_ptrs[i] = ptrs[from_[i]] + offset_[i];
      part_strides[i] = strides[from_[i]];
      part_strides[count_ + i] = strides[operands_ + from_[i]];
    }
    run_parts(part_ptrs, part_strides, n0, n1);
  }

 private:
  void run_parts(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    bool direct = true, apart = false;
    for (int i = 0; i < count_; ++i) {
      direct &= dense(i, strides, n0) || repeats(i, strides);
      apart |= strides[i] != 0 && strides[count_ + i] != 0 && strides[count_ + i] != n0 * item_;
    }
    // Short rows go through tiles together, unless a kernel can run each in place and has enough to do. That
    // is less where tiles mean copies of rows than where they are filled with one element or once for all.
    const int64_t enough = kernel_.compiled && apart ? 64 : 256;
    if (n1 == 1 || n0 > tile_ / 2 || (direct && n0 >= enough))
      long_rows(ptrs, strides, n0, n1, direct);
    else
      short_rows(ptrs, strides, n0, n1);
  }

  // Dense complex rows as real ones of twice the length.
  void run_pairs(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    void* at[kMaxCount];
    for (int64_t j = 0; j < n1; ++j) {
      for (int i = 0; i < operands_; ++i) at[i] = ptrs[i] + j * strides[operands_ + i];
      (*of_parts_)(at, static_cast<size_t>(2 * n0), scalars_);
    }
  }

  bool dense(int i, const int64_t* strides, int64_t n0) const {
    return same_[i] && (strides[i] == item_ || n0 == 1);
  }

  // Whether an input is one element in each row, and the kernel takes it as that: one of several.
  bool repeats(int i, const int64_t* strides) const {
    return kernel_.compiled && i >= outputs_ && strides[i] == 0 && count_ - outputs_ > 1;
  }

  // Blocks full of the inputs that are one element in each row.
  class Repeated {
   public:
    Repeated(const TileLoop& loop, const int64_t* strides, int64_t n0, int64_t n1)
        : loop_(loop), strides_(strides), rows_(n1) {
      for (int i = 0; i < loop.count_; ++i) {
        if (loop.repeats(i, strides) && !loop.dense(i, strides, n0)) mask_ |= 1u << i;
      }
    }
    uint32_t mask() const { return mask_; }
    bool has(int i) const { return (mask_ >> i & 1u) != 0; }
    // That of operand i in row j; from a `first` row on they come in order. A block is filled one row ahead:
    // a kernel that reads with one load what several stores have just left would wait for them.
    void* block(int i, const char* p, int64_t j, bool first) {
      const int64_t stride = strides_[loop_.count_ + i];
      const auto block_of = [&](int64_t row) { return blocks_[stride == 0 ? 0 : row % 2][i]; };
      if (first) fill(i, block_of(j), p + j * stride);
      if (stride != 0 && j + 1 < rows_) fill(i, block_of(j + 1), p + (j + 1) * stride);
      return block_of(j);
    }

   private:
    void fill(int i, char* block, const char* p) const {
      if (loop_.same_[i] && loop_.item_ == 4)
        fill_repeated<uint32_t>(block, p);
      else if (loop_.same_[i] && loop_.item_ == 8)
        fill_repeated<uint64_t>(block, p);
      else
        loop_.convert_[i](block, {loop_.item_, 0}, p, {},
                          static_cast<int64_t>(HostKernel::kRepeatedBytes) / loop_.item_, 1);
    }

    const TileLoop& loop_;
    const int64_t* strides_;
    const int64_t rows_;
    uint32_t mask_ = 0;
    alignas(64) char blocks_[2][kMaxCount][HostKernel::kRepeatedBytes];
  };

  // One row after another, in pieces of a tile where some operand needs one.
  void long_rows(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1, bool direct) const {
    if (direct) return direct_rows(ptrs, strides, n0, n1);
    if (turns(strides, n0, n1)) return turned_rows(ptrs, strides, n0, n1);
    alignas(64) char memory[kAllTilesBytes];
    char* tiles[kMaxCount];
    for (int i = 0; i < count_; ++i) tiles[i] = memory + i * tile_ * item_;
    Repeated repeated(*this, strides, n0, n1);
    void* at[kMaxCount];
    for (int64_t j = 0; j < n1; ++j) {
      for (int64_t begin = 0; begin < n0; begin += tile_) {
        const int64_t n = std::min(tile_, n0 - begin);
        for (int i = 0; i < count_; ++i) {
          if (repeated.has(i)) {
            if (begin == 0) at[i] = repeated.block(i, ptrs[i], j, j == 0);
            continue;
          }
          char* p = ptrs[i] + j * strides[count_ + i] + begin * strides[i];
          if (dense(i, strides, n0)) {
            at[i] = p;
            continue;
          }
          at[i] = tiles[i];
          if (i < outputs_) continue;
          if (pair_[i] && strides[i] == 2 * item_) {
            at[i + 1] = tiles[i + 1];
            kHost.split_pairs(tiles[i], tiles[i + 1], p, static_cast<size_t>(n), static_cast<size_t>(item_));
            ++i;
            continue;
          }
          // One element for the whole row fills its tile once: at the first piece, which is the longest.
          const bool filled = strides[i] == 0 && (begin > 0 || (j > 0 && strides[count_ + i] == 0));
          if (!filled) convert_[i](tiles[i], {item_, 0}, p, {strides[i], 0}, n, 1);
        }
        kernel_(at, static_cast<size_t>(n), scalars_, repeated.mask());
        for (int i = 0; i < outputs_; ++i) {
          if (at[i] != tiles[i]) continue;
          if (pair_[i] && strides[i] == 2 * item_) {
            kHost.join_pairs(ptrs[i] + j * strides[count_ + i] + begin * strides[i], tiles[i], tiles[i + 1],
                             static_cast<size_t>(n), static_cast<size_t>(item_));
            ++i;
            continue;
          }
          store(i, ptrs[i] + j * strides[count_ + i] + begin * strides[i], {strides[i], 0}, tiles[i], n, 1);
        }
      }
    }
  }

  void direct_rows(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    Repeated repeated(*this, strides, n0, n1);
    void* at[kMaxCount];
    for (int64_t j = 0; j < n1; ++j) {
      for (int i = 0; i < count_; ++i)
        at[i] = repeated.has(i) ? repeated.block(i, ptrs[i], j, j == 0) : ptrs[i] + j * strides[count_ + i];
      kernel_(at, static_cast<size_t>(n0), scalars_, repeated.mask());
    }
  }

  // Whether an input's rows are columns in memory: walked one by one, each row would read all of its lines.
  bool turned(int i, const int64_t* strides) const {
    return i >= outputs_ && same_[i] && strides[i] != item_ && strides[count_ + i] == item_;
  }
  bool turns(const int64_t* strides, int64_t n0, int64_t n1) const {
    int count = 0;
    for (int i = 0; i < count_; ++i) {
      const bool turns = turned(i, strides) && !repeats(i, strides);
      if (!turns && !dense(i, strides, n0) && !repeats(i, strides)) return false;
      count += turns;
    }
    return count > 0 && count <= kMaxTurned && n1 * item_ >= kLineBytes;
  }

  // Rows that a line of the cache holds together, turned in pieces that stay in the cache.
  void turned_rows(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    const int64_t panel = kLineBytes / item_;
    alignas(64) char memory[kMaxTurned][kLineBytes * kTurnedElements];
    Repeated repeated(*this, strides, n0, n1);
    void* at[kMaxCount];
    for (int64_t j = 0; j < n1; j += panel) {
      const int64_t rows = std::min(panel, n1 - j);
      for (int64_t begin = 0; begin < n0; begin += kTurnedElements) {
        const int64_t n = std::min(kTurnedElements, n0 - begin), row = n * item_;
        char* next = memory[0];
        char* turned_to[kMaxCount] = {};
        for (int i = 0; i < count_; ++i) {
          if (!turned(i, strides) || repeated.has(i)) continue;
          turned_to[i] = std::exchange(next, next + sizeof memory[0]);
          kHost.transpose(turned_to[i], row, ptrs[i] + j * item_ + begin * strides[i], strides[i],
                          static_cast<size_t>(n), static_cast<size_t>(rows), static_cast<size_t>(item_));
        }
        for (int64_t k = 0; k < rows; ++k) {
          for (int i = 0; i < count_; ++i) {
            at[i] = turned_to[i]      ? turned_to[i] + k * row
                    : repeated.has(i) ? repeated.block(i, ptrs[i], j + k, k == 0)
                                      : ptrs[i] + (j + k) * strides[count_ + i] + begin * item_;
          }
          kernel_(at, static_cast<size_t>(n), scalars_, repeated.mask());
        }
      }
    }
  }

  // As many rows at once as fill a tile.
  void short_rows(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    alignas(64) char memory[kAllTilesBytes];
    char* tiles[kMaxCount];
    for (int i = 0; i < count_; ++i) tiles[i] = memory + i * tile_ * item_;
    void* at[kMaxCount];
    const int64_t rows = std::min(tile_ / n0, n1), row = n0 * item_;
    const BlockStrides packed{item_, row};
    bool linear[kMaxCount];
    for (int i = 0; i < count_; ++i) {
      linear[i] = same_[i] && strides[i] == item_ && strides[count_ + i] == row;
      if (!linear[i]) at[i] = tiles[i];
      // The same row every time: once for all.
      if (i >= outputs_ && !linear[i] && strides[count_ + i] == 0) {
        convert_[i](tiles[i], packed, ptrs[i], {strides[i], 0}, n0, rows);
      }
    }
    for (int64_t j = 0; j < n1; j += rows) {
      const int64_t m = std::min(rows, n1 - j);
      for (int i = 0; i < count_; ++i) {
        char* p = ptrs[i] + j * strides[count_ + i];
        if (linear[i]) {
          at[i] = p;
        } else if (i >= outputs_ && strides[count_ + i] != 0) {
          convert_[i](tiles[i], packed, p, {strides[i], strides[count_ + i]}, n0, m);
        }
      }
      kernel_(at, static_cast<size_t>(m * n0), scalars_);
      for (int i = 0; i < outputs_; ++i) {
        if (linear[i]) continue;
        store(i, ptrs[i] + j * strides[count_ + i], {strides[i], strides[count_ + i]}, tiles[i], n0, m);
      }
    }
  }

  // Copies the consecutive rows of an output's tile to their places.
  void store(int i, char* out, BlockStrides strides, char* tile, int64_t n0, int64_t n1) const {
    if ((rounded_ >> i & 1u) != 0) {
      const Rounding& r = rounds_[i];
      alignas(64) char narrow[kTileBytes];
      r.narrow(narrow, {r.item, 0}, tile, {item_, 0}, n0 * n1, 1);
      r.widen(tile, {item_, 0}, narrow, {r.item, 0}, n0 * n1, 1);
    }
    convert_[i](out, strides, tile, {item_, n0 * item_}, n0, n1);
  }

  const HostKernel& kernel_;
  const HostKernel* of_parts_;
  const void* scalars_;
  int operands_;     // of the iterator
  int count_ = 0;    // of the kernel
  int outputs_ = 0;  // of the kernel
  int64_t item_;
  int64_t tile_ = 0;           // elements
  int from_[kMaxCount];        // which operand of the iterator
  int64_t offset_[kMaxCount];  // in bytes within its element
  bool same_[kMaxCount];
  bool pair_[kMaxCount] = {};  // the first of two parts that need no conversion
  ConvertFn convert_[kMaxCount];
  struct Rounding {
    ConvertFn narrow, widen;
    int64_t item;
  };
  uint32_t rounded_ = 0;  // bit i: output i has
  Rounding rounds_[kMaxOutputs];
};

}  // namespace

void run_tiles(const TensorIterator& iter, const HostKernel& kernel, DType taken,
               std::span<const DType> results, const void* scalars, const HostKernel* of_parts) {
  const TileLoop loop(iter, kernel, taken, results, scalars, of_parts);
  iter.for_each_2d([&](char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) {
    loop.run(ptrs, strides, n0, n1);
  });
}

}  // namespace tenon::detail
