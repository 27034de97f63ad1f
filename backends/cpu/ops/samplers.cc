// Draws by rejection on the CPU. Element i takes block offset + i of the stream, whose counter's third word
// counts the blocks that its tries take: what an element gets depends on nothing else. Maths are expressions
// in float64, so that the numbers are the same on every instruction set.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/ops/block_expr.h"
#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/error.h"
#include "tenon/core/parallel.h"
#include "tenon/core/philox.h"
#include "tenon/generated/random/kernels.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::cpu {
namespace {

using namespace tenon::random;

constexpr int64_t kTile = 256, kGrain = 1024;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Four uniform numbers of try `k` of one element: the first and the last two are never 0.
struct Draws {
  double u, v, q, s;
};
Draws draws(uint64_t seed, uint64_t index, uint32_t k) {
  const std::array<uint32_t, 2> key{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  const auto block = [&](uint32_t number) {
    return philox4x32_10({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), number, 0}, key);
  };
  const PhiloxBlock first = block(2 * k + 1), second = block(2 * k + 2);
  return {positive_double(philox_word64(first, 0)), uniform_double(philox_word64(first, 1)),
          positive_double(philox_word64(second, 0)), positive_double(philox_word64(second, 1))};
}

/// A tile of elements with up to two parameters. `value` is NaN where nothing is drawn.
struct Tile {
  double a[kTile], b[kTile], value[kTile];
};

/// The elements of `tile` in `active` until `candidate` (a, b, u, v, q, s) gives each a number that is not
/// below 0.
void reject(const BlockExpr& candidate, uint64_t seed, uint64_t first, Tile& tile,
            std::vector<int64_t>& active) {
  double a[kTile], b[kTile], u[kTile], v[kTile], q[kTile], s[kTile], out[kTile];
  for (uint32_t k = 0; !active.empty(); ++k) {
    const size_t n = active.size();
    for (size_t j = 0; j < n; ++j) {
      const int64_t i = active[j];
      const Draws d = draws(seed, first + static_cast<uint64_t>(i), k);
      a[j] = tile.a[i], b[j] = tile.b[i], u[j] = d.u, v[j] = d.v, q[j] = d.q, s[j] = d.s;
    }
    candidate.run<double>(out, n, nullptr, a, b, u, v, q, s);
    size_t left = 0;
    for (size_t j = 0; j < n; ++j) {
      tile.value[active[j]] = out[j];
      if (out[j] < 0) active[left++] = active[j];
    }
    active.resize(left);
  }
}

const BlockExpr& compiled(const char* text) { return *new BlockExpr(text, {"a", "b", "u", "v", "q", "s"}); }

/// Calls `fill(tile, first, count)` for all elements of `out` on several threads and stores the tile's
/// values.
template <class F>
void for_each_tile(const Tensor& a, const Tensor& b, Tensor& out, F&& fill) {
  Tensor values = make_empty(out.sizes(), DType::Float64);
  auto* to = static_cast<double*>(values.data_ptr());
  const Tensor wide_a = ops::as_contiguous(ops::as_dtype(a, DType::Float64)),
               wide_b = ops::as_contiguous(ops::as_dtype(b, DType::Float64));
  const auto* pa = static_cast<const double*>(wide_a.data_ptr());
  const auto* pb = static_cast<const double*>(wide_b.data_ptr());
  const int64_t n = out.numel();
  parallel_for(0, (n + kTile - 1) / kTile, kGrain / kTile, [&](int64_t begin, int64_t end) {
    Tile tile;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t * kTile, count = std::min(kTile, n - first);
      std::copy_n(pa + first, count, tile.a);
      std::copy_n(pb + first, count, tile.b);
      fill(tile, first, count);
      std::copy_n(tile.value, count, to + first);
    }
  });
  ops::copy_elements(out, ops::as_dtype(values, out.dtype()), "random");
}

constexpr const char* kGamma = R"(
  let k = where(a < 1, a + 1, a);
  let d = k - 0.3333333333333333;
  let n = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
  let t = 1 + n / (3 * sqrt(d));
  let p = where(t > 0, t, 1);
  let w = p * p * p;
  let fits = (t > 0) & (log(q) < 0.5 * n * n + (d - d * w) + d * log(w));
  where(fits, d * w * where(a < 1, exp(log(s) / where(a < 1, a, 1)), 1), -1))";

