// Taps of axes against their definitions, for every small axis, and transposed axes against what they lead
// back from.
#include "tenon/ops/window/axis.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Taps = std::vector<std::pair<int64_t, double>>;

Taps taps_of(const Axis& axis, int64_t o) {
  Taps taps;
  axis.for_each_tap(o, [&](int64_t place, double weight) { taps.emplace_back(place, weight); });
  return taps;
}

/// Every tap of one is a tap of the other with the same weight.
void expect_transposed(const Axis& axis) {
  const Axis back = axis.transposed();
  ASSERT_EQ(back.inputs, axis.outputs);
  ASSERT_EQ(back.outputs, axis.inputs);
  for (int64_t i = 0; i < axis.inputs; ++i) {
    Taps wanted;
    for (int64_t o = 0; o < axis.outputs; ++o) {
      for (const auto& [place, weight] : taps_of(axis, o)) {
        if (place == i) wanted.emplace_back(o, weight);
      }
    }
    EXPECT_EQ(taps_of(back, i), wanted);
  }
}

TEST(Axis, WindowsHaveTheTapsInsideOfTheInput) {
  for (int64_t inputs = 1; inputs < 6; ++inputs)
    for (int64_t kernel = 1; kernel < 5; ++kernel)
      for (int64_t stride = 1; stride < 4; ++stride)
        for (int64_t pad = -2; pad < 4; ++pad)
          for (int64_t dilation = 1; dilation < 4; ++dilation) {
            const Axis axis = Axis::windows(inputs, 5, kernel, stride, pad, dilation);
            for (int64_t o = 0; o < axis.outputs; ++o) {
              Taps wanted;
              for (int64_t t = 0; t < kernel; ++t) {
                const int64_t place = o * stride - pad + t * dilation;
                if (place >= 0 && place < inputs) wanted.emplace_back(place, 1.0);
              }
              EXPECT_EQ(taps_of(axis, o), wanted);
            }
            expect_transposed(axis);
          }
}

TEST(Axis, AWindowThatIsNearlyAllPaddingHasFewTaps) {
  const Axis axis = Axis::windows(3, 2, int64_t{1} << 40, 1, int64_t{1} << 39, 1);
  EXPECT_EQ(taps_of(axis, 0).size(), 3);
}

TEST(Axis, AdaptiveWindowsTransposeToAdaptiveOnes) {
  for (int64_t inputs = 1; inputs < 12; ++inputs) {
    for (int64_t outputs = 1; outputs < 12; ++outputs) expect_transposed(Axis::adaptive(inputs, outputs));
  }
}

TEST(Axis, ListedTapsKeepWeightsAndRepeatedPlaces) {
  Axis axis = Axis::listed(3, 2);
  axis.add(0, 0.5);
  axis.add(0, 0.25);
  axis.next();
  axis.add(2, 1.0);
  axis.add(1, -1.0);
  axis.next();
  axis.divisors = {2, 3};
  EXPECT_EQ(taps_of(axis, 0), (Taps{{0, 0.5}, {0, 0.25}}));
  expect_transposed(axis);
  EXPECT_EQ(axis.transposed().input_divisors, axis.divisors);
  EXPECT_TRUE(axis.transposed().divisors.empty());
}

}  // namespace
}  // namespace tenon
