// Medians of all elements, and quantiles.
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
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/statistics/samples.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

/// Where between two elements of a sorted row a quantile is.
enum class Between { Linear, Lower, Higher, Nearest, Midpoint };

Between between_of(std::string_view word, const char* op) {
  constexpr std::string_view kWords[] = {"linear", "lower", "higher", "nearest", "midpoint"};
  for (size_t i = 0; i < std::size(kWords); ++i)
    if (word == kWords[i]) return static_cast<Between>(i);
  throw_error(
      ErrorKind::Value,
      fmt::format("{}: interpolation must be one of linear, lower, higher, nearest or midpoint, got '{}'", op,
                  word));
}

void check_quantile(const Tensor& self, const Tensor& q, const char* op) {
  TENON_CHECK(
      self.dtype() == DType::Float32 || self.dtype() == DType::Float64, Type,
      fmt::format("{}: `self` must be float32 or float64, got {}; convert it", op, name(self.dtype())));
  TENON_CHECK(self.numel() > 0, Value,
              fmt::format("{}: `self`, {}, has no elements", op, to_string(self.sizes())));
  TENON_CHECK(q.dim() <= 1, Shape,
              fmt::format("{}: `q` must be a number or a vector, got shape {}", op, to_string(q.sizes())));
  TENON_CHECK(q.dtype() == self.dtype(), Type,
              fmt::format("{}: `q` is {} and `self` {}; they must have one dtype", op, name(q.dtype()),
                          name(self.dtype())));
  TENON_CHECK(
      q.device() == self.device(), Device,
      fmt::format("{}: `q` is on {} and `self` on {}", op, to_string(q.device()), to_string(self.device())));
  if (q.is_meta() || q.numel() == 0) return;
  const auto [low, high] = tenon::aminmax(q.detach());
  const double least = read_scalar(low).to_double(), most = read_scalar(high).to_double();
  TENON_CHECK(least >= 0 && most <= 1, Value,
              fmt::format("{}: `q` must be in [0, 1], got values from {} to {}", op, least, most));
}

/// The elements of sorted rows at the fractions `q` [m] of the numbers in them; a row per row, m columns.
Tensor at_fractions(const Tensor& sorted, const Tensor& q, Between between, bool ignores_nan) {
  const Scalar last(static_cast<double>(sorted.size(-1) - 1));
  const Tensor nan = tenon::isnan(sorted), wide = q.to(DType::Float64);
  Tensor place;
  if (ignores_nan) {
    const Tensor numbers = tenon::sum(tenon::logical_not(nan), IntArrayRef(-1), true);
    place = wide * tenon::clamp_min(numbers - 1, 0).to(DType::Float64);
  } else {
    // A row with a NaN ends with it.
    place = tenon::where(tenon::any(nan, -1, true), last, wide * last);
  }
  if (between == Between::Nearest) place = tenon::round(place);
  if (between == Between::Higher) place = tenon::ceil(place);
  const Tensor below = tenon::floor(place);
  const Tensor found = tenon::gather(sorted, -1, below.to(DType::Int64));
  if (between != Between::Linear && between != Between::Midpoint) return found;
  const Tensor above = tenon::ceil(place);
  const Tensor next = tenon::gather(sorted, -1, above.to(DType::Int64));
  if (between == Between::Midpoint)
    return tenon::lerp(found, next, (above - below).mul(0.5).to(sorted.dtype()));
  return tenon::lerp(found, next, (place - below).to(sorted.dtype()));
}

/// A result that is not there: NaN, where the dtype has one.
Tensor of_none(const Tensor& self, const char* op) {
  TENON_CHECK(
      is_floating_point(self.dtype()), Value,
      fmt::format("{}: `self`, {} of {}, has no elements", op, to_string(self.sizes()), name(self.dtype())));
  return tenon::full({}, NAN, self.options());
}

}  // namespace

Tensor quantile_of(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                   std::string_view interpolation, bool ignores_nan, const char* op) {
  const Between between = between_of(interpolation, op);
  check_quantile(self, q, op);
  const int64_t rank = self.dim(), d = dim ? wrap_dim(*dim, rank, op) : 0;
  const Tensor rows = !dim || rank == 0 ? self.reshape({-1}) : self.movedim(d, -1);
  const Tensor sorted = tenon::_sort_values(rows, -1, false);
  const Tensor fractions = q.dim() == 0 ? q.reshape({1}) : q;
  // [rows..., m] to [m, rows...], with dimensions of size 1 where they are kept.
  Tensor result = at_fractions(sorted, fractions, between, ignores_nan).movedim(-1, 0);
  if (keepdim) {
    if (dim && rank > 0) {
      result = result.unsqueeze(d + 1);
    } else {
      Dims sizes(static_cast<size_t>(rank) + 1, 1);
      sizes[0] = fractions.size(0);
      result = result.reshape(sizes);
    }
  }
  return q.dim() == 0 ? result.squeeze(0) : result;
}

Tensor median(const Tensor& self) {
  if (self.numel() == 0) return of_none(self, "median");
  return std::get<0>(tenon::median(self.reshape({-1}), 0));
}
Tensor nanmedian(const Tensor& self) {
  if (self.numel() == 0) return of_none(self, "nanmedian");
  return std::get<0>(tenon::nanmedian(self.reshape({-1}), 0));
}

}  // namespace tenon::ops
