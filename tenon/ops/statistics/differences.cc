// Differences, slopes and integrals of samples along a dimension, and running logarithms of sums.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/statistics/bodies.h"
#include "tenon/generated/statistics/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/statistics/samples.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon::ops {
namespace {

/// All but the last `n` along `dim`, and all but the first.
Tensor front(const Tensor& t, int64_t dim, int64_t n = 1) { return t.narrow(dim, 0, t.size(dim) - n); }
Tensor back(const Tensor& t, int64_t dim, int64_t n = 1) { return t.narrow(dim, n, t.size(dim) - n); }

/// A vector as a tensor of `rank` dimensions that has it along `dim`.
Tensor along(const Tensor& vector, int64_t dim, int64_t rank) {
  Dims sizes(at(rank), 1);
  sizes[at(dim)] = -1;
  return vector.reshape(sizes);
}

Tensor slope(const Tensor& y, int64_t dim, const Spacing& spacing, int64_t edge_order) {
  const int64_t n = y.size(dim);
  TENON_CHECK(n > edge_order, Shape,
              fmt::format("gradient: dimension {} has {} samples, edge_order {} needs at least {}", dim, n,
                          edge_order, edge_order + 1));
  const auto part = [&](int64_t first, int64_t count) { return y.narrow(dim, first, count); };
  if (!spacing.coordinates.defined()) {
    const Tensor inner = (part(2, n - 2) - part(0, n - 2)) / spacing.step / 2;
    if (edge_order == 1)
      return tenon::cat(
          {(part(1, 1) - part(0, 1)) / spacing.step, inner, (part(n - 1, 1) - part(n - 2, 1)) / spacing.step},
          dim);
    const auto edge = [&](int64_t a, int64_t b, int64_t c) {
      return (part(a, 1) * -1.5 + part(b, 1) * 2 - part(c, 1) * 0.5) / spacing.step;
    };
    return tenon::cat({edge(0, 1, 2), inner, -edge(n - 1, n - 2, n - 3)}, dim);
  }
  TENON_CHECK(spacing.coordinates.dim() == 1 && spacing.coordinates.size(0) == n, Shape,
              fmt::format("gradient: coordinates of dimension {} must be a vector of {}, got shape {}", dim,
                          n, to_string(spacing.coordinates.sizes())));
  const Tensor steps = along(tenon::diff(spacing.coordinates), dim, y.dim());
  const Tensor h = front(steps, dim), k = back(steps, dim), both = h + k;
  const Tensor inner = part(0, n - 2) * (-k / (h * both)) + part(1, n - 2) * ((k - h) / (h * k)) +
                       part(2, n - 2) * (h / (k * both));
  if (edge_order == 1)
    return tenon::cat({(part(1, 1) - part(0, 1)) / steps.narrow(dim, 0, 1), inner,
                       (part(n - 1, 1) - part(n - 2, 1)) / steps.narrow(dim, n - 2, 1)},
                      dim);
  // Through three samples; the farthest two steps are a and b, a next to the edge.
  const auto edge = [&](int64_t x, int64_t y1, int64_t y2, const Tensor& a, const Tensor& b) {
    return part(x, 1) * (-(a * 2 + b) / (a * (a + b))) + part(y1, 1) * ((a + b) / (a * b)) -
           part(y2, 1) * (a / (b * (a + b)));
  };
  const auto step = [&](int64_t i) { return steps.narrow(dim, i, 1); };
  return tenon::cat(
      {edge(0, 1, 2, step(0), step(1)), inner, -edge(n - 1, n - 2, n - 3, step(n - 2), step(n - 3))}, dim);
}

}  // namespace

std::vector<Tensor> slopes(const Tensor& self, IntArrayRef dims, std::span<const Spacing> spacing,
                           int64_t edge_order) {
  TENON_CHECK(edge_order == 1 || edge_order == 2, Value,
              fmt::format("gradient: edge_order must be 1 or 2, got {}", edge_order));
  const Tensor y = is_integral(self.dtype(), true) ? self.to(default_dtype()) : self;
  std::vector<Tensor> results;
  const Dims wrapped = wrap_dims(dims, self.dim(), "gradient");
  for (size_t i = 0; i < wrapped.size(); ++i)
    results.push_back(slope(y, wrapped[i], spacing[spacing.size() == 1 ? 0 : i], edge_order));
  return results;
}

std::vector<Tensor> slopes_of_list(const Tensor& self, IntArrayRef dims, const std::vector<Spacing>& spacing,
                                   int64_t edge_order) {
  TENON_CHECK(
      spacing.size() == dims.size(), Value,
      fmt::format("gradient: expected spacing to be a number or a list with one for each of {} dimensions, "
                  "got {}",
                  dims.size(), spacing.size()));
  return slopes(self, dims, spacing, edge_order);
}

Dims dims_or_all(const Tensor& self, std::optional<int64_t> dim) {
  if (dim) return Dims{*dim};
  Dims dims;
  for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  return dims;
}

