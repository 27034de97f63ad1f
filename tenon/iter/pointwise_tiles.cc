// The loop of a pointwise operator over any operands: blocks that a kernel can read are passed as they are,
// all others are converted into tiles that stay in the first-level cache.
#include <fmt/core.h>

#include "backends/cpu/copy/convert.h"
#include "tenon/iter/pointwise_state.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon::detail {
namespace {

constexpr int kMaxCount = 1 + PointwiseInfo::kMaxTensors;
constexpr int64_t kTileBytes = 4096;

class TileLoop {
 public:
  TileLoop(const TensorIterator& iter, const BlockKernel& kernel, expr::ComputeType type, DType result,
           const void* scalars)
      : kernel_(kernel),
        scalars_(scalars),
        count_(iter.ntensors()),
        item_(static_cast<int64_t>(expr::item_size(type))),
        tile_(kTileBytes / item_) {
    const DType compute = expr::dtype(type);
    for (int i = 0; i < count_; ++i) {
      const DType own = iter.dtype(i);
      same_[i] = own == compute;
      convert_[i] = i == 0 ? cpu::convert_fn(compute, own) : cpu::convert_fn(own, compute);
      TENON_CHECK(
          convert_[i], NotImplemented,
          fmt::format("{}: no conversion between {} and {}", iter.op_name(), name(own), name(compute)));
    }
    // An `out` of a wider dtype gets what the result's own dtype makes of a value: wrapped, rounded.
    if (result != compute && result != iter.dtype(0)) {
      narrow_ = cpu::convert_fn(compute, result);
      narrow_item_ = static_cast<int64_t>(tenon::item_size(result));
      same_[0] = false;
      widen_ = cpu::convert_fn(result, compute);
    }
  }

  void run(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    bool direct = true;
    for (int i = 0; i < count_; ++i) direct &= dense(i, strides, n0);
    // Short rows go through tiles together, unless a kernel can run each in place and has enough to do.
    const int64_t enough = kernel_.compiled ? 64 : 256;
    if (n1 == 1 || n0 > tile_ / 2 || (direct && n0 >= enough))
      long_rows(ptrs, strides, n0, n1, direct);
    else
      short_rows(ptrs, strides, n0, n1);
  }

 private:
  bool dense(int i, const int64_t* strides, int64_t n0) const {
    return same_[i] && (strides[i] == item_ || n0 == 1);
  }

  // One row after another, in pieces of a tile where some operand needs one.
  void long_rows(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1, bool direct) const {
    if (direct) return direct_rows(ptrs, strides, n0, n1);
    alignas(64) char tiles[kMaxCount][kTileBytes];
    void* at[kMaxCount];
    for (int64_t j = 0; j < n1; ++j) {
      for (int64_t begin = 0; begin < n0; begin += tile_) {
        const int64_t n = std::min(tile_, n0 - begin);
        for (int i = 0; i < count_; ++i) {
          char* p = ptrs[i] + j * strides[count_ + i] + begin * strides[i];
          if (dense(i, strides, n0)) {
            at[i] = p;
            continue;
          }
          at[i] = tiles[i];
          if (i == 0) continue;
          // One element for the whole row fills its tile once: at the first piece, which is the longest.
          const bool filled = strides[i] == 0 && (begin > 0 || (j > 0 && strides[count_ + i] == 0));
          if (!filled) convert_[i](tiles[i], {item_, 0}, p, {strides[i], 0}, n, 1);
        }
        kernel_(at, static_cast<size_t>(n), scalars_);
        if (at[0] == tiles[0]) {
          store(ptrs[0] + j * strides[count_] + begin * strides[0], {strides[0], 0}, tiles[0], n, 1);
        }
      }
    }
  }

  void direct_rows(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    void* at[kMaxCount];
    for (int64_t j = 0; j < n1; ++j) {
      for (int i = 0; i < count_; ++i) at[i] = ptrs[i] + j * strides[count_ + i];
      kernel_(at, static_cast<size_t>(n0), scalars_);
    }
  }

  // As many rows at once as fill a tile.
  void short_rows(char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) const {
    alignas(64) char tiles[kMaxCount][kTileBytes];
    void* at[kMaxCount];
    const int64_t rows = std::min(tile_ / n0, n1), row = n0 * item_;
    const cpu::BlockStrides packed{item_, row};
    bool linear[kMaxCount];
    for (int i = 0; i < count_; ++i) {
      linear[i] = same_[i] && strides[i] == item_ && strides[count_ + i] == row;
      if (!linear[i]) at[i] = tiles[i];
      // The same row every time: once for all.
      if (i > 0 && !linear[i] && strides[count_ + i] == 0) {
        convert_[i](tiles[i], packed, ptrs[i], {strides[i], 0}, n0, rows);
      }
    }
    for (int64_t j = 0; j < n1; j += rows) {
      const int64_t m = std::min(rows, n1 - j);
      for (int i = 0; i < count_; ++i) {
        char* p = ptrs[i] + j * strides[count_ + i];
        if (linear[i]) {
          at[i] = p;
        } else if (i > 0 && strides[count_ + i] != 0) {
          convert_[i](tiles[i], packed, p, {strides[i], strides[count_ + i]}, n0, m);
        }
      }
      kernel_(at, static_cast<size_t>(m * n0), scalars_);
      if (!linear[0]) store(ptrs[0] + j * strides[count_], {strides[0], strides[count_]}, tiles[0], n0, m);
    }
  }

  // Rows of the output's tile, which lie one behind the other, to where they belong.
  void store(char* out, cpu::BlockStrides strides, char* tile, int64_t n0, int64_t n1) const {
    if (narrow_) {
      alignas(64) char narrow[kTileBytes];
      narrow_(narrow, {narrow_item_, 0}, tile, {item_, 0}, n0 * n1, 1);
      widen_(tile, {item_, 0}, narrow, {narrow_item_, 0}, n0 * n1, 1);
    }
    convert_[0](out, strides, tile, {item_, n0 * item_}, n0, n1);
  }

  BlockKernel kernel_;
  const void* scalars_;
  cpu::ConvertFn narrow_ = nullptr, widen_ = nullptr;
  int64_t narrow_item_ = 0;
  int count_;
  int64_t item_;
  int64_t tile_;
  bool same_[kMaxCount];
  cpu::ConvertFn convert_[kMaxCount];
};

}  // namespace

void run_tiles(const TensorIterator& iter, const BlockKernel& kernel, expr::ComputeType type, DType result,
               const void* scalars) {
  const TileLoop loop(iter, kernel, type, result, scalars);
  iter.for_each_2d([&](char* const* ptrs, const int64_t* strides, int64_t n0, int64_t n1) {
    loop.run(ptrs, strides, n0, n1);
  });
}

}  // namespace tenon::detail
