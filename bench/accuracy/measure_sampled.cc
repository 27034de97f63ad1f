// Samples against MPFR: all magnitudes, where the function bends, beside its thresholds and zeros; then the
// neighbourhoods of the worst that were found.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "bench/accuracy/kernel.h"
#include "bench/accuracy/measure.h"

namespace tenon::accuracy {

namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
constexpr Format kFormat = sizeof(T) == 4 ? kFormatFloat32 : kFormatFloat64;

template <class T>
T any(Random& random) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(random()));
}

template <class T>
T moved(T x, int64_t units) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(std::bit_cast<BitsOf<T>>(x) + static_cast<uint64_t>(units)));
}

/// Up to 2^`bits` units in the last place away, near ones as often as far ones.
template <class T>
T beside(Random& random, T x, double bits) {
  const auto units = static_cast<int64_t>(std::exp2(uniform(random, 0, bits)));
  return moved(x, random() % 2 == 0 ? units - 1 : 1 - units);
}

template <class T>
T magnitude(Random& random) {
  const double x = std::exp2(uniform(random, -60, 12));
  return static_cast<T>(random() % 2 == 0 ? x : -x);
}

template <class T>
T sample(const MathFunction& f, Random& random, size_t i) {
  if (f.circular && i % 6 == 0) {
    const double multiple = std::floor(std::exp2(uniform(random, 0, 40)));
    return beside(random, static_cast<T>(multiple * M_PI_2), 30);
  }
  switch (i % 5) {
    case 0:
      return any<T>(random);
    case 1:
      return magnitude<T>(random);
    case 2:
      if (!f.points.empty()) {
        return beside(random, static_cast<T>(f.points[random() % f.points.size()]), sizeof(T) == 4 ? 16 : 44);
      }
      [[fallthrough]];
    default:
      return static_cast<T>(uniform(random, f.interesting.low, f.interesting.high));
  }
}

template <class T>
std::pair<T, T> sample_pair(const MathFunction& f, Random& random, size_t i) {
  const auto inside = [&] { return static_cast<T>(uniform(random, f.interesting.low, f.interesting.high)); };
  switch (i % 6) {
    case 0:
      return {any<T>(random), any<T>(random)};
    case 1:
      return {magnitude<T>(random), magnitude<T>(random)};
    case 2:
      return {inside(), inside()};
    case 3:
      return {magnitude<T>(random), std::round(inside())};
    default: {
      const auto [x, y] = f.hard_pair(random);
      return {static_cast<T>(x), static_cast<T>(y)};
    }
  }
}

/// Every pair of these: zeros, infinities, NaN, the ends of the normal and denormal numbers, small whole
/// numbers.
template <class T>
std::vector<T> special_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           1,
                           2,
                           3,
                           T(0.5),
                           T(2.5),
                           Limits::infinity(),
                           Limits::quiet_NaN(),
                           Limits::denorm_min(),
                           Limits::min(),
                           std::nextafter(Limits::min(), T(0)),
                           Limits::max()};
  for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  return values;
}

template <class T>
class Sampler {
 public:
  explicit Sampler(const MathFunction& f)
      : f_(f), kernel_(f.text, sizeof(T) == 4 ? expr::Type::F32 : expr::Type::F64) {}

  Tally run(size_t samples) {
    Random random(20240607);
    for (const T x : special_values<T>()) {
      if (f_.arity == 1) add(x, 0);
      for (const T y : special_values<T>()) {
        if (f_.arity == 2) add(x, y);
      }
    }
    for (size_t i = 0; i < samples; ++i) {
      if (f_.arity == 1) {
        add(sample<T>(f_, random, i), 0);
      } else {
        const auto [x, y] = sample_pair<T>(f_, random, i);
        add(x, y);
      }
    }
    flush();
    for (int round = 0; round < 3; ++round) search(random, samples / 16);
    return tally_;
  }

 private:
  struct Found {
    double ulp;
    T x, y;
  };

  void add(T x, T y) {
    x_.push_back(x);
    y_.push_back(y);
    if (x_.size() == 4096) flush();
  }

