// kthvalue, median, nanmedian, mode, cummax, cummin, and the order of a matrix's rows: what is found by the
// order of elements in rows.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "backends/cpu/ops/row_panel.h"
#include "backends/cpu/sort/order.h"
#include "backends/cpu/sort/row_ranks.h"
#include "backends/cpu/sort/row_sorter.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/statistics/kernels.h"

namespace tenon::cpu {
namespace {

/// Elements of the rows that one thread looks at, at least.
constexpr int64_t kGrain = 1 << 13;

/// One element of each row, and its position: `find(worker, row)` gives it; `make()` makes a thread's worker.
template <class Make, class Find>
void choose(const Tensor& self, int64_t dim, Tensor& values, Tensor& indices, const char* op, Make&& make,
            Find&& find) {
  report_kernel(op, "sort");
  const Rows rows(self, wrap_dim(dim, self.dim(), op));
  if (values.numel() == 0) return;
  const StridedDims to_values = dims_of(values), to_indices = dims_of(indices);
  auto* const out = static_cast<char*>(values.data_ptr());
  auto* const places = static_cast<char*>(indices.data_ptr());
  const auto item = static_cast<size_t>(self.itemsize());
  const int64_t length = rows.length(), panel = panel_rows(length);
  parallel_for(0, rows.count(), std::max<int64_t>(kGrain / length, 1), [&](int64_t begin, int64_t end) {
    auto worker = make(length);
    const Panel in(rows, panel);
    for (int64_t i = begin, n = 0; i < end; i += n) {
      n = std::min({panel, end - i, rows.panel_end(i) - i});
      in.read(i, n);
      for (int64_t k = 0; k < n; ++k) {
        const char* const row = in.row(i, k);
        const int64_t place = find(worker, row);
        std::memcpy(out + to_values.offset(i + k), row + static_cast<size_t>(place) * item, item);
        std::memcpy(places + to_indices.offset(i + k), &place, sizeof(place));
      }
    }
  });
}

template <class Find>
void choose_by_rank(const Tensor& self, int64_t dim, Tensor& values, Tensor& indices, const char* op,
                    Find&& find) {
  choose(
      self, dim, values, indices, op, [&](int64_t length) { return RowRanks(self.dtype(), length); }, find);
}

/// What mode needs for a row.
struct SortedRow {
  RowSorter sorter;
  std::vector<int64_t> positions;
  Tensor values;
  SortedRow(DType dtype, int64_t length)
      : sorter(dtype, length, length, false),
        positions(static_cast<size_t>(length)),
        values(make_empty({length}, dtype)) {}
};

/// The position of the last element of the longest run of equal ones, of several the first.
template <class Order>
int64_t end_of_longest_run(SortedRow& sorted, const char* row) {
  sorted.sorter.sort(row, sorted.values.data_ptr(), sorted.positions.data());
  const auto* bits = static_cast<const typename Order::Bits*>(sorted.values.data_ptr());
  size_t longest = 0, found = 0;
  for (size_t i = 0, end = 0; i < sorted.positions.size(); i = end) {
    for (end = i + 1; end < sorted.positions.size() && Order::key(bits[end]) == Order::key(bits[i]);) ++end;
    if (end - i > longest) {
      longest = end - i;
      found = end - 1;
    }
  }
  return sorted.positions[found];
}

/// The extreme element so far, and where it was last. A NaN is more extreme than every number.
template <class Order, bool kMax>
void run_extremum(const char* from, int64_t step, int64_t n, char* values, int64_t values_step, char* places,
                  int64_t places_step) {
  using Bits = typename Order::Bits;
  const auto rank = [](Bits bits) -> int64_t {
    const int64_t key = Order::key(bits);
    if (kMax) return key;
    return Order::kFloating && key == std::numeric_limits<Bits>::max() ? std::numeric_limits<int64_t>::max()
                                                                       : -key - 1;
  };
  Bits best = *reinterpret_cast<const Bits*>(from);
  int64_t place = 0, best_rank = rank(best);
  for (int64_t i = 0; i < n; ++i, from += step, values += values_step, places += places_step) {
    const Bits bits = *reinterpret_cast<const Bits*>(from);
    if (const int64_t own = rank(bits); own >= best_rank) {
      best = bits;
      best_rank = own;
      place = i;
    }
    *reinterpret_cast<Bits*>(values) = best;
    *reinterpret_cast<int64_t*>(places) = place;
  }
}

template <bool kMax>
void running_extrema(const Tensor& self, int64_t dim, Tensor& values, Tensor& indices, const char* op) {
  report_kernel(op, "scan");
  if (self.numel() == 0) return;
  const int64_t d = wrap_dim(dim, self.dim(), op);
  const Rows from(self, d), to_values(values, d), to_places(indices, d);
  with_order(self.dtype(), [&]<class Order>(Order) {
    parallel_for(0, from.count(), std::max<int64_t>(kGrain / from.length(), 1),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i)
                     run_extremum<Order, kMax>(from.row(i), from.step(), from.length(), to_values.row(i),
                                               to_values.step(), to_places.row(i), to_places.step());
                 });
  });
}

}  // namespace

