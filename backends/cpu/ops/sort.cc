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

/// Sorts each row of `from` to one of each of `to`: each thread makes a function of rows, sort(in, out...).
template <class Make, class... Results>
void sort_panels(const Rows& from, const Make& make, const Results&... to) {
  const int64_t length = from.length(), panel = panel_rows(length);
  parallel_for(0, from.count(), std::max<int64_t>(kGrain / length, 1), [&](int64_t begin, int64_t end) {
    auto sort = make();
    const Panel in(from, panel);
    const auto run = [&](const auto&... out) {
      for (int64_t i = begin, n = 0; i < end; i += n) {
        n = std::min({panel, end - i, from.panel_end(i) - i, (to.panel_end(i) - i)...});
        in.read(i, n);
        for (int64_t k = 0; k < n; ++k) sort(in.row(i, k), out.row(i, k)...);
        (out.write(i, n), ...);
      }
    };
    run(Panel(to, panel)...);
  });
}

void sort_rows(const Tensor& self, int64_t dim, bool descending, Tensor& values, Tensor& indices,
               const char* op) {
  tenon::report_kernel(op, "sort");
  if (values.numel() == 0) return;
  const Rows from(self, dim), to_values(values, dim), to_indices(indices, dim);
  const auto make = [&] {
    return [sorter = RowSorter(self.dtype(), from.length(), to_values.length(), descending)](
               auto* row, auto* out, auto* positions) mutable {
      sorter.sort(row, out, reinterpret_cast<int64_t*>(positions));
    };
  };
  sort_panels(from, make, to_values, to_indices);
}

/// Rows to rows of the same length, by their values alone.
void sort_values_of_rows(const Tensor& self, int64_t dim, bool descending, Tensor& values) {
  const Rows from(self, dim), to(values, dim);
  const auto make = [&] {
    return [sorter = ValueSorter(self.dtype(), from.length(), descending)](auto* row, auto* out) mutable {
      sorter.sort(row, out);
    };
  };
  sort_panels(from, make, to);
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
