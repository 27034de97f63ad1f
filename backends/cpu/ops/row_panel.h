// Rows of a tensor along one dimension as contiguous memory, whatever its strides. Used by sort and by what
// looks for elements by their order.
#pragma once

#include <algorithm>
#include <limits>

#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/ops/strided.h"

namespace tenon::cpu {

/// Rows that are side by side are read and written together: as many as a line of the cache has elements, but
/// not more than this many elements.
inline constexpr int64_t kPanelRows = 16, kPanelElements = 1 << 18;

/// The rows of a tensor along one dimension, in logical order of the others.
class Rows {
 public:
  Rows(const Tensor& t, int64_t dim)
      : base_(static_cast<char*>(t.data_ptr())), item_(static_cast<int64_t>(t.itemsize())) {
    Dims mask(t.sizes().size(), 0);
    if (!mask.empty()) {
      const auto d = static_cast<size_t>(dim);
      mask[d] = 1;
      length_ = t.sizes()[d];
      step_ = t.strides()[d] * item_;
    }
    kept_ = dims_where(t, mask, false);
  }

  int64_t count() const noexcept { return kept_.numel(); }
  int64_t length() const noexcept { return length_; }
  /// Bytes from an element of a row to the next.
  int64_t step() const noexcept { return step_; }
  int64_t bytes() const noexcept { return length_ * item_; }
  /// Whether the elements of a row are contiguous.
  bool dense() const noexcept { return length_ <= 1 || step_ == item_; }
  char* row(int64_t i) const noexcept { return base_ + kept_.offset(i); }
  /// The row after the last one that can be moved together with row `i`.
  int64_t panel_end(int64_t i) const noexcept {
    return side_by_side() ? (i / kept_.sizes.back() + 1) * kept_.sizes.back()
                          : std::numeric_limits<int64_t>::max();
  }

  /// Copies rows [i, i + n) to contiguous rows at `to`.
  void read(int64_t i, int64_t n, char* to) const {
    const RowKernels& kernels = row_kernels();
    const size_t size = element_size_index(item_);
    if (side_by_side()) {
      kernels.transpose[size](to, bytes(), row(i), step_, static_cast<size_t>(length_),
                              static_cast<size_t>(n));
      return;
    }
    for (; n > 0; --n, ++i, to += bytes())
      kernels.pack[size](to, row(i), step_, static_cast<size_t>(length_));
  }
  /// Copies contiguous rows at `from` to rows [i, i + n).
  void write(int64_t i, int64_t n, const char* from) const {
    const RowKernels& kernels = row_kernels();
    const size_t size = element_size_index(item_);
    if (side_by_side()) {
      kernels.transpose[size](row(i), step_, from, bytes(), static_cast<size_t>(n),
                              static_cast<size_t>(length_));
      return;
    }
    for (; n > 0; --n, ++i, from += bytes())
      kernels.unpack[size](row(i), from, step_, static_cast<size_t>(length_));
  }

 private:
  bool side_by_side() const noexcept {
    return !dense() && !kept_.sizes.empty() && kept_.strides.back() == item_;
  }

  char* base_;
  int64_t item_, length_ = 1, step_ = 0;
  StridedDims kept_;
};

/// The rows that are at work, and memory for them where they are not dense.
class Panel {
 public:
  Panel(const Rows& rows, int64_t size) : rows_(rows) {
    if (!rows.dense()) buffer_ = make_empty({size * rows.bytes()}, DType::UInt8);
  }
  void read(int64_t i, int64_t n) const {
    if (buffer_.defined()) rows_.read(i, n, buffer());
  }
  void write(int64_t i, int64_t n) const {
    if (buffer_.defined()) rows_.write(i, n, buffer());
  }
  /// Row i + k, where row i is the first of the panel.
  char* row(int64_t i, int64_t k) const {
    return buffer_.defined() ? buffer() + k * rows_.bytes() : rows_.row(i + k);
  }

 private:
  char* buffer() const { return static_cast<char*>(buffer_.data_ptr()); }

  const Rows& rows_;
  Tensor buffer_;
};

/// The most rows of `length` elements in a panel.
inline int64_t panel_rows(int64_t length) {
  return std::clamp<int64_t>(kPanelElements / length, 1, kPanelRows);
}

}  // namespace tenon::cpu
