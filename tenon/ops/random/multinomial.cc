// multinomial: numbers of categories by their weights.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tenon/generated/random/bodies.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops {
namespace {

/// Throws for weights that are no weights, or too few that are not 0. Returns their sum, added in order.
double checked_total(const double* weights, int64_t categories, int64_t needed) {
  double total = 0;
  int64_t possible = 0;
  for (int64_t c = 0; c < categories; ++c) {
    TENON_CHECK(std::isfinite(weights[c]) && weights[c] >= 0, Value,
                fmt::format("multinomial: weights must be finite and not negative, got {} for category {}",
                            weights[c], c));
    total += weights[c];
    possible += weights[c] > 0;
  }
  TENON_CHECK(total > 0, Value, "multinomial: the weights of a row add up to 0");
  TENON_CHECK(std::isfinite(total), Value, "multinomial: the weights of a row add up to infinity");
  TENON_CHECK(
      possible >= needed, Value,
      fmt::format(
          "multinomial: {} samples without replacement need as many categories with a weight above 0, got {}",
          needed, possible));
  return total;
}

/// Numbers by inversion of the running sums: u is in [0, 1).
void with_replacement(const double* weights, int64_t categories, double total, const double* u,
                      int64_t samples, int64_t* out) {
  std::vector<double> sums(static_cast<size_t>(categories));
  std::partial_sum(weights, weights + categories, sums.begin());
  for (int64_t i = 0; i < samples; ++i) {
    const auto found = std::upper_bound(sums.begin(), sums.end(), u[i] * total);
    int64_t c = std::min<int64_t>(found - sums.begin(), categories - 1);
    while (weights[c] == 0) --c;  // u * total may have been rounded up to the whole
    out[i] = c;
  }
}

/// The categories with the smallest key e / weight, where e is exponentially distributed.
void without_replacement(const double* weights, int64_t categories, const double* e, int64_t samples,
                         int64_t* out) {
  std::vector<double> keys(static_cast<size_t>(categories));
  std::vector<int64_t> order;
  for (int64_t c = 0; c < categories; ++c) {
    if (weights[c] == 0) continue;
    keys[static_cast<size_t>(c)] = e[c] / weights[c];
    order.push_back(c);
  }
  std::partial_sort(order.begin(), order.begin() + samples, order.end(), [&](int64_t a, int64_t b) {
    const double x = keys[static_cast<size_t>(a)], y = keys[static_cast<size_t>(b)];
    return x < y || (x == y && a < b);
  });
  std::copy_n(order.begin(), samples, out);
}

}  // namespace

Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement, const Generator& generator) {
  TENON_CHECK(
      self.dim() == 1 || self.dim() == 2, Shape,
      fmt::format("multinomial: expected weights [c] or [m, c], got shape {}", to_string(self.sizes())));
  TENON_CHECK(
      is_floating_point(self.dtype()) && has_arithmetic(self.dtype()), Type,
      fmt::format("multinomial: expected weights of a floating-point dtype, got {}", name(self.dtype())));
  TENON_CHECK(num_samples > 0, Value,
              fmt::format("multinomial: num_samples must be positive, got {}", num_samples));
  const int64_t categories = self.sizes().back(), rows = self.dim() == 2 ? self.sizes()[0] : 1;
  TENON_CHECK(replacement || num_samples <= categories, Value,
              fmt::format("multinomial: {} samples without replacement need as many categories, got {}",
                          num_samples, categories));
  TENON_CHECK(categories > 0 || rows == 0, Value, "multinomial: there are no categories");
  Dims sizes = self.sizes().to_dims();
  sizes.back() = num_samples;
  if (self.is_meta()) return make_empty(sizes, DType::Int64, self.device());
  Tensor result = make_empty(sizes, DType::Int64);
  if (result.numel() == 0) return on_device(result, self.device());
  // Elsewhere than on the host, the weights come here and the numbers go there.
  const Tensor weights = as_contiguous(as_dtype(on_device(self, kCPU), DType::Float64));
  const auto* w = static_cast<const double*>(weights.data_ptr());
  std::vector<double> totals;
  for (int64_t r = 0; r < rows; ++r) {
    totals.push_back(checked_total(w + r * categories, categories, replacement ? 1 : num_samples));
  }
  Tensor drawn = make_empty({rows, replacement ? num_samples : categories}, DType::Float64);
  if (replacement)
    ops::uniform_(drawn, 0, 1, generator);
  else
    ops::exponential_(drawn, 1, generator);
  const auto* numbers = static_cast<const double*>(drawn.data_ptr());
  auto* out = static_cast<int64_t*>(result.data_ptr());
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = w + r * categories;
    int64_t* samples = out + r * num_samples;
    if (replacement)
      with_replacement(row, categories, totals[static_cast<size_t>(r)], numbers + r * num_samples,
                       num_samples, samples);
    else
      without_replacement(row, categories, numbers + r * categories, num_samples, samples);
  }
  return on_device(result, self.device());
}

}  // namespace tenon::ops
