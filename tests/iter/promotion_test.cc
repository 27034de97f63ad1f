#include "tenon/iter/promotion.h"

#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

// torch.promote_types, from its documentation.
constexpr DType b = DType::Bool, u1 = DType::UInt8, i1 = DType::Int8, i2 = DType::Int16, i4 = DType::Int32,
                i8 = DType::Int64, f2 = DType::Float16, bf = DType::BFloat16, f4 = DType::Float32,
                f8 = DType::Float64, c8 = DType::Complex64, c16 = DType::Complex128;
constexpr DType kOrder[] = {b, u1, i1, i2, i4, i8, f2, bf, f4, f8, c8, c16};
constexpr DType kPromoted[12][12] = {
    //   b    u1   i1   i2   i4   i8   f2   bf   f4   f8   c8   c16
    {b, u1, i1, i2, i4, i8, f2, bf, f4, f8, c8, c16},             // b
    {u1, u1, i2, i2, i4, i8, f2, bf, f4, f8, c8, c16},            // u1
    {i1, i2, i1, i2, i4, i8, f2, bf, f4, f8, c8, c16},            // i1
    {i2, i2, i2, i2, i4, i8, f2, bf, f4, f8, c8, c16},            // i2
    {i4, i4, i4, i4, i4, i8, f2, bf, f4, f8, c8, c16},            // i4
    {i8, i8, i8, i8, i8, i8, f2, bf, f4, f8, c8, c16},            // i8
    {f2, f2, f2, f2, f2, f2, f2, f4, f4, f8, c8, c16},            // f2
    {bf, bf, bf, bf, bf, bf, f4, bf, f4, f8, c8, c16},            // bf
    {f4, f4, f4, f4, f4, f4, f4, f4, f4, f8, c8, c16},            // f4
    {f8, f8, f8, f8, f8, f8, f8, f8, f8, f8, c16, c16},           // f8
    {c8, c8, c8, c8, c8, c8, c8, c8, c8, c16, c8, c16},           // c8
    {c16, c16, c16, c16, c16, c16, c16, c16, c16, c16, c16, c16}  // c16
};

Tensor dim(DType t) { return make_empty({2}, t); }
Tensor zero_dim(DType t) { return make_empty({}, t); }
DType common(const Tensor& x, const Tensor& y) {
  Promotion p;
  p.add(x);
  p.add(y);
  return p.common();
}
DType common(const Tensor& x, const Scalar& y) {
  Promotion p;
  p.add(x);
  p.add(y);
  return p.common();
}

TEST(Promotion, TensorsOfOneRankFollowTheTable) {
  for (int i = 0; i < 12; ++i) {
    for (int j = 0; j < 12; ++j) {
      // Half with complex: torch's table says complex64 for both.
      EXPECT_EQ(common(dim(kOrder[i]), dim(kOrder[j])), kPromoted[i][j]) << i << ' ' << j;
      EXPECT_EQ(common(zero_dim(kOrder[i]), zero_dim(kOrder[j])), kPromoted[i][j]) << i << ' ' << j;
    }
  }
}

TEST(Promotion, DimensionsOutrankZeroDim) {
  EXPECT_EQ(common(dim(f4), zero_dim(f8)), f4);
  EXPECT_EQ(common(zero_dim(f8), dim(f4)), f4);
  EXPECT_EQ(common(dim(f2), zero_dim(f8)), f2);
  EXPECT_EQ(common(dim(i4), zero_dim(i8)), i4);
  EXPECT_EQ(common(dim(u1), zero_dim(i8)), u1);
  EXPECT_EQ(common(dim(i4), zero_dim(f8)), f8);  // another category: the width counts
  EXPECT_EQ(common(dim(i4), zero_dim(f2)), f2);
  EXPECT_EQ(common(dim(b), zero_dim(u1)), u1);
  EXPECT_EQ(common(dim(b), zero_dim(i8)), i8);
  EXPECT_EQ(common(dim(f4), zero_dim(c16)), c8);
  EXPECT_EQ(common(dim(f8), zero_dim(c8)), c16);
  EXPECT_EQ(common(dim(i4), zero_dim(c8)), c8);
}

TEST(Promotion, NumbersBringOnlyTheirCategory) {
  EXPECT_EQ(common(dim(i4), Scalar(2)), i4);
  EXPECT_EQ(common(dim(u1), Scalar(-1)), u1);
  EXPECT_EQ(common(dim(b), Scalar(2)), i8);
  EXPECT_EQ(common(dim(b), Scalar(true)), b);
  EXPECT_EQ(common(dim(i4), Scalar(true)), i4);
  EXPECT_EQ(common(dim(i8), Scalar(0.5)), f4);
  EXPECT_EQ(common(dim(b), Scalar(0.5)), f4);
  EXPECT_EQ(common(dim(f2), Scalar(0.5)), f2);
  EXPECT_EQ(common(dim(f8), Scalar(0.5)), f8);
  EXPECT_EQ(common(zero_dim(i4), Scalar(2)), i4);
  EXPECT_EQ(common(zero_dim(f8), Scalar(0.5)), f8);
  EXPECT_EQ(common(zero_dim(i4), Scalar(0.5)), f4);
  EXPECT_EQ(common(dim(f4), Scalar(std::complex<double>(0, 1))), c8);
}

TEST(Promotion, WrappedTensorsPromoteAsNumbers) {
  Tensor wrapped = zero_dim(f8);
  wrapped.impl()->set_wrapped_number(true);
  EXPECT_EQ(common(dim(i4), wrapped), f4);
  EXPECT_EQ(common(zero_dim(f2), wrapped), f2);
}

TEST(Promotion, FollowsTheDefaultDtype) {
  set_default_dtype(f8);
  EXPECT_EQ(common(dim(i4), Scalar(0.5)), f8);
  set_default_dtype(f4);
}

}  // namespace
}  // namespace tenon::testing
