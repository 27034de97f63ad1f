// How attention is computed is a device's choice: by blocks, or by operators.
#include <gtest/gtest.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/attention/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tests/ops/blind_device.h"

namespace tenon {
namespace {

testing::BlindDevice& chooser() {
  static testing::BlindDevice& device = [&]() -> testing::BlindDevice& {
    testing::BlindDevice& made = testing::BlindDevice::make("chooser", "Chooser");
    set_cpu_fallback(made.backend(), {FallbackPolicy::Kind::All});
    return made;
  }();
  return device;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  return tenon::amax(tenon::abs(tenon::sub(a.to(kCPU), b))).item().to_double();
}

TEST(AttentionChoice, ByOperatorsGivesWhatBlocksGive) {
  const Device d = chooser().device();
  const Tensor q = randn({2, 4, 5, 3}), k = randn({2, 2, 6, 3}), v = randn({2, 2, 6, 3});
  const Tensor seen = gt(randn({5, 6}), Scalar(0)), added = randn({5, 6});
  EXPECT_EQ(_fused_sdp_choice(q, k, v, {}, 0, false, {}, true), 1);
  EXPECT_EQ(_fused_sdp_choice(q.to(d), k.to(d), v.to(d), {}, 0, false, {}, true), 1);
  static int asked = 0;
  asked = 0;
  for (const bool by_operators : {false, true}) {
    if (by_operators)
      ops::_fused_sdp_choice_stub.set(
          chooser().backend(),
          +[](const Tensor&, const Tensor&, const Tensor&, const Tensor&, double, bool, std::optional<double>,
              bool) -> int64_t {
            ++asked;
            return 0;
          });
    for (const Tensor& mask : {Tensor(), seen, added}) {
      for (const bool causal : {false, true}) {
        if (causal && mask.defined()) continue;
        const Tensor here = scaled_dot_product_attention(q, k, v, mask, 0, causal, {}, true);
        const Tensor there = scaled_dot_product_attention(
            q.to(d), k.to(d), v.to(d), mask.defined() ? mask.to(d) : mask, 0, causal, {}, true);
        EXPECT_LT(largest_difference(there, here), 1e-5);
      }
    }
  }
  EXPECT_EQ(asked, 4);
  Tensor x = q.clone(), y = q.to(d);
  x.requires_grad_();
  y.requires_grad_();
  scaled_dot_product_attention(x, k, v, {}, 0, true, 0.5, true).sum().backward();
  scaled_dot_product_attention(y, k.to(d), v.to(d), {}, 0, true, 0.5, true).sum().backward();
  EXPECT_LT(largest_difference(y.grad(), x.grad()), 1e-5);
  ops::_fused_sdp_choice_stub.set(chooser().backend(), nullptr);
}

}  // namespace
}  // namespace tenon
