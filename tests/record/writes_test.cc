// Writes in place, aliases, and what outlives its program.
#include "tests/record/beside_eager.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(RecordedWrites, OfSlicesAndTransposes) {
  alike([](auto c) {
    Tensor x = ramp({4, 5});
    auto f = c([&] {
      Tensor odd = x.slice(0, 0, {}, 2);
      odd.mul_(3);
      Tensor v = x.t().slice(0, 1);
      v.add_(x.select(0, 0).slice(0, 1).unsqueeze(1).clone());
      return Tensors{odd + 1, v, x * 2};
    });
    Tensors all = f();
    for (const Tensor& t : f()) all.push_back(t);
    all.push_back(x);
    return all;
  });
}

TEST(RecordedWrites, WhatWasReadBeforeKeepsItsValue) {
  alike([](auto c) {
    Tensor x = ramp({3, 4});
    const void* const address = x.data_ptr();
    auto f = c([&] {
      const Tensor y = x * 2, expanded = x.select(0, 0).expand({3, 4}) + 1, turned = x.flip({0}) - 1;
      x.add_(1);
      x.select(1, 2).zero_();
      return Tensors{y, expanded, turned, x + 0};
    });
    Tensors all = f();
    EXPECT_EQ(x.data_ptr(), address);
    all.push_back(x);
    return all;
  });
}

TEST(RecordedWrites, OverlappingOnesThrowAtTheirLine) {
  const auto f = [] {
    Tensor x = ramp({6});
    x.mul_(2);
    x.slice(0, 1).add_(x.slice(0, 0, 5));
  };
  const std::string wanted = error_of(f);
  EXPECT_NE(wanted.find("overlap"), std::string::npos) << wanted;
  EXPECT_EQ(error_of(compile(f, kAll)), wanted);
}

TEST(RecordedWrites, OfATemporaryWhoseOtherPartDies) {
  alike([](auto c) {
    auto f = c([](const Tensor& x) {
      Tensor y = x + 1;
      y.select(0, 0).zero_();
      Tensor part = y.slice(0, 1);
      part.t().mul_(2);
      return Tensors{part * 1, part};
    });
    return f(ramp({3, 4}));
  });
}

TEST(RecordedWrites, KeptTensorsHoldTheirOwnMemoryAlone) {
  std::vector<Tensor> kept;
  auto f = compile(
      [&](const Tensor& x) {
        const Tensor y = x * 2, z = y.exp() + x;
        kept.push_back(y.select(0, 1));
        kept.push_back(z.sum());
      },
      kAll);
  f(ramp({2, 3}));
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_FALSE(kept[0].storage()->is_pending());
  EXPECT_EQ(kept[0].storage().nbytes(), 6 * sizeof(float));
  EXPECT_EQ(kept[1].storage().nbytes(), sizeof(float));
  EXPECT_TRUE(same_bits(kept[0], ramp({2, 3}).select(0, 1) * 2));
}

TEST(RecordedWrites, ResizingSettingAndDetachingPendingTensors) {
  alike([](auto c) {
    auto f = c([](const Tensor& x) {
      Tensor y = x * 2, z = x + 1, w = x * 3;
      y.resize_({2});
      const Tensor small = y + 1;
      y.resize_({3, 2}).slice(0, 1).zero_();
      w.set_(z);
      z.add_(1);
      return Tensors{y.slice(0, 1), small, w, z};
    });
    return f(ramp({3, 2}));
  });
}

TEST(RecordedWrites, ThroughOutArgumentsOfAnotherDtype) {
  alike([](auto c) {
    auto f = c([](const Tensor& x) {
      Tensor wide = zeros({3}, kFloat64), resized = empty({0});
      mul_out(wide, x, x);
      add_out(resized, x, wide.to(kFloat32));
      return Tensors{wide, resized};
    });
    return f(ramp({3}));
  });
}

}  // namespace
}  // namespace tenon
