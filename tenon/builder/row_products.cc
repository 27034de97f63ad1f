#include "tenon/builder/row_products.h"

#include <algorithm>
#include <optional>

#include "tenon/generated/view/functions.h"

namespace tenon::builder {

using tenon::Tensor;

bool is_same_view(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.storage() == b.storage() && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.dtype() == b.dtype();
}

namespace {

/// Where rows are among all that their storage holds.
struct Place {
  int64_t first, count;
  bool side_by_side;  // elements of all rows are, rather than those of a row
};

/// Nothing if they are all, or no rows of the storage.
std::optional<Place> place_of(const Tensor& rows) {
  const int64_t m = rows.sizes()[0], k = rows.sizes()[1], offset = rows.storage_offset();
  const auto elements = static_cast<int64_t>(rows.storage().nbytes() / item_size(rows.dtype()));
  if (m == 0 || k == 0 || elements % k != 0 || elements == m * k) return std::nullopt;
  const int64_t count = elements / k;
  if (rows.is_contiguous() && offset % k == 0) return Place{offset / k, count, false};
  const bool side_by_side = rows.strides()[1] == count && (m == 1 || rows.strides()[0] == 1);
  if (side_by_side && offset + m <= count) return Place{offset, count, true};
  return std::nullopt;
}

}  // namespace

Tensor RowProducts::take(const Tensor& rows, const Tensor& weight, const Tensor& bias,
                         const std::function<Tensor(const Tensor&)>& multiply) {
  // One product of all rows is made once a few were asked for, and at least an eighth of all: the rest costs
  // less than the weight that each further one would read.
  constexpr int64_t kLeastTimes = 3, kMostOfThem = 8;
  const std::optional<Place> place = place_of(rows);
  if (!place || written_.contains(&*rows.storage())) return {};
  const int64_t m = rows.sizes()[0];
  const auto known = std::ranges::find_if(products_, [&](const Product& p) {
    return p.first.storage() == rows.storage() && p.first.sizes() == rows.sizes() &&
           p.first.strides() == rows.strides() && is_same_view(p.weight, weight) &&
           is_same_view(p.bias, bias);
  });
  if (known == products_.end()) {
    products_.push_back({rows, weight, bias, m, 1, {}});
    return {};
  }
  known->rows += m, ++known->times;
  if (!known->result.defined()) {
    if (known->times < kLeastTimes || known->rows * kMostOfThem < place->count) return {};
    const Dims sizes{place->count, rows.sizes()[1]},
        strides = place->side_by_side ? Dims{1, place->count} : contiguous_strides(sizes);
    known->result = multiply(make_view(rows, sizes, strides, 0));
  }
  return narrow(known->result, 0, place->first, m);
}

void RowProducts::forget(const StorageImpl& written) {
  written_.insert(&written);
  std::erase_if(products_, [&](const Product& p) {
    const auto is_over = [&](const Tensor& t) { return t.defined() && &*t.storage() == &written; };
    return is_over(p.first) || is_over(p.weight) || is_over(p.bias) || is_over(p.result);
  });
}

}  // namespace tenon::builder
