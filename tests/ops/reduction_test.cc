#include <algorithm>
#include <cstring>
#include <map>

#include "tenon/core/parallel.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/view/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

/// Elements of `x` grouped by their position with dimension `dim` taken out, in logical order.
std::vector<std::vector<double>> groups(const Tensor& x, int64_t dim) {
  std::map<std::vector<int64_t>, std::vector<double>> by_place;
  for_each_position(x.sizes(), [&](std::span<const int64_t> at) {
    std::vector<int64_t> place(at.begin(), at.end());
    place.erase(place.begin() + dim);
    by_place[place].push_back(element(x, at));
  });
  std::vector<std::vector<double>> all;
  for (auto& [place, group] : by_place) all.push_back(group);
  return all;
}

template <class F>
std::vector<double> of_groups(const Tensor& x, int64_t dim, F&& f) {
  std::vector<double> results;
  for (const auto& g : groups(x, dim)) results.push_back(f(g));
  return results;
}

double sum_of(const std::vector<double>& v) {
  double s = 0;
  for (const double x : v) s += x;
  return s;
}

TEST(Sum, MatchesLoopsOnEveryStrideDtypeAndDimension) {
  for (const DType t : {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat32, kFloat64}) {
    for (const Tensor& x : every_stride({3, 4, 5}, t)) {
      const double tolerance = t == kFloat32 ? 1e-6 : t == kFloat64 ? 1e-14 : 0;
      expect_values(sum(x), {sum_of(values(x))}, tolerance);
      EXPECT_EQ(sum(x).dtype(), is_floating_point(t) ? t : kInt64);
      for (int64_t d = 0; d < 3; ++d) {
        expect_values(sum(x, IntArrayRef(d)), of_groups(x, d, sum_of), tolerance);
        expect_values(sum(x, IntArrayRef(d), true), of_groups(x, d, sum_of), tolerance);
      }
    }
  }
}

TEST(Sum, HasTheSameBitsForEveryStrideAndThreadCount) {
  const Tensor x = random_tensor({37, 129, 65}, kFloat32, 3);
  const Dims strides{1, 37, 37 * 129};
  Tensor y = make_view(make_empty({37 * 129 * 65}, kFloat32), x.sizes(), strides, 0);
  y.copy_(x);
  const auto same_bits = [](const Tensor& a, const Tensor& b) {
    const Tensor p = a.contiguous(), q = b.contiguous();
    return p.numel() == q.numel() && std::memcmp(p.data_ptr(), q.data_ptr(), p.nbytes()) == 0;
  };
  const int before = num_threads();
  for (const int threads : {1, 2}) {
    set_num_threads(threads);
    EXPECT_TRUE(same_bits(sum(x), sum(y)));
    for (const auto& dims : {Dims{0}, Dims{1}, Dims{2}, Dims{0, 1}, Dims{1, 2}, Dims{0, 2}}) {
      EXPECT_TRUE(same_bits(sum(x, IntArrayRef(dims)), sum(y, IntArrayRef(dims))));
      EXPECT_TRUE(
          same_bits(sum(x.flip({0, 1, 2}), IntArrayRef(dims)), sum(y.flip({0, 1, 2}), IntArrayRef(dims))));
    }
  }
  set_num_threads(before);
}

TEST(Sum, KnowsEmptyAndZeroDim) {
  expect_values(sum(zeros({0})), {0});
  expect_values(sum(zeros({0, 3}), IntArrayRef{0}), {0, 0, 0});
  expect_sizes(sum(zeros({0, 3}), IntArrayRef{1}), {0});
  expect_values(sum(tensor(3.5), IntArrayRef{0}), {3.5});
  expect_values(sum(tensor({1, 2}), IntArrayRef{}), {3});
  expect_sizes(sum(zeros({2, 3}), IntArrayRef{-1}, true), {2, 1});
}

TEST(Sum, ChecksDimensions) {
  const Tensor x = zeros({2, 3});
  expect_error(ErrorKind::Index, "out of range", [&] { sum(x, IntArrayRef{2}); });
  expect_error(ErrorKind::Value, "appears multiple times", [&] { sum(x, IntArrayRef{1, -1}); });
}