  void flush() {
    const auto targets = cpu::supported_cpu_targets();
    got_.resize(x_.size());
    other_.resize(x_.size());
    kernel_.run(targets.back(), x_.data(), y_.data(), got_.data(), x_.size());
    compare(got_, nullptr);
    tally_.inputs += x_.size();
    for (const cpu::CpuTarget target : targets.first(targets.size() - 1)) {
      kernel_.run(target, x_.data(), y_.data(), other_.data(), x_.size());
      compare(other_, &got_);
    }
    x_.clear();
    y_.clear();
  }

  /// With the reference; where there is a `first`, only what differs from it.
  void compare(const std::vector<T>& got, const std::vector<T>* first) {
    for (size_t i = 0; i < x_.size(); ++i) {
      if (first != nullptr) {
        if (same_bits(got[i], (*first)[i])) continue;
        ++tally_.differences;
      }
      mpfr_set_d(exact_x_, x_[i], MPFR_RNDN);
      mpfr_set_d(exact_y_, y_[i], MPFR_RNDN);
      f_.exact(want_, exact_x_, exact_y_);
      const double nearest = nearest_in(kFormat<T>, want_, scratch_);
      if (same_bits(got[i], static_cast<T>(nearest))) continue;
      const Format unit = f_.cancels ? no_finer_than(kFormat<T>, std::max(x_[i], y_[i])) : kFormat<T>;
      const double ulp = ulp_error(unit, got[i], nearest, want_, scratch_);
      tally_.add(ulp, x_[i], y_[i], got[i]);
      if (std::isfinite(ulp)) keep({ulp, x_[i], y_[i]});
    }
  }

  /// The worst, each in another binade or half of one, so that they are not all neighbours.
  void keep(const Found& found) {
    constexpr size_t kKept = 24;
    const auto close = [](T a, T b) { return a == b || std::abs(a - b) < std::abs(b) / 64; };
    for (Found& other : worst_) {
      if (close(other.x, found.x) && (f_.arity == 1 || close(other.y, found.y))) {
        if (found.ulp > other.ulp) other = found;
        return;
      }
    }
    if (worst_.size() < kKept) {
      worst_.push_back(found);
      return;
    }
    const auto least = std::ranges::min_element(worst_, {}, &Found::ulp);
    if (found.ulp > least->ulp) *least = found;
  }

  void search(Random& random, size_t samples) {
    const std::vector<Found> around = worst_;
    if (around.empty()) return;
    const double bits = sizeof(T) == 4 ? 18 : 46;
    for (size_t i = 0; i < samples; ++i) {
      const Found& found = around[i % around.size()];
      add(beside(random, found.x, bits), f_.arity == 1 ? T(0) : beside(random, found.y, bits));
    }
    flush();
  }

  const MathFunction& f_;
  Kernel kernel_;
  std::vector<T> x_, y_, got_, other_;
  std::vector<Found> worst_;
  Exact exact_x_, exact_y_, want_, scratch_;
  Tally tally_;
};

}  // namespace

Tally measure_sampled(const MathFunction& f, DType dtype, size_t samples) {
  return dtype == DType::Float32 ? Sampler<float>(f).run(samples) : Sampler<double>(f).run(samples);
}

double reference_error(const MathFunction& f, size_t samples) {
  Random random(5);
  Exact exact_x, exact_y, want, scratch;
  double worst = 0;
  for (size_t i = 0; i < samples; ++i) {
    const double x = sample<float>(f, random, i);
    double got = 0;
    f.in_double(&x, &got, 1);
    mpfr_set_d(exact_x, x, MPFR_RNDN);
    f.exact(want, exact_x, exact_y);
    // What lies outside of a double's normal numbers is far outside of a float's.
    const double as_double = mpfr_get_d(want, MPFR_RNDN);
    if (!std::isnormal(as_double) || !std::isnormal(got)) continue;
    worst = std::max(worst, ulp_error(kFormatFloat32, got, as_double, want, scratch));
  }
  return worst;
}

}  // namespace tenon::accuracy