std::vector<Spacing> steps_of(std::span<const Scalar> steps) {
  std::vector<Spacing> all;
  for (const Scalar& step : steps) all.push_back({step, {}});
  return all;
}
std::vector<Spacing> coordinates_of(TensorList coordinates) {
  std::vector<Spacing> all;
  for (const Tensor& t : coordinates) all.push_back({1, t});
  return all;
}

namespace {

Tensor areas(const Tensor& y, int64_t dim) { return (front(y, dim) + back(y, dim)) / 2; }

/// The areas of trapezoids between samples at `x`, a vector or of the shape of `y`.
Tensor areas_at(const Tensor& y, const Tensor& x, int64_t dim) {
  if (x.dim() != 1) return tenon::diff(x, 1, dim) * areas(y, dim);
  TENON_CHECK(x.size(0) == y.size(dim), Shape,
              fmt::format("trapezoid: `x` has {} samples and `y` {} along dimension {}", x.size(0),
                          y.size(dim), dim));
  return along(tenon::diff(x), dim, y.dim()) * areas(y, dim);
}

int64_t samples_dim(const Tensor& y, int64_t dim, const char* op) {
  TENON_CHECK(y.dim() > 0, Index, fmt::format("{}: `y` is 0-dim, expected at least one dimension", op));
  return wrap_dim(dim, y.dim(), op);
}
bool has_samples(const Tensor& y, int64_t dim) { return y.size(dim) > 0; }

/// The integral over no samples, of the dtype of `y`.
Tensor none(const Tensor& y, int64_t dim) { return tenon::sum(y, IntArrayRef(dim)).to(y.dtype()); }
/// The running integral over no samples, of the dtype that areas have.
Tensor none_running(const Tensor& y) {
  return is_integral(y.dtype(), true) ? y.to(default_dtype()) : y.clone();
}

}  // namespace

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  TENON_CHECK(self.dim() > 0, Index, "diff: `self` is 0-dim, expected at least one dimension");
  TENON_CHECK(n >= 0, Value, fmt::format("diff: n must not be negative, got {}", n));
  const int64_t d = wrap_dim(dim, self.dim(), "diff");
  if (n == 0) return self.clone();
  Tensor result = self;
  if (prepend.defined()) result = tenon::cat({prepend, result}, d);
  if (append.defined()) result = tenon::cat({result, append}, d);
  if (n >= result.size(d)) return result.narrow(d, 0, 0).clone();
  for (; n > 0; --n)
    result = result.dtype() == DType::Bool ? back(result, d) != front(result, d)
                                           : back(result, d) - front(result, d);
  return result;
}

Tensor trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = samples_dim(y, dim, "trapezoid");
  return has_samples(y, d) ? tenon::sum(areas_at(y, x, d), IntArrayRef(x.dim() == 1 ? d : dim)) : none(y, d);
}
Tensor trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  const int64_t d = samples_dim(y, dim, "trapezoid");
  return has_samples(y, d) ? tenon::sum(areas(y, d), IntArrayRef(d)) * dx : none(y, d);
}
Tensor cumulative_trapezoid_x(const Tensor& y, const Tensor& x, int64_t dim) {
  const int64_t d = samples_dim(y, dim, "cumulative_trapezoid");
  return has_samples(y, d) ? tenon::cumsum(areas_at(y, x, d), d) : none_running(y);
}
Tensor cumulative_trapezoid_dx(const Tensor& y, const Scalar& dx, int64_t dim) {
  const int64_t d = samples_dim(y, dim, "cumulative_trapezoid");
  return has_samples(y, d) ? tenon::cumsum(areas(y, d), d) * dx : none_running(y);
}

Tensor cummaxmin_backward(const Tensor& grad, const Tensor& input, const Tensor& indices, int64_t dim) {
  if (input.dim() == 0 || input.numel() == 0) return grad;
  return tenon::gather_backward(grad, input.sizes(), dim, indices);
}

// By doubling: after step k each place has the sum of the last 2 ** k elements.
Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  TENON_CHECK(is_floating_point(self.dtype()) || self.is_complex(), Type,
              fmt::format("logcumsumexp: expected a floating point or complex dtype, got {}; convert it",
                          name(self.dtype())));
  const int64_t d = wrap_dim(dim, self.dim(), "logcumsumexp");
  if (self.dim() == 0 || self.numel() == 0) return self.clone();
  const bool is_half = self.dtype() == DType::Float16 || self.dtype() == DType::BFloat16;
  Tensor sums = is_half ? self.to(DType::Float32) : self;
  for (int64_t reach = 1; reach < self.size(d); reach *= 2)
    sums = tenon::cat(
        {sums.narrow(d, 0, reach), tenon::logaddexp(back(sums, d, reach), front(sums, d, reach))}, d);
  return is_half ? sums.to(self.dtype()) : sums.is_same(self) ? self.clone() : sums;
}

}  // namespace tenon::ops
