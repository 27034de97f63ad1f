// Elements that differ, membership in sets, places in sorted rows, and histograms.
#include <fmt/core.h>

#include <cmath>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/sort/functions.h"
#include "tenon/generated/statistics/bodies.h"
#include "tenon/generated/statistics/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/promotion.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;

TensorOptions places(const Tensor& like) { return like.options().dtype(DType::Int64); }

/// Whether each row of a list differs from the one before; the first one does.
Tensor differs(const Tensor& rows) {
  const int64_t n = rows.size(0);
  Tensor unequal = rows.narrow(0, n > 0 ? 1 : 0, n > 0 ? n - 1 : 0) != rows.narrow(0, 0, n > 0 ? n - 1 : 0);
  if (rows.dim() > 1) unequal = tenon::any(unequal.flatten(1), 1);
  return tenon::cat({tenon::ones({n > 0 ? 1 : 0}, unequal.options()), unequal});
}

/// For each element the number of its run, at its place in `order` if that is given, and the lengths of the
/// runs.
std::pair<Tensor, Tensor> runs_of(const Tensor& differs, const Tensor& order, bool inverse, bool counts) {
  const Tensor none = tenon::empty({0}, places(differs));
  Tensor run = none, lengths = none;
  if (inverse) {
    run = tenon::cumsum(differs, 0) - 1;
    if (order.defined()) run = tenon::scatter(tenon::empty_like(run), 0, order, run);
  }
  if (counts) {
    const Tensor starts = tenon::nonzero(differs).reshape({-1});
    lengths = tenon::diff(starts, 1, -1, {}, tenon::full({1}, differs.size(0), starts.options()));
  }
  return {run, lengths};
}

/// Slices of `self` along `dim` that differ from their neighbours in `order`, or as they are.
Three slices(const Tensor& self, int64_t dim, const Tensor& order, const Tensor& rows, bool inverse,
             bool counts) {
  const Tensor is_new = differs(order.defined() ? rows.index_select(0, order) : rows);
  const Tensor all = order.defined() ? order : tenon::arange(self.size(dim), places(self));
  const auto [run, lengths] = runs_of(is_new, order, inverse, counts);
  return {self.index_select(dim, all.masked_select(is_new)), run, lengths};
}

Tensor rows_along(const Tensor& self, int64_t dim, const char* op) {
  TENON_CHECK(self.dim() > 0, Index, fmt::format("{}: a 0-dim tensor has no dimensions", op));
  TENON_CHECK(self.numel() > 0 || self.size(dim) == 0, Shape,
              fmt::format("{}: slices of `self`, {}, along dimension {} have no elements", op,
                          to_string(self.sizes()), dim));
  const int64_t each = self.size(dim) > 0 ? self.numel() / self.size(dim) : 1;
  return self.movedim(dim, 0).reshape({self.size(dim), each});
}

/// Sets up to here are compared one by one.
constexpr int64_t kFewMembers = 8;

Tensor edges_of(double low, double high, int64_t bins, const Tensor& like) {
  return tenon::linspace(low, high, bins + 1, like.options());
}

/// How many elements have each place, or how much weight. One more bin is for what is outside: what is not
/// `inside`, or where that is not given has the place `bins`.
Tensor in_bins(const Tensor& place, const Tensor& inside, int64_t bins, const Tensor& weight) {
  const Tensor all = weight.defined() ? weight : tenon::ones({1}, place.options()).expand(place.sizes());
  const Tensor sums = tenon::zeros({bins + 1}, all.options());
  const Tensor where = inside.defined() ? tenon::where(inside, place, Scalar(bins)) : place;
  return tenon::index_add(sums, 0, where, all).narrow(0, 0, bins).clone();
}

/// The range of a histogram, that of the data if `of_data`; wider by `margin` at both ends where it is empty.
std::pair<double, double> range_of(const Tensor& self, double low, double high, bool of_data, double margin,
                                   const char* op) {
  if (of_data && self.numel() == 0) return {0, 1};
  if (of_data) {
    TENON_CHECK(!self.is_meta(), NotImplemented,
                fmt::format("{}: the range depends on the data, which a meta tensor lacks; give it", op));
    const auto [least, most] = tenon::aminmax(self.detach());
    low = read_scalar(least).to_double();
    high = read_scalar(most).to_double();
  }
  TENON_CHECK(std::isfinite(low) && std::isfinite(high), Value,
              fmt::format("{}: the range from {} to {} is not finite", op, low, high));
  TENON_CHECK(low <= high, Value, fmt::format("{}: max must not be below min, got {} and {}", op, high, low));
  // Far from 0 a margin must be wider to be one.
  if (low == high) margin = std::max(margin, std::abs(low) * 0x1p-20);
  return low == high ? std::pair(low - margin, high + margin) : std::pair(low, high);
}

