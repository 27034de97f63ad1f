#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(View, SharesStorageAndInfersOneSize) {
  const Tensor x = arange(12);
  const Tensor v = x.view({3, -1});
  expect_sizes(v, {3, 4});
  EXPECT_EQ(v.data_ptr(), x.data_ptr());
  expect_error(ErrorKind::Shape, "is invalid for input of size 12", [&] { x.view({5, -1}); });
  expect_error(ErrorKind::Shape, "only one dimension can be inferred", [&] { x.view({-1, -1}); });
}

TEST(View, NeedsStridesThatFit) {
  const Tensor x = arange(12).view({3, 4}).t();
  expect_error(ErrorKind::Shape, "not compatible", [&] { x.view({12}); });
  expect_values(x.reshape({12}), {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
}

TEST(View, SplitsAndMergesReversedDimensions) {
  const Tensor x = arange(12).flip({0});
  const Tensor v = x.view({3, 4});
  expect_strides(v, {-4, -1});
  expect_values(v, {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  expect_strides(v.view({12}), {-1});
}

TEST(View, EmptyTensorsTakeAnyEmptyShape) {
  const Tensor x = zeros({0, 3});
  expect_sizes(x.view({3, 0, 2}), {3, 0, 2});
  expect_error(ErrorKind::Shape, "ambiguous", [&] { x.view({0, -1}); });
}

TEST(Transpose, MatchesIndexArithmeticOnEveryStride) {
  for (const Tensor& x : every_stride({2, 3, 4}, kFloat32)) {
    const Tensor y = x.transpose(0, -1);
    for_each_position(y.sizes(), [&](std::span<const int64_t> at) {
      const int64_t from[] = {at[2], at[1], at[0]};
      EXPECT_EQ(element(y, at), element(x, from));
    });
  }
  expect_error(ErrorKind::Index, "out of range", [] { zeros({2}).transpose(0, 1); });
  expect_error(ErrorKind::Shape, "<= 2 dimensions", [] { zeros({2, 2, 2}).t(); });
}

TEST(Permute, ChecksItsOrder) {
  const Tensor x = arange(24).view({2, 3, 4});
  expect_strides(x.permute({2, 0, -2}), {1, 12, 4});
  expect_error(ErrorKind::Value, "multiple times", [&] { x.permute({0, 0, 1}); });
  expect_error(ErrorKind::Shape, "does not match", [&] { x.permute({0, 1}); });
  expect_sizes(x.movedim(0, -1), {3, 4, 2});
  expect_sizes(x.numpy_T(), {4, 3, 2});
  expect_sizes(x.mT(), {2, 4, 3});
}

TEST(Slice, FollowsPythonWithNegativeSteps) {
  const Tensor x = arange(10);
  const auto check = [&](std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step,
                         std::vector<double> want) {
    const Tensor y = x.slice(0, start, stop, step);
    expect_values(y, want);
    EXPECT_EQ(y.storage().address(), x.storage().address());
  };
  check({}, {}, -1, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0});
  check(2, 8, 3, {2, 5});
  check(-3, {}, 1, {7, 8, 9});
  check(8, 2, -2, {8, 6, 4});
  check({}, -4, -1, {9, 8, 7});
  check(100, -100, -4, {9, 5, 1});
  check(5, 5, 1, {});
  check(5, 7, -1, {});
  check(INT64_MIN, INT64_MAX, INT64_MAX, {0});
  check({}, {}, INT64_MIN, {9});
  expect_error(ErrorKind::Value, "step cannot be zero", [&] { x.slice(0, {}, {}, 0); });
}

TEST(Select, ChecksIndexAndDimension) {
  const Tensor x = arange(12).view({3, 4});
  expect_values(x.select(0, -1), {8, 9, 10, 11});
  EXPECT_EQ(x.select(1, 2).storage_offset(), 2);
  expect_error(ErrorKind::Index, "out of range", [&] { x.select(0, 3); });
  expect_error(ErrorKind::Index, "0-dim", [] { scalar_tensor(1).select(0, 0); });
}

TEST(Expand, StrideZeroSharesStorage) {
  const Tensor row = arange(4).view({1, 4});
  const Tensor all = row.expand({2, 3, -1});
  expect_strides(all, {0, 0, 1});
  EXPECT_EQ(all.data_ptr(), row.data_ptr());
  expect_error(ErrorKind::Shape, "must match the existing size", [&] { row.expand({1, 5}); });
  expect_error(ErrorKind::Shape, "leading", [&] { row.expand({-1, 1, 4}); });
  expect_sizes(zeros({1, 0}).expand({0, 0}), {0, 0});
}

TEST(Flip, IsAViewWithNegativeStride) {
  const Tensor x = arange(6).view({2, 3});
  const Tensor y = x.flip({0, 1});
  expect_strides(y, {-3, -1});
  EXPECT_EQ(y.storage_offset(), 5);
  EXPECT_EQ(y.storage().address(), x.storage().address());
  expect_values(y, {5, 4, 3, 2, 1, 0});
  expect_error(ErrorKind::Value, "multiple times", [&] { x.flip({0, 0}); });
}

TEST(AsStrided, StaysInsideTheStorage) {
  const Tensor x = arange(6);
  expect_values(x.as_strided({2, 2}, {-2, 1}, 3), {3, 4, 1, 2});
  expect_error(ErrorKind::Shape, "outside the storage", [&] { x.as_strided({2, 2}, {4, 3}); });
  expect_error(ErrorKind::Shape, "outside the storage", [&] { x.as_strided({3}, {-1}, 1); });
  expect_error(ErrorKind::Shape, "int64", [&] { x.as_strided({INT64_MAX, 2}, {INT64_MAX, 1}); });
  expect_error(ErrorKind::Shape, "length", [&] { x.as_strided({2}, {1, 1}); });
}

TEST(Squeeze, DropsOnlyDimensionsOfSizeOne) {
  const Tensor x = zeros({1, 2, 1, 3});
  expect_sizes(x.squeeze(), {2, 3});
  expect_sizes(x.squeeze(1), {1, 2, 1, 3});
  expect_sizes(x.squeeze(-2), {1, 2, 3});
  expect_sizes(x.squeeze(IntArrayRef{0, 2}), {2, 3});
  expect_sizes(x.unsqueeze(-1), {1, 2, 1, 3, 1});
  expect_sizes(scalar_tensor(1).unsqueeze(0), {1});
}

TEST(Diagonal, TakesOffsetsOnBothSides) {
  const Tensor x = arange(12).view({3, 4});
  expect_values(x.diagonal(), {0, 5, 10});
  expect_values(x.diagonal(1), {1, 6, 11});
  expect_values(x.diagonal(-2), {8});
  expect_sizes(x.diagonal(7), {0});
}

TEST(Unfold, MakesWindows) {
  const Tensor x = arange(7);
  expect_values(x.unfold(0, 3, 2), {0, 1, 2, 2, 3, 4, 4, 5, 6});
  expect_error(ErrorKind::Value, "maximum size", [&] { x.unfold(0, 8, 1); });
}

TEST(Split, GivesViewsThatCoverTheDimension) {
  const Tensor x = arange(10);
  const auto parts = x.split(4);
  ASSERT_EQ(parts.size(), 3u);
  expect_values(parts[2], {8, 9});
  EXPECT_EQ(x.chunk(4).size(), 4u);
  EXPECT_EQ(x.view({2, 5}).unbind(1).size(), 5u);
  expect_error(ErrorKind::Value, "exceeds dimension size", [&] { x.narrow(0, 8, 3); });
  expect_sizes(x.view({2, 5}).flatten(), {10});
  expect_sizes(x.unflatten(0, {2, -1}), {2, 5});
}

TEST(Detach, KeepsStorageAndDropsTheBase) {
  const Tensor x = arange(4);
  const Tensor d = x.detach();
  EXPECT_EQ(d.data_ptr(), x.data_ptr());
  EXPECT_FALSE(d.is_view());
  EXPECT_TRUE(x.view({2, 2}).is_view());
}

TEST(ReshapeAlias, IsAViewWithTheStridesThatAViewHas) {
  const Tensor x = arange(12, TensorOptions().dtype(kFloat32)).reshape({3, 4});
  const Tensor y = _reshape_alias(x.t(), {2, 2, 3}, {2, 1, 4});
  testing::expect_values(y, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  EXPECT_EQ(y.data_ptr(), x.data_ptr());
  testing::expect_error(
      ErrorKind::Shape,
      "_reshape_alias: sizes [12] with strides [1] are no view of sizes [4, 3] with strides "
      "[1, 4]; use as_strided",
      [&] { (void)_reshape_alias(x.t(), {12}, {1}); });
  testing::expect_error(ErrorKind::Shape, "sizes [3, 4] with strides [5, 1]", [&] {
    (void)_reshape_alias(x, {3, 4}, {5, 1});
  });
  testing::expect_error(ErrorKind::Shape, "sizes [5] with strides [1]",
                        [&] { (void)_reshape_alias(x, {5}, {1}); });
}

}  // namespace
}  // namespace tenon