void kthvalue(const Tensor& self, int64_t k, int64_t dim, bool, Tensor& out0, Tensor& out1) {
  choose_by_rank(self, dim, out0, out1, "kthvalue",
                 [k](RowRanks& ranks, const char* row) { return ranks.find(row, k - 1); });
}

void median_dim(const Tensor& self, int64_t dim, bool, Tensor& out0, Tensor& out1) {
  const int64_t length =
      self.dim() == 0 ? 1 : self.sizes()[static_cast<size_t>(wrap_dim(dim, self.dim(), "median"))];
  choose_by_rank(self, dim, out0, out1, "median", [length](RowRanks& ranks, const char* row) {
    const int64_t numbers = ranks.numbers(row);
    return ranks.find(row, numbers < length ? numbers : (length - 1) / 2);
  });
}

void nanmedian_dim(const Tensor& self, int64_t dim, bool, Tensor& out0, Tensor& out1) {
  choose_by_rank(self, dim, out0, out1, "nanmedian", [](RowRanks& ranks, const char* row) {
    return ranks.find(row, std::max<int64_t>(ranks.numbers(row) - 1, 0) / 2);
  });
}

void mode(const Tensor& self, int64_t dim, bool, Tensor& out0, Tensor& out1) {
  with_order(self.dtype(), [&]<class Order>(Order) {
    choose(
        self, dim, out0, out1, "mode", [&](int64_t length) { return SortedRow(self.dtype(), length); },
        &end_of_longest_run<Order>);
  });
}

void cummax(const Tensor& self, int64_t dim, Tensor& out0, Tensor& out1) {
  running_extrema<true>(self, dim, out0, out1, "cummax");
}
void cummin(const Tensor& self, int64_t dim, Tensor& out0, Tensor& out1) {
  running_extrema<false>(self, dim, out0, out1, "cummin");
}

// Keys as bytes, the highest first, are ordered as memory is.
void lexsort(const Tensor& self, Tensor& out) {
  report_kernel("_lexsort", "sort");
  const int64_t count = self.size(0);
  const Rows rows(self, 1);
  const auto bytes = static_cast<size_t>(rows.bytes());
  std::vector<unsigned char> keys(static_cast<size_t>(count) * bytes);
  with_order(self.dtype(), [&]<class Order>(Order) {
    using Bits = typename Order::Bits;
    unsigned char* at = keys.data();
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t k = 0; k < rows.length(); ++k) {
        const auto key = static_cast<uint64_t>(
            int64_t{Order::key(*reinterpret_cast<const Bits*>(rows.row(i) + k * rows.step()))});
        for (size_t b = sizeof(Bits); b-- > 0;)
          *at++ = static_cast<unsigned char>((key >> (8 * b)) ^ (b + 1 == sizeof(Bits) ? 0x80 : 0));
      }
    }
  });
  auto* const order = static_cast<int64_t*>(out.data_ptr());
  std::iota(order, order + count, 0);
  std::stable_sort(order, order + count, [&](int64_t a, int64_t b) {
    return std::memcmp(&keys[static_cast<size_t>(a) * bytes], &keys[static_cast<size_t>(b) * bytes], bytes) <
           0;
  });
}

}  // namespace tenon::cpu
