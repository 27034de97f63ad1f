// sort and topk: the rows of tensors to backends/cpu/sort.
#include <algorithm>

#include "backends/cpu/ops/row_panel.h"
#include "backends/cpu/report.h"
#include "backends/cpu/sort/row_sorter.h"
#include "backends/cpu/sort/value_sorter.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/sort/kernels.h"

namespace tenon::cpu {
namespace {

/// Elements of the rows that one thread sorts at least.
constexpr int64_t kGrain = 1 << 13;

void sort_rows(const Tensor& self, int64_t dim, bool descending, Tensor& values, Tensor& indices,
               const char* op) {
  tenon::report_kernel(op, "sort");
  const Rows from(self, dim), to_values(values, dim), to_indices(indices, dim);
  const int64_t length = from.length(), count = to_values.length();
  if (values.numel() == 0) return;
  const int64_t panel = panel_rows(length);
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

/// Rows to rows of the same length, by their values alone.
void sort_values_of_rows(const Tensor& self, int64_t dim, bool descending, Tensor& values) {
  const Rows from(self, dim), to(values, dim);
  const int64_t length = from.length(), panel = panel_rows(length);
  parallel_for(0, from.count(), std::max<int64_t>(kGrain / length, 1), [&](int64_t begin, int64_t end) {
    ValueSorter sorter(self.dtype(), length, descending);
    const Panel in(from, panel), out(to, panel);
    for (int64_t i = begin, n = 0; i < end; i += n) {
      n = std::min({panel, end - i, from.panel_end(i) - i, to.panel_end(i) - i});
      in.read(i, n);
      for (int64_t k = 0; k < n; ++k) sorter.sort(in.row(i, k), out.row(i, k));
      out.write(i, n);
    }
  });
}

}  // namespace

void _sort_values(const Tensor& self, int64_t dim, bool descending, Tensor& out) {
  tenon::report_kernel("_sort_values", "sort");
  if (out.numel() > 0) sort_values_of_rows(self, wrap_dim(dim, self.dim(), "sort"), descending, out);
}
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