TEST(Sum, WritesOut) {
  const Tensor x = arange(6).view({2, 3});
  Tensor out = empty({0}, kInt64);
  sum_out(out, x, IntArrayRef{0});
  expect_values(out, {3, 5, 7});
  Tensor wrong = empty({5}, kInt64);
  expect_error(ErrorKind::Shape, "the result [3]", [&] { sum_out(wrong, x, IntArrayRef{0}); });
  Tensor backwards = zeros({3}, kInt64).flip({0});
  sum_out(backwards, x, IntArrayRef{0});
  expect_values(backwards, {3, 5, 7});
}

TEST(Mean, DividesAndRefusesIntegers) {
  for (const Tensor& x : every_stride({3, 4}, kFloat64)) {
    expect_values(mean(x), {sum_of(values(x)) / 12}, 1e-14);
    expect_values(mean(x, IntArrayRef{1}), of_groups(x, 1, [](const auto& g) { return sum_of(g) / 4; }),
                  1e-14);
  }
  expect_values(mean(arange(4), kFloat32), {1.5});
  expect_error(ErrorKind::Type, "floating point", [] { mean(arange(4)); });
  EXPECT_TRUE(std::isnan(values(mean(zeros({0})))[0]));
  EXPECT_EQ(mean(ones({4}, kFloat16)).dtype(), kFloat16);
}

TEST(Amax, MatchesLoopsAndPropagatesNaN) {
  for (const DType t : {kBool, kUInt8, kInt32, kInt64, kFloat16, kFloat32, kFloat64}) {
    for (const Tensor& x : every_stride({3, 4, 5}, t)) {
      for (int64_t d = 0; d < 3; ++d) {
        expect_values(amax(x, IntArrayRef(d)),
                      of_groups(x, d, [](const auto& g) { return *std::max_element(g.begin(), g.end()); }));
        expect_values(amin(x, IntArrayRef(d)),
                      of_groups(x, d, [](const auto& g) { return *std::min_element(g.begin(), g.end()); }));
      }
    }
  }
  expect_values(amax(tensor({1.0, NAN, 3.0})), {NAN});
  expect_error(ErrorKind::Index, "non-zero size", [] { amax(zeros({0, 3}), IntArrayRef{0}); });
  expect_sizes(amax(zeros({0, 3}), IntArrayRef{1}), {0});
}

TEST(Argmax, GivesTheFirstPosition) {
  for (const Tensor& x : every_stride({3, 7}, kInt32)) {
    expect_values(argmax(x, 1), of_groups(x, 1, [](const auto& g) {
                    return static_cast<double>(std::max_element(g.begin(), g.end()) - g.begin());
                  }));
    const auto all = values(x);
    EXPECT_EQ(argmin(x).item<int64_t>(), std::min_element(all.begin(), all.end()) - all.begin());
  }
  EXPECT_EQ(argmax(tensor({1.0, NAN, 3.0, NAN})).item<int64_t>(), 1);
  const auto [v, i] = max(tensor({{1, 5, 5}, {2, 0, 1}}), 1);
  expect_values(v, {5, 2});
  expect_values(i, {1, 0});
  expect_error(ErrorKind::Index, "no elements", [] { argmax(zeros({0})); });
}

TEST(AllAny, TreatNonzeroAsTrue) {
  const Tensor x = tensor({{1, 0, 2}, {3, 4, 5}});
  EXPECT_FALSE(all(x).item<bool>());
  EXPECT_TRUE(any(x).item<bool>());
  expect_values(all(x, 1), {0, 1});
  EXPECT_TRUE(all(zeros({0})).item<bool>());
  EXPECT_FALSE(any(zeros({0})).item<bool>());
  EXPECT_TRUE(any(tensor({NAN})).item<bool>());
  EXPECT_EQ(all(x).dtype(), kBool);
}