/// Both in one dtype, which is that of the sequence where it has the number.
std::pair<Tensor, Tensor> in_one_dtype(const Tensor& sequence, const Scalar& number) {
  const DType own = sequence.dtype(), wide = number.is_integral() ? DType::Int64 : DType::Float64;
  const bool has =
      !is_integral(own, true) ||
      tenon::full({}, number, TensorOptions().dtype(wide)).to(own).item().to_double() == number.to_double();
  const DType dtype = has ? own : wide;
  return {sequence.to(dtype), tenon::full({}, number, sequence.options().dtype(dtype))};
}

}  // namespace

Three unique(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  const Tensor flat = self.reshape({-1});
  Tensor sorted, order;
  if (return_inverse)
    std::tie(sorted, order) = tenon::sort(flat, -1, false);
  else
    sorted = tenon::_sort_values(flat, -1, false);
  const Tensor is_new = differs(sorted);
  const auto [run, lengths] = runs_of(is_new, order, return_inverse, return_counts);
  return {sorted.masked_select(is_new), return_inverse ? tenon::_unsafe_view(run, self.sizes()) : run,
          lengths};
}

Three unique_dim(const Tensor& self, int64_t dim, bool, bool return_inverse, bool return_counts) {
  const int64_t d = wrap_dim(dim, self.dim(), "unique_dim");
  const Tensor rows = rows_along(self, d, "unique_dim");
  return slices(self, d, tenon::_lexsort(rows.detach()), rows, return_inverse, return_counts);
}

Three unique_consecutive(const Tensor& self, bool return_inverse, bool return_counts,
                         std::optional<int64_t> dim) {
  if (dim) {
    const int64_t d = wrap_dim(*dim, self.dim(), "unique_consecutive");
    return slices(self, d, {}, rows_along(self, d, "unique_consecutive"), return_inverse, return_counts);
  }
  const Tensor flat = self.reshape({-1});
  auto [values, run, lengths] = slices(flat, 0, {}, flat, return_inverse, return_counts);
  return {values, return_inverse ? tenon::_unsafe_view(run, self.sizes()) : run, lengths};
}

Tensor isin(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  const int64_t members = test_elements.numel();
  Tensor found;
  if (members <= kFewMembers || elements.is_complex() || test_elements.is_complex()) {
    const Tensor flat = test_elements.reshape({-1});
    found = tenon::zeros(elements.sizes(), elements.options().dtype(DType::Bool));
    for (int64_t i = 0; i < members; ++i) found = tenon::logical_or(found, elements == flat.select(0, i));
  } else {
    const DType dtype = promote_types(elements.dtype(), test_elements.dtype());
    const Tensor sorted = tenon::_sort_values(test_elements.detach().to(dtype).reshape({-1}), -1, false);
    const Tensor own = elements.detach().to(dtype).reshape({-1});
    const Tensor place = tenon::clamp_max(tenon::searchsorted(sorted, own), members - 1);
    found = tenon::_unsafe_view(sorted.index_select(0, place) == own, elements.sizes());
  }
  return invert ? tenon::logical_not(found) : found;
}
Tensor isin_Scalar_Tensor(const Scalar& element, const Tensor& test_elements, bool, bool invert) {
  const Tensor found = tenon::any(test_elements == element);
  return invert ? tenon::logical_not(found) : found;
}

