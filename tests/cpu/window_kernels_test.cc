// The loops of sums and maxima against loops over elements, for every instruction set that this machine has,
// at every length and step, with nothing read or written behind the ends.
#include "backends/cpu/window/window_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

namespace tenon::cpu {
namespace {

template <class T>
std::vector<T> some(size_t n, uint32_t seed) {
  std::mt19937 g(seed);
  std::vector<T> x(n);
  for (T& v : x) {
    v = static_cast<T>(static_cast<int>(g() % 7) - 3);
    if constexpr (std::is_floating_point_v<T>) {
      if (g() % 5 == 0) v = g() % 2 ? std::numeric_limits<T>::quiet_NaN() : T(-0.0);
      if (g() % 5 == 1) v = v / 3;
    }
  }
  return x;
}

/// Exactly as many elements as are given, so that sanitizers see what lies behind them.
template <class T>
std::unique_ptr<T[]> exactly(const std::vector<T>& x) {
  std::unique_ptr<T[]> p(new T[x.size()]);
  std::copy(x.begin(), x.end(), p.get());
  return p;
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b);
}

/// Three taps for each output, by both loops; inputs may be denser than outputs, or the other way round.
template <class T>
void check_listed(const SumKernels<T>& k, size_t n, size_t width) {
  using Place = typename SumKernels<T>::Place;
  const std::vector<T> x = some<T>(width, 7), weights = some<T>(3 * n, 8), before = some<T>(n, 9);
  std::vector<int64_t> begins(n + 1), places(3 * n);
  std::vector<Place> by_tap(3 * n);
  std::vector<T> weights_by_tap(3 * n), wanted = before;
  for (size_t o = 0; o < n; ++o) {
    begins[o + 1] = static_cast<int64_t>(3 * o + 3);
    for (size_t t = 0; t < 3; ++t) {
      const size_t i = 3 * o + t, place = std::min(o * width / n + t, width - 1);
      places[i] = static_cast<int64_t>(100 + place);
      by_tap[t * n + o] = static_cast<Place>(100 + place);
      weights_by_tap[t * n + o] = weights[i];
      const T product = weights[i] * x[place];
      wanted[o] += product;
    }
  }
  std::vector<T> out = before;
  k.listed(out.data(), x.data(), 100, begins.data(), places.data(), weights.data(), n);
  for (size_t o = 0; o < n; ++o) EXPECT_TRUE(same_bits(out[o], wanted[o]));
  out = before;
  const auto in = exactly(x);
  k.listed_evenly(out.data(), in.get(), width, 100, by_tap.data(), weights_by_tap.data(), 3, n, n, false);
  for (size_t o = 0; o < n; ++o) EXPECT_TRUE(same_bits(out[o], wanted[o]));
  // Sums that start at 0.
  std::vector<T> zeros(n, T(0));
  k.listed(zeros.data(), x.data(), 100, begins.data(), places.data(), weights.data(), n);
  k.listed_evenly(out.data(), in.get(), width, 100, by_tap.data(), weights_by_tap.data(), 3, n, n, true);
  for (size_t o = 0; o < n; ++o) EXPECT_TRUE(same_bits(out[o], zeros[o]));
}

/// Pixels of some elements each against their elements one by one.
template <class T>
void check_pixels(const SumKernels<T>& k, size_t n, size_t inner) {
  const std::vector<T> before = some<T>(n * inner, 10), weights = some<T>(2 * n, 11);
  const auto x = exactly(some<T>((n + 1) * 2 * inner, 12));
  std::vector<int64_t> begins(n + 1), places(2 * n);
  for (size_t o = 0; o < n; ++o) {
    begins[o + 1] = static_cast<int64_t>(2 * o + 2);
    places[2 * o] = static_cast<int64_t>(5 + o), places[2 * o + 1] = static_cast<int64_t>(6 + 2 * o);
  }
  std::vector<T> listed = before, fresh(n * inner), plain = before;
  k.listed_pixels(listed.data(), x.get(), 5, begins.data(), places.data(), weights.data(), inner, n, false);
  k.listed_pixels(fresh.data(), x.get(), 5, begins.data(), places.data(), weights.data(), inner, n, true);
  k.listed_pixels(plain.data(), x.get(), 5, begins.data(), places.data(), nullptr, inner, n, false);
  for (size_t o = 0; o < n; ++o) {
    for (size_t c = 0; c < inner; ++c) {
      const size_t i = o * inner + c;
      const T a = x[o * inner + c], b = x[(2 * o + 1) * inner + c];
      const T first = weights[2 * o] * a, second = weights[2 * o + 1] * b;
      EXPECT_TRUE(same_bits(listed[i], before[i] + first + second));
      EXPECT_TRUE(same_bits(fresh[i], T(0) + first + second));
      EXPECT_TRUE(same_bits(plain[i], before[i] + a + b));
    }
  }
}

template <class T>
void check_sums(const SumKernels<T>& k) {
  for (size_t n = 0; n < 40; ++n) {
    const std::vector<T> a = some<T>(n, 1), b = some<T>(n, 2);
    std::vector<T> out(n);
    k.add(out.data(), a.data(), b.data(), n);
    for (size_t i = 0; i < n; ++i) EXPECT_TRUE(same_bits(out[i], a[i] + b[i]));
    k.multiply(out.data(), a.data(), T(0.3), n);
    for (size_t i = 0; i < n; ++i) EXPECT_TRUE(same_bits(out[i], T(0.3) * a[i]));
    out = b;
    k.multiply_add(out.data(), a.data(), T(0.3), n);
    for (size_t i = 0; i < n; ++i) {
      const T product = T(0.3) * a[i];
      EXPECT_TRUE(same_bits(out[i], b[i] + product));
    }
    k.divide(out.data(), a.data(), T(7), n);
    for (size_t i = 0; i < n; ++i) EXPECT_TRUE(same_bits(out[i], a[i] / T(7)));
    k.divide_each(out.data(), a.data(), T(7), b.data(), n);
    for (size_t i = 0; i < n; ++i) EXPECT_TRUE(same_bits(out[i], a[i] / (T(7) * b[i])));
    const std::vector<T> weights = {T(0.3), T(-2), T(1) / 3};
    const T* rows[] = {a.data(), b.data(), a.data()};
    k.rows(out.data(), rows, nullptr, 3, n);
    for (size_t i = 0; i < n; ++i) EXPECT_TRUE(same_bits(out[i], a[i] + b[i] + a[i]));
    k.rows(out.data(), rows, weights.data(), 3, n);
    for (size_t i = 0; i < n; ++i) {
      const T first = weights[0] * a[i], second = weights[1] * b[i], third = weights[2] * a[i];
      EXPECT_TRUE(same_bits(out[i], first + second + third));
    }
    for (const size_t width : {1, 3, 10, 17, 60}) check_listed(k, n, width);
    for (const size_t inner : {1, 3, 16, 21}) check_pixels(k, n, inner);
    for (const int64_t step : {1, 2, 3, 5}) {
      const auto x = exactly(some<T>(n == 0 ? 0 : (n - 1) * static_cast<size_t>(step) + 1, 3));
      out = b;
      k.add_strided(out.data(), x.get(), step, n);
      for (size_t i = 0; i < n; ++i) EXPECT_TRUE(same_bits(out[i], b[i] + x[i * static_cast<size_t>(step)]));
    }
  }
}

/// Whether b, at a place behind or before that of a, takes its place.
template <class T, class Place>
bool wins(T a, Place place, T b, Place b_place) {
  if (b != b) return a == a || b_place > place;
  return b > a || (b == a && b_place < place);
}

template <class T, class Place>
void check_maxima(const MaxKernels<T, Place>& k) {
  for (size_t n = 0; n < 40; ++n) {
    const std::vector<T> a = some<T>(n, 4), b = some<T>(n, 5);
    std::vector<T> values(n);
    std::vector<Place> places(n);
    k.start(values.data(), places.data(), a.data(), 3, n);
    k.update(values.data(), places.data(), b.data(), 8, n);
    for (size_t i = 0; i < n; ++i) {
      const bool second = wins<T, Place>(a[i], 3, b[i], 8);
      EXPECT_EQ(places[i], second ? 8 : 3);
      EXPECT_TRUE(same_bits(values[i], second ? b[i] : a[i]));
    }
    k.start_with_two(values.data(), places.data(), a.data(), 3, b.data(), 8, n);
    for (size_t i = 0; i < n; ++i) {
      const bool second = wins<T, Place>(a[i], 3, b[i], 8);
      EXPECT_EQ(places[i], second ? 8 : 3);
      EXPECT_TRUE(same_bits(values[i], second ? b[i] : a[i]));
    }
    const std::vector<Place> before = places;
    k.locate(places.data(), 20, n);
    for (size_t i = 0; i < n; ++i) EXPECT_EQ(places[i], before[i] + static_cast<Place>(20 + i));
    for (const int64_t step : {1, 2, 3}) {
      const size_t m = n == 0 ? 0 : (n - 1) * static_cast<size_t>(step) + 1;
      const auto x = exactly(some<T>(m, 6));
      std::vector<Place> x_numbers(m);
      for (size_t i = 0; i < m; ++i) x_numbers[i] = static_cast<Place>(i * 7 % 11 + 16);
      const auto x_places = exactly(x_numbers);
      std::vector<T> got = a;
      std::vector<Place> got_places(n, 25);
      k.combine(got.data(), got_places.data(), x.get(), x_places.get(), 4, step, n);
      for (size_t i = 0; i < n; ++i) {
        const size_t j = i * static_cast<size_t>(step);
        const Place place = x_places[j] + 4;
        const bool second = wins<T, Place>(a[i], 25, x[j], place);
        EXPECT_EQ(got_places[i], second ? place : 25);
        EXPECT_TRUE(same_bits(got[i], second ? x[j] : a[i]));
      }
    }
  }
}

template <class T, class Place>
void check_maxima_of_pixels(const MaxKernels<T, Place>& k, size_t inner) {
  constexpr size_t kPixels = 5, kStep = 2;
  const std::vector<T> a = some<T>(kPixels * inner, 13), x = some<T>(kPixels * kStep * inner, 14);
  std::vector<Place> x_places(x.size());
  for (size_t i = 0; i < x.size(); ++i) x_places[i] = static_cast<Place>(i * 5 % 7 + 10);
  std::vector<T> got = a;
  std::vector<Place> places(a.size(), 20);
  k.combine_pixels(got.data(), places.data(), x.data(), x_places.data(), 3, kStep, inner, kPixels, false);
  std::vector<T> first(a.size());
  std::vector<Place> first_places(a.size());
  k.combine_pixels(first.data(), first_places.data(), x.data(), x_places.data(), 3, kStep, inner, kPixels,
                   true);
  for (size_t p = 0; p < kPixels; ++p) {
    for (size_t c = 0; c < inner; ++c) {
      const size_t i = p * inner + c, j = p * kStep * inner + c;
      const Place place = x_places[j] + static_cast<Place>(3 + p * kStep);
      const bool second = wins<T, Place>(a[i], 20, x[j], place);
      EXPECT_EQ(places[i], second ? place : 20);
      EXPECT_TRUE(same_bits(got[i], second ? x[j] : a[i]));
      EXPECT_EQ(first_places[i], place);
      EXPECT_TRUE(same_bits(first[i], x[j]));
    }
  }
}

TEST(WindowKernels, SumsAreThoseOfElementsOnEveryInstructionSet) {
  for (const CpuTarget target : supported_cpu_targets()) {
    check_sums(window_kernels(target).sum_f32);
    check_sums(window_kernels(target).sum_f64);
  }
}

TEST(WindowKernels, MaximaAreThoseOfElementsOnEveryInstructionSet) {
  for (const CpuTarget target : supported_cpu_targets()) {
    check_maxima(window_kernels(target).max_f32);
    check_maxima(window_kernels(target).max_f64);
    check_maxima(window_kernels(target).max_i64);
    for (const size_t inner : {1, 3, 16, 21}) {
      check_maxima_of_pixels(window_kernels(target).max_f32, inner);
      check_maxima_of_pixels(window_kernels(target).max_i64, inner);
    }
  }
}

}  // namespace
}  // namespace tenon::cpu
