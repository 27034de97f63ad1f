// sort and topk: the rows of tensors to backends/cpu/sort.
#include <algorithm>
#include <limits>

#include "backends/cpu/copy/row_kernels.h"
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/report.h"
#include "backends/cpu/sort/row_sorter.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/sort/kernels.h"

namespace tenon::cpu {
namespace {

/// Elements of the rows that one thread sorts at least.
constexpr int64_t kGrain = 1 << 13;
/// Rows that are side by side are read and written together: as many as a line of the cache has elements, but
/// not more than this many elements.
constexpr int64_t kPanelRows = 16, kPanelElements = 1 << 18;

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

void sort_rows(const Tensor& self, int64_t dim, bool descending, Tensor& values, Tensor& indices,
               const char* op) {
  tenon::report_kernel(op, "sort");
  const Rows from(self, dim), to_values(values, dim), to_indices(indices, dim);
  const int64_t length = from.length(), count = to_values.length();
  if (values.numel() == 0) return;
  const int64_t panel = std::clamp<int64_t>(kPanelElements / length, 1, kPanelRows);
  parallel_for(0, from.count(), std::max<int64_t>(kGrain / length, 1), [&](int64_t begin, int64_t end) {
    RowSorter sorter(self.dtype(), length, count, descending);
    const Panel in(from, panel), out(to_values, panel), positions(to_indices, panel);
    for (int64_t i = begin, n = 0; i < end; i += n) {
      n = std::min(
          {panel, end - i, from.panel_end(i) - i, to_values.panel_end(i) - i, to_indices.panel_end(i) - i});
      in.read(i, n);
      for (int64_t k = 0; k < n; ++k)
        sorter.sort(in.row(i, k), out.row(i, k), reinterpret_cast<int64_t*>(positions.row(i, k)));
      out.write(i, n);
      positions.write(i, n);
    }
  });
}

}  // namespace

void sort(const Tensor& self, int64_t dim, bool descending, Tensor& out0, Tensor& out1) {
  sort_rows(self, wrap_dim(dim, self.dim(), "sort"), descending, out0, out1, "sort");
}
void sort_stable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending, Tensor& out0,
                 Tensor& out1) {
  sort_rows(self, wrap_dim(dim, self.dim(), "sort"), descending, out0, out1, "sort");
}
void topk(const Tensor& self, int64_t, int64_t dim, bool largest, bool, Tensor& out0, Tensor& out1) {
  sort_rows(self, wrap_dim(dim, self.dim(), "topk"), largest, out0, out1, "topk");
}

}  // namespace tenon::cpu