// PTRS: a is the mean, at least 10.
constexpr const char* kPoisson = R"(
  let w = 0.931 + 2.53 * sqrt(a);
  let h = -0.059 + 0.02483 * w;
  let c = u - 0.5;
  let z = 0.5 - abs(c);
  let k = floor((2 * h / z + w) * c + a + 0.43);
  let easy = (z >= 0.07) & (q <= 0.9277 - 3.6224 / (w - 2));
  let hopeless = (k < 0) | ((z < 0.013) & (q > z));
  let m = max(k, 0);
  let fits = log(q) + log(1.1239 + 1.1328 / (w - 3.4)) - log(h / (z * z) + w) <= m * log(a) - a - lgamma(m + 1);
  where(easy | (!hopeless & fits), m, -1))";

// BTRS: a trials of probability b, at most 1/2, with a mean of at least 10.
constexpr const char* kBinomial = R"(
  let r = sqrt(a * b * (1 - b));
  let w = 1.15 + 2.53 * r;
  let h = -0.0873 + 0.0248 * w + 0.01 * b;
  let m = floor((a + 1) * b);
  let c = u - 0.5;
  let z = 0.5 - abs(c);
  let k = floor((2 * h / z + w) * c + a * b + 0.5);
  let easy = (z >= 0.07) & (q <= 0.92 - 4.2 / w);
  let inside = (k >= 0) & (k <= a);
  let j = where(inside, k, m);
  let bound = lgamma(m + 1) + lgamma(a - m + 1) - lgamma(j + 1) - lgamma(a - j + 1) + (j - m) * log(b / (1 - b));
  let fits = log(q * ((2.83 + 5.1 / w) * r) / (h / (z * z) + w)) <= bound;
  where(inside & (easy | fits), j, -1))";

/// exp of a tile's values, in place, with the bits of everywhere.
void exponentials(double* x, size_t n) {
  static const BlockExpr& e = *new BlockExpr("exp(x)", {"x"});
  e.run<double>(x, n, nullptr, x);
}

}  // namespace

void philox_standard_gamma(const Tensor& self, int64_t seed, int64_t offset, Tensor& out) {
  static const BlockExpr& candidate = compiled(kGamma);
  // The least normal number, whose logarithm is finite.
  const double least = out.dtype() == DType::Float64   ? std::numeric_limits<double>::min()
                       : out.dtype() == DType::Float16 ? 0x1p-14
                                                       : 0x1p-126;
  for_each_tile(self, self, out, [&](Tile& tile, int64_t first, int64_t count) {
    std::vector<int64_t> active;
    for (int64_t i = 0; i < count; ++i) {
      const double a = tile.a[i];
      tile.value[i] = a == 0 ? 0 : std::isinf(a) && a > 0 ? a : kNan;
      if (a > 0 && std::isfinite(a)) active.push_back(i);
    }
    reject(candidate, static_cast<uint64_t>(seed), static_cast<uint64_t>(offset + first), tile, active);
    for (int64_t i = 0; i < count; ++i)
      if (tile.a[i] > 0) tile.value[i] = std::max(tile.value[i], least);
  });
}

void philox_poisson(const Tensor& self, int64_t seed, int64_t offset, Tensor& out) {
  static const BlockExpr& candidate = compiled(kPoisson);
  for_each_tile(self, self, out, [&](Tile& tile, int64_t first, int64_t count) {
    std::vector<int64_t> active;
    double none[kTile];
    for (int64_t i = 0; i < count; ++i) none[i] = -tile.a[i];
    exponentials(none, static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const double mean = tile.a[i];
      TENON_CHECK(!(mean < 0), Value,
                  fmt::format("poisson: expected means of 0 or more in `self`, got {} at element {}", mean,
                              first + i));
      tile.value[i] = mean == mean && std::isinf(mean) ? mean : kNan;
      if (mean >= 10 && std::isfinite(mean)) active.push_back(i);
      if (!(mean < 10)) continue;
      // Inversion: the chances of 0, 1, ... are taken off one uniform number.
      double u = draws(static_cast<uint64_t>(seed), static_cast<uint64_t>(offset + first + i), 0).v,
             p = none[i];
      int k = 0;
      for (; u >= p && k < 200; ++k) u -= p, p *= mean / (k + 1);
      tile.value[i] = k;
    }
    reject(candidate, static_cast<uint64_t>(seed), static_cast<uint64_t>(offset + first), tile, active);
  });
}