TEST(Prod, MultipliesInInt64) {
  expect_values(prod(tensor({2, 3, 4}, kInt8)), {24});
  expect_values(prod(tensor({{1., 2.}, {3., 4.}}), 0), {3, 8});
  expect_values(prod(zeros({0})), {1});
}

TEST(Cumsum, AddsAlongADimension) {
  for (const Tensor& x : every_stride({3, 4}, kFloat64)) {
    const Tensor y = cumsum(x, 1);
    for (int64_t i = 0; i < 3; ++i) {
      double s = 0;
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t at[] = {i, j};
        s += element(x, at);
        EXPECT_EQ(element(y, at), s);
      }
    }
  }
  EXPECT_EQ(cumsum(tensor({true, true}), 0).dtype(), kInt64);
}

// The documented order, written as a recursion: runs of 16 are chains, their totals are scanned likewise.
std::vector<double> scanned(const std::vector<double>& x) {
  if (x.empty()) return {};
  std::vector<double> places, totals;
  for (size_t i = 0; i < x.size(); ++i) {
    const double chain = i % 16 == 0 ? x[i] : places.back() + x[i];
    places.push_back(chain);
    if (i % 16 == 15) totals.push_back(chain);
  }
  const std::vector<double> before = scanned(totals);
  for (size_t i = 16; i < x.size(); ++i) places[i] = before[i / 16 - 1] + places[i];
  return places;
}

TEST(Cumsum, AddsInTheOrderOfATree) {
  for (const int64_t n : {1, 15, 16, 17, 255, 256, 257, 4095, 4097, 70'000}) {
    manual_seed(static_cast<uint64_t>(n));
    const Tensor x = randn({n}, kFloat64) * (randn({n}, kFloat64) * 8).exp();
    const auto* values = static_cast<const double*>(x.data_ptr());
    const std::vector<double> want = scanned({values, values + n});
    const Tensor found = cumsum(x, 0);
    // Among others: rows that go together.
    const Tensor column = cumsum(x.unsqueeze(1).expand({n, 9}).contiguous(), 0).select(1, 8).contiguous();
    const auto *row = static_cast<const double*>(found.data_ptr()),
               *columns = static_cast<const double*>(column.data_ptr());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(row[i], want[i]) << n << " " << i;
      ASSERT_EQ(columns[i], want[i]) << n << " " << i;
    }
  }
}

TEST(Cumprod, OfARunThatOverflowsAfterAZeroIsZero) {
  // Runs of 16: the first has a zero, the second is infinite in float64.
  const Tensor x = full({40}, 1e30, kFloat64).mul(1e20);
  x.select(0, 3).fill_(0.0);
  for (const Tensor& t :
       {cumprod(x, 0), cumprod(x.unsqueeze(1).expand({40, 9}), 0).select(1, 5), x.cumprod_(0)})
    for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(t.select(0, i).item().to_double() == 0, i >= 3) << i;
}

TEST(Var, DividesByNMinusCorrection) {
  const Tensor x = tensor({1., 2., 4., 9.});
  expect_values(var(x), {38.0 / 3}, 1e-6);
  expect_values(var(x, {}, Scalar(0)), {38.0 / 4}, 1e-6);
  expect_values(tenon::std(x), {std::sqrt(38.0 / 3)}, 1e-6);
}

TEST(Logsumexp, DoesNotOverflow) {
  expect_values(logsumexp(tensor({1000., 1000.}), IntArrayRef{0}), {1000 + std::log(2.0)}, 1e-6);
  expect_values(logsumexp(tensor({-INFINITY, -INFINITY}), IntArrayRef{0}), {-INFINITY});
}

TEST(SumToSize, UndoesBroadcasting) {
  const Tensor x = ones({2, 3, 4});
  expect_values(sum_to_size(x, {3, 1}), {8, 8, 8});
  expect_values(sum_to_size(x, {}), {24});
  expect_error(ErrorKind::Shape, "not expandable", [&] { sum_to_size(x, {2, 1}); });
}

}  // namespace
}  // namespace tenon
