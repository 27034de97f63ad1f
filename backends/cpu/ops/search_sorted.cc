// searchsorted: how many elements of a sorted row come before an element.
#include "backends/cpu/ops/strided.h"
#include "backends/cpu/sort/order.h"
#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/generated/statistics/kernels.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

/// Searches that go on together: each step waits for memory.
constexpr int64_t kTogether = 8;

/// Searches `count` elements, at most kTogether, in a row of `n`.
template <class Order, bool kRight>
void search(const typename Order::Bits* row, int64_t n, const typename Order::Bits* elements, int64_t count,
            int64_t* found) {
  const auto before = [](auto bits, int64_t key) {
    const int64_t own = Order::key(bits);
    return kRight ? own <= key : own < key;
  };
  int64_t keys[kTogether], first[kTogether] = {};
  for (int64_t i = 0; i < kTogether; ++i) keys[i] = Order::key(elements[i < count ? i : 0]);
  for (int64_t left = n; left > 1;) {
    const int64_t half = left / 2;
    for (int64_t i = 0; i < kTogether; ++i) first[i] += before(row[first[i] + half - 1], keys[i]) ? half : 0;
    left -= half;
  }
  for (int64_t i = 0; i < count; ++i) found[i] = first[i] + (n > 0 && before(row[first[i]], keys[i]));
}

template <class Order, bool kRight>
void search_rows(const Tensor& sequence, const Tensor& elements, Tensor& out) {
  using Bits = typename Order::Bits;
  const int64_t n = sequence.dim() == 0 ? 1 : sequence.sizes().back();
  const bool one_row = sequence.dim() <= 1;
  const int64_t each = one_row ? elements.numel() : elements.sizes().back();
  const StridedDims to = dims_of(out);
  const auto* row = static_cast<const Bits*>(sequence.data_ptr());
  const auto* element = static_cast<const Bits*>(elements.data_ptr());
  auto* const result = static_cast<char*>(out.data_ptr());
  const bool narrow = out.dtype() == DType::Int32;
  parallel_for(0, elements.numel(), 1 << 12, [&](int64_t begin, int64_t end) {
    int64_t found[kTogether];
    for (int64_t i = begin; i < end;) {
      const int64_t of_row = i / each, count = std::min({kTogether, end - i, (of_row + 1) * each - i});
      search<Order, kRight>(row + (one_row ? 0 : of_row * n), n, element + i, count, found);
      for (int64_t k = 0; k < count; ++k, ++i) {
        char* const at = result + to.offset(i);
        if (narrow)
          *reinterpret_cast<int32_t*>(at) = static_cast<int32_t>(found[k]);
        else
          *reinterpret_cast<int64_t*>(at) = found[k];
      }
    }
  });
}

}  // namespace

void searchsorted(const Tensor& sorted_sequence, const Tensor& self, bool, bool right, Tensor& out) {
  report_kernel("searchsorted", "search");
  const Tensor rows = ops::as_contiguous(sorted_sequence), elements = ops::as_contiguous(self);
  with_order(self.dtype(), [&]<class Order>(Order) {
    right ? search_rows<Order, true>(rows, elements, out) : search_rows<Order, false>(rows, elements, out);
  });
}

}  // namespace tenon::cpu
