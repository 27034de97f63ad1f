// The sample at the head of expr.h, as it stands there: room.cmake takes it out of the comment.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/pointwise/interpreter.h"
#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/print_simd.h"

namespace tenon::expr {
namespace {

TEST(Sample, OfTheHeaderRuns) {
#include "expr_sample.inc"
  EXPECT_FLOAT_EQ(y[0], 0.5f * std::expm1(-1.0f));
  EXPECT_EQ(y[1], 0);
  EXPECT_EQ(y[2], 2);
  EXPECT_NE(file.find("expm1_f32"), std::string::npos);
  EXPECT_EQ(backward, "where(self > 0, grad, grad * (exp(self) * alpha))");
  EXPECT_FALSE(saves_result);
}

}  // namespace
}  // namespace tenon::expr