Tensor searchsorted_Tensor(const Tensor& sorted_sequence, const Tensor& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor& sorter) {
  TENON_CHECK(!side || *side == "left" || *side == "right", Value,
              fmt::format("searchsorted: side must be 'left' or 'right', got '{}'", *side));
  TENON_CHECK(!side || !right || *side == "right", Value,
              "searchsorted: side='left' and right=True contradict");
  Tensor rows = sorted_sequence;
  if (sorter.defined()) {
    TENON_CHECK(sorter.dtype() == DType::Int64 && sorter.sizes() == rows.sizes(), Value,
                fmt::format("searchsorted: sorter must be int64 of shape {}, got {}", to_string(rows.sizes()),
                            summary(sorter)));
    rows = tenon::gather(rows, -1, sorter);
  }
  const DType dtype = promote_types(rows.dtype(), self.dtype());
  return tenon::_searchsorted(rows.detach().to(dtype), self.detach().to(dtype), out_int32,
                              right || (side && *side == "right"));
}
Tensor searchsorted_Scalar(const Tensor& sorted_sequence, const Scalar& self, bool out_int32, bool right,
                           std::optional<std::string_view> side, const Tensor& sorter) {
  const auto [rows, number] = in_one_dtype(sorted_sequence, self);
  return tenon::searchsorted(rows, number, out_int32, right, side, sorter);
}
Tensor bucketize(const Tensor& self, const Tensor& boundaries, bool out_int32, bool right) {
  TENON_CHECK(
      boundaries.dim() == 1, Shape,
      fmt::format("bucketize: `boundaries` must be a vector, got shape {}", to_string(boundaries.sizes())));
  const DType dtype = promote_types(self.dtype(), boundaries.dtype());
  return tenon::searchsorted(boundaries.to(dtype), self.to(dtype), out_int32, right);
}
Tensor bucketize_Scalar(const Scalar& self, const Tensor& boundaries, bool out_int32, bool right) {
  const auto [edges, number] = in_one_dtype(boundaries, self);
  return ops::bucketize(number, edges, out_int32, right);
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  check_real(self, "histc");
  TENON_CHECK(self.dtype() != DType::Bool, Type, "histc: bool has no range; convert it");
  TENON_CHECK(bins > 0, Value, fmt::format("histc: bins must be positive, got {}", bins));
  auto [low, high] =
      range_of(self, min.to_double(), max.to_double(), min.to_double() == max.to_double(), 1, "histc");
  const double count = static_cast<double>(bins);
  const bool floats = !is_integral(self.dtype(), true) && self.dtype() != DType::Float64;
  const float least = static_cast<float>(low), most = static_cast<float>(high);
  if (floats && least < most) low = least, high = most;
  // A dtype that has each place, and the range times their number.
  const double largest = 2 * std::max(std::abs(low), std::abs(high)) * count;
  const bool wide = !floats || least == most || bins > 1 << 24 || largest > std::numeric_limits<float>::max();
  Tensor x = self.detach().reshape({-1}).to(wide ? DType::Float64 : DType::Float32);
  if (std::isinf(largest)) {
    constexpr double kSmaller = 0x1p-100;
    x = x * kSmaller, low *= kSmaller, high *= kSmaller;
  }
  const Tensor place = tenon::_histogram_place(x, low, high, count).to(DType::Int64);
  return in_bins(place, {}, bins, {}).to(self.dtype());
}

std::tuple<Tensor, Tensor> histogram_edges(const Tensor& self, const Tensor& bins, const Tensor& weight,
                                           bool density) {
  TENON_CHECK(
      self.dtype() == DType::Float32 || self.dtype() == DType::Float64, Type,
      fmt::format("histogram: `self` must be float32 or float64, got {}; convert it", name(self.dtype())));
  TENON_CHECK(bins.dim() == 1 && bins.numel() > 1 && bins.dtype() == self.dtype(), Value,
              fmt::format("histogram: `bins` must be two edges or more of {}, got {}", name(self.dtype()),
                          summary(bins)));
  TENON_CHECK(!weight.defined() || (weight.sizes() == self.sizes() && weight.dtype() == self.dtype()), Value,
              fmt::format("histogram: `weight` must be {} of shape {}, got {}", name(self.dtype()),
                          to_string(self.sizes()), weight.defined() ? summary(weight) : ""));
  const int64_t count = bins.numel() - 1;
  const Tensor x = self.detach().reshape({-1}), edges = bins.detach();
  // The last part includes its right edge.
  const Tensor place =
      tenon::searchsorted(edges, x, false, true) - 1 - (x == edges.select(0, count)).to(DType::Int64);
  const Tensor inside = tenon::logical_and(place >= 0, place < count);
  const Tensor own = weight.defined() ? weight.detach().reshape({-1}) : weight;
  Tensor hist = in_bins(place, inside, count, own).to(self.dtype());
  if (density) hist = hist / tenon::sum(hist) / tenon::diff(edges);
  return {hist, edges.clone()};
}

std::tuple<Tensor, Tensor> histogram(const Tensor& self, int64_t bins,
                                     std::optional<std::span<const double>> range, const Tensor& weight,
                                     bool density) {
  TENON_CHECK(bins > 0, Value, fmt::format("histogram: bins must be positive, got {}", bins));
  TENON_CHECK(!range || range->size() == 2, Value,
              fmt::format("histogram: range must be two numbers, got {}", range ? range->size() : 0));
  const auto [low, high] = range ? range_of(self, (*range)[0], (*range)[1], false, 0.5, "histogram")
                                 : range_of(self, 0, 0, true, 0.5, "histogram");
  return ops::histogram_edges(self, edges_of(low, high, bins, self), weight, density);
}

}  // namespace tenon::ops