void philox_binomial(const Tensor& count, const Tensor& prob, int64_t seed, int64_t offset, Tensor& out) {
  static const BlockExpr& candidate = compiled(kBinomial);
  static const BlockExpr& none_of = *new BlockExpr("exp(a * log1p(-b))", {"a", "b"});
  for_each_tile(count, prob, out, [&](Tile& tile, int64_t first, int64_t elements) {
    std::vector<int64_t> active;
    bool flipped[kTile];
    double none[kTile];
    for (int64_t i = 0; i < elements; ++i) {
      TENON_CHECK(!(tile.a[i] < 0), Value,
                  fmt::format("binomial: expected counts of 0 or more in `count`, got {} at element {}",
                              tile.a[i], first + i));
      TENON_CHECK(!(tile.b[i] < 0 || tile.b[i] > 1), Value,
                  fmt::format("binomial: expected probabilities from 0 to 1 in `prob`, got {} at element {}",
                              tile.b[i], first + i));
      tile.a[i] = std::trunc(tile.a[i]);
      flipped[i] = tile.b[i] > 0.5;
      if (flipped[i]) tile.b[i] = 1 - tile.b[i];
    }
    none_of.run<double>(none, static_cast<size_t>(elements), nullptr, tile.a, tile.b);
    for (int64_t i = 0; i < elements; ++i) {
      const double n = tile.a[i], p = tile.b[i];
      tile.value[i] = kNan;
      if (n * p >= 10 && std::isfinite(n)) active.push_back(i);
      if (!(n * p < 10)) continue;
      double u = draws(static_cast<uint64_t>(seed), static_cast<uint64_t>(offset + first + i), 0).v,
             chance = none[i];
      double k = 0;
      for (; u >= chance && k < n && k < 200; ++k) u -= chance, chance *= p / (1 - p) * ((n - k) / (k + 1));
      tile.value[i] = k;
    }
    reject(candidate, static_cast<uint64_t>(seed), static_cast<uint64_t>(offset + first), tile, active);
    for (int64_t i = 0; i < elements; ++i)
      if (flipped[i]) tile.value[i] = tile.a[i] - tile.value[i];
  });
}

namespace {

/// The derivative by a of x with P(a, x) fixed, P the gamma distribution; `log_x` and psi = digamma(a). Up to
/// a + 1 by the power series of P, beyond by the continued fraction of 1 - P, both with their derivatives by
/// a.
double gamma_slope(double a, double x, double log_x, double psi) {
  if (x <= a + 1) {
    double term = 1, sum = 1, slope = 0, harmonic = 0;
    for (int n = 1; n < 20000 && term > 1e-17 * sum; ++n) {
      term *= x / (a + n);
      harmonic += 1 / (a + n);
      sum += term;
      slope -= term * harmonic;
    }
    return -(x / a) * ((log_x - psi - 1 / a) * sum + slope);
  }
  const int steps = std::min(20000, 60 + static_cast<int>(400 / x) + static_cast<int>(8 * std::sqrt(a)));
  double f = x + 2 * steps + 1 - a, slope = -1;
  for (int k = steps; k >= 1; --k) {
    const double c = k * (k - a);
    slope = -1 + k / f + c * slope / (f * f);
    f = x + 2 * k - 1 - a - c / f;
  }
  return x * ((log_x - psi) / f - slope / (f * f));
}

/// For a large a by Wilson and Hilferty: (x / a)^(1/3) is nearly normal; `root` is that.
double gamma_slope_large(double a, double root) {
  const double z = (root - 1 + 1 / (9 * a)) * 3 * std::sqrt(a);
  return root * root * (root + 3 * a * (1 / (9 * a * a) - z / (6 * a * std::sqrt(a))));
}

}  // namespace

void standard_gamma_grad(const Tensor& self, const Tensor& output, Tensor& out) {
  static const BlockExpr& logarithm = *new BlockExpr("log(x)", {"x"});
  static const BlockExpr& psi_of = *new BlockExpr("digamma(a)", {"a"});
  static const BlockExpr& root_of = *new BlockExpr("exp(log(x / a) / 3)", {"x", "a"});
  for_each_tile(self, output, out, [&](Tile& tile, int64_t, int64_t count) {
    double log_x[kTile], psi[kTile], root[kTile];
    const auto n = static_cast<size_t>(count);
    logarithm.run<double>(log_x, n, nullptr, tile.b);
    psi_of.run<double>(psi, n, nullptr, tile.a);
    root_of.run<double>(root, n, nullptr, tile.b, tile.a);
    for (int64_t i = 0; i < count; ++i) {
      const double a = tile.a[i], x = tile.b[i];
      if (!(a > 0 && x > 0 && std::isfinite(a) && std::isfinite(x)))
        tile.value[i] = a > 0 && x == 0 ? 0 : kNan;
      else
        tile.value[i] = a > 30000 ? gamma_slope_large(a, root[i]) : gamma_slope(a, x, log_x[i], psi[i]);
    }
  });
}

}  // namespace tenon::cpu
