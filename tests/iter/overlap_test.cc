#include "tenon/iter/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>

#include "tenon/core/dims.h"

namespace tenon {
namespace {

std::set<int64_t> bytes_of(const Placement& p) {
  std::set<int64_t> starts{p.address}, bytes;
  for (size_t d = 0; d < p.sizes.size(); ++d) {
    std::set<int64_t> next;
    for (const int64_t start : starts) {
      for (int64_t i = 0; i < p.sizes[d]; ++i) next.insert(start + i * p.strides[d] * p.item_size);
    }
    starts = std::move(next);
  }
  for (const int64_t start : starts) {
    for (int64_t b = 0; b < p.item_size; ++b) bytes.insert(start + b);
  }
  return bytes;
}

TEST(Overlap, SharedBytesAreThoseOfTheElements) {
  std::mt19937 random(24);
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  int shared = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    Dims sizes[2], strides[2];
    for (int k = 0; k < 2; ++k) {
      for (int64_t ndim = draw(0, 3); ndim > 0; --ndim) {
        sizes[k].push_back(draw(draw(0, 9) == 0 ? 0 : 1, 4));
        strides[k].push_back(draw(-9, 9));
      }
    }
    const Placement a{draw(0, 200), int64_t{1} << draw(0, 3), sizes[0], strides[0]};
    const Placement b{draw(0, 200), int64_t{1} << draw(0, 3), sizes[1], strides[1]};
    std::set<int64_t> both;
    const std::set<int64_t> of_a = bytes_of(a), of_b = bytes_of(b);
    std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                          std::inserter(both, both.begin()));
    ASSERT_EQ(share_bytes(a, b), !both.empty()) << trial;
    ASSERT_EQ(share_bytes(b, a), !both.empty()) << trial;
    shared += !both.empty();
  }
  EXPECT_GT(shared, kTrials / 10);
  EXPECT_LT(shared, kTrials * 9 / 10);
}

}  // namespace
}  // namespace tenon
