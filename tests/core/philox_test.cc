#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "tenon/core/parallel.h"
#include "tenon/core/philox.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"

namespace tenon {
namespace {

using random::PhiloxBlock;

TEST(Philox, GivesThePublishedAnswers) {
  // kat_vectors of Random123: philox4x32, 10 rounds.
  EXPECT_EQ(random::philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(random::philox4x32_10({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(random::philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

template <class T>
std::vector<double> numbers(const Tensor& t) {
  const Tensor c = t.contiguous();
  const T* p = static_cast<const T*>(c.data_ptr());
  return std::vector<double>(p, p + c.numel());
}

double moment(const std::vector<double>& x, double about, int power) {
  double s = 0;
  for (const double v : x) s += std::pow(v - about, power);
  return s / static_cast<double>(x.size());
}

TEST(Rand, IsTheStreamsWords) {
  manual_seed(42);
  const auto x = numbers<float>(rand({6}));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(x[i], static_cast<double>(random::philox_block(42, i / 4)[i % 4] >> 8) * 0x1p-24);
  }
  // The next call starts on the next whole block.
  EXPECT_EQ(numbers<float>(rand({1}))[0], static_cast<double>(random::philox_block(42, 2)[0] >> 8) * 0x1p-24);
}

TEST(Rand, DoesNotDependOnThreadsOrStrides) {
  const int before = num_threads();
  set_num_threads(1);
  manual_seed(7);
  const Tensor one = randn({300, 101});
  set_num_threads(2);
  manual_seed(7);
  const Tensor two = randn({300, 101});
  set_num_threads(before);
  EXPECT_EQ(std::memcmp(one.data_ptr(), two.data_ptr(), one.nbytes()), 0);
  manual_seed(7);
  Tensor strided = empty({101, 300}).t();
  strided.normal_();
  EXPECT_TRUE(equal(strided, one));
}

TEST(Rand, HasTheMomentsOfItsDistribution) {
  manual_seed(1);
  const auto u = numbers<float>(rand({200000}));
  EXPECT_GE(*std::min_element(u.begin(), u.end()), 0);
  EXPECT_LT(*std::max_element(u.begin(), u.end()), 1);
  EXPECT_NEAR(moment(u, 0, 1), 0.5, 0.003);
  EXPECT_NEAR(moment(u, 0.5, 2), 1.0 / 12, 0.001);
  const auto h = numbers<double>(rand({5000}, kFloat16).to(kFloat64));
  EXPECT_LT(*std::max_element(h.begin(), h.end()), 1);
  Tensor scaled = empty({20000}, kFloat64);
  scaled.uniform_(-3, 5);
  EXPECT_NEAR(moment(numbers<double>(scaled), 0, 1), 1, 0.1);
}

TEST(Randn, HasTheMomentsOfItsDistribution) {
  for (const DType t : {kFloat32, kFloat64}) {
    manual_seed(2);
    const auto x = numbers<double>(randn({200000}, t).to(kFloat64));
    EXPECT_NEAR(moment(x, 0, 1), 0, 0.01);
    EXPECT_NEAR(moment(x, 0, 2), 1, 0.015);
    EXPECT_NEAR(moment(x, 0, 3), 0, 0.04);
    EXPECT_NEAR(moment(x, 0, 4), 3, 0.1);
    double lag = 0;
    for (size_t i = 0; i + 1 < x.size(); ++i) lag += x[i] * x[i + 1];
    EXPECT_NEAR(lag / static_cast<double>(x.size()), 0, 0.01);
  }
}

TEST(Randn, IsBoxMullerOfTheStreamsWords) {
  manual_seed(5);
  const auto x = numbers<double>(randn({4}, kFloat64));
  for (size_t pair = 0; pair < 2; ++pair) {
    const PhiloxBlock b = random::philox_block(5, pair);
    const double u = (static_cast<double>(b[1]) * 4294967296.0 + b[0]) * 0x1p-64;
    const double v = static_cast<double>((static_cast<uint64_t>(b[3]) << 32 | b[2]) >> 11) * 0x1p-53;
    EXPECT_NEAR(x[2 * pair], std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v), 1e-12);
    EXPECT_NEAR(x[2 * pair + 1], std::sqrt(-2 * std::log(u)) * std::sin(2 * M_PI * v), 1e-12);
  }
}

TEST(Randperm, IsTheOrderOfTheStreamsWords) {
  for (const int64_t n : {0, 1, 2, 7, 1000, 100'003}) {
    std::vector<std::pair<uint64_t, int64_t>> words;
    for (int64_t i = 0; i < n; ++i) {
      const PhiloxBlock b = random::philox_block(5, static_cast<uint64_t>(i / 2));
      const auto half = static_cast<size_t>(2 * (i % 2));
      words.emplace_back(static_cast<uint64_t>(b[half + 1]) << 32 | b[half], i);
    }
    std::sort(words.begin(), words.end());
    manual_seed(5);
    const auto found = numbers<int64_t>(randperm(n));
    for (size_t i = 0; i < found.size(); ++i) ASSERT_EQ(found[i], static_cast<double>(words[i].second));
  }
}

TEST(Randperm, IsAPermutationThatTheSeedDecides) {
  manual_seed(3);
  auto p = numbers<int64_t>(randperm(1000));
  manual_seed(3);
  EXPECT_EQ(p, numbers<int64_t>(randperm(1000)));
  EXPECT_NE(p, numbers<int64_t>(randperm(1000)));
  std::sort(p.begin(), p.end());
  for (size_t i = 0; i < p.size(); ++i) EXPECT_EQ(p[i], static_cast<double>(i));
  // Each of the six orders of three comes about as often as the others.
  int counts[27] = {};
  for (int i = 0; i < 6000; ++i) {
    const auto q = numbers<int64_t>(randperm(3));
    ++counts[static_cast<int>(9 * q[0] + 3 * q[1] + q[2])];
  }
  for (const int code : {5, 7, 11, 15, 19, 21}) EXPECT_NEAR(counts[code], 1000, 150);
}

TEST(Randint, StaysInItsRange) {
  manual_seed(4);
  const auto x = numbers<int64_t>(randint(-3, 4, {7000}));
  int counts[7] = {};
  for (const double v : x) ++counts[static_cast<int>(v) + 3];
  for (const int c : counts) EXPECT_NEAR(c, 1000, 150);
  EXPECT_THROW(randint(4, 4, {2}), Error);
}

TEST(Bernoulli, HitsWithItsProbability) {
  manual_seed(6);
  Tensor x = empty({20000});
  x.bernoulli_(0.3);
  EXPECT_NEAR(moment(numbers<float>(x), 0, 1), 0.3, 0.02);
}

TEST(Generator, KeepsAStreamOfItsOwn) {
  Generator g(9);
  const Tensor a = rand({5}, g);
  manual_seed(9);
  EXPECT_TRUE(equal(a, rand({5})));
  g.manual_seed(9);
  EXPECT_TRUE(equal(a, rand({5}, g)));
}

TEST(Normal, ChecksItsArguments) {
  Tensor x = empty({2});
  EXPECT_THROW(x.normal_(0, -1), Error);
  EXPECT_THROW(x.uniform_(1, 0), Error);
  EXPECT_THROW(empty({2}, kInt64).normal_(), Error);
}

}  // namespace
}  // namespace tenon
