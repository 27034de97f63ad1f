#include <limits>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(Tensor, TakesNestedNumbers) {
  const Tensor x = tensor({{1., 2.}, {3., 4.}});
  EXPECT_EQ(x.dtype(), kFloat32);
  expect_sizes(x, {2, 2});
  expect_values(x, {1, 2, 3, 4});
  EXPECT_EQ(tensor({1, 2, 3}).dtype(), kInt64);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor({1, 2.5}).dtype(), kFloat32);
  EXPECT_EQ(tensor(3).dim(), 0);
  expect_sizes(tensor({}), {0});
  EXPECT_EQ(tensor({1, 2}, kFloat64).dtype(), kFloat64);
  expect_error(ErrorKind::Value, "expected sequence of length 2 at dim 1 (got 1)", [] {
    tensor({{1, 2}, {3}});
  });
  expect_error(ErrorKind::Value, "tensor:", [] { tensor({1, {2, 3}}); });
  expect_values(tensor(std::vector<float>{1.5f, 2.5f}), {1.5, 2.5});
}

TEST(FromBlob, BorrowsMemoryWithAnyStride) {
  float memory[] = {0, 1, 2, 3, 4, 5};
  const Tensor x = from_blob(memory + 5, {2, 3}, {-3, -1}, TensorOptions(kFloat32));
  expect_values(x, {5, 4, 3, 2, 1, 0});
  memory[5] = 9;
  EXPECT_EQ(values(x)[0], 9);
  int freed = 0;
  {
    const Tensor owned = from_blob(
        memory, {6}, {1}, [&](void*) { ++freed; }, TensorOptions(kFloat32));
  }
  EXPECT_EQ(freed, 1);
  expect_error(ErrorKind::Value, "null", [] { from_blob(nullptr, {2}); });
}

TEST(Full, InfersItsDtypeFromTheValue) {
  EXPECT_EQ(full({2}, 3).dtype(), kInt64);
  EXPECT_EQ(full({2}, 3.0).dtype(), kFloat32);
  EXPECT_EQ(full({2}, true).dtype(), kBool);
  expect_values(full({2, 2}, 7, kFloat16), {7, 7, 7, 7});
  expect_error(ErrorKind::Value, "without overflow", [] { full({2}, 300, kUInt8); });
  expect_error(ErrorKind::Shape, "negative size", [] { zeros({-1}); });
  expect_error(ErrorKind::Shape, "int64", [] { zeros({int64_t{1} << 40, int64_t{1} << 40}); });
}

TEST(Arange, CountsAsPython) {
  expect_values(arange(5), {0, 1, 2, 3, 4});
  expect_values(arange(1, 4), {1, 2, 3});
  expect_values(arange(5, 0, -2), {5, 3, 1});
  EXPECT_EQ(arange(0, 1, 0.25).dtype(), kFloat32);
  expect_values(arange(0, 1, 0.25), {0, 0.25, 0.5, 0.75});
  EXPECT_EQ(arange(3, kInt32).dtype(), kInt32);
  expect_sizes(arange(0), {0});
  expect_error(ErrorKind::Value, "nonzero", [] { arange(0, 1, 0); });
  expect_error(ErrorKind::Value, "inconsistent", [] { arange(0, 1, -1); });
}

TEST(Linspace, EndsExactly) {
  const Tensor x = linspace(0, 1, 7, kFloat64);
  EXPECT_EQ(values(x).back(), 1.0);
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(values(x)[static_cast<size_t>(i)], i / 6.0, 2e-16);
  expect_values(linspace(3, 4, 1), {3});
}

TEST(Eye, HasOnesOnItsDiagonal) {
  expect_values(eye(2, 3), {1, 0, 0, 0, 1, 0});
  expect_sizes(eye(0), {0, 0});
}

TEST(FactoryOut, TakesDtypeAndDeviceFromOut) {
  Tensor out = empty({0}, kFloat64);
  EXPECT_TRUE(arange_out(out, 2, 8, 3).is_same(out));
  expect_values(out, {2, 5});
  EXPECT_EQ(out.dtype(), kFloat64);
  Tensor backwards = zeros({4, 3}, kInt32).flip({0});
  expect_values(full_out(backwards, {4, 3}, 7), std::vector<double>(12, 7));
  expect_strides(backwards, {-3, 1});
  Tensor meta = empty({0}, kMeta);
  EXPECT_TRUE(eye_out(meta, 2, 3).is_meta());
  expect_sizes(meta, {2, 3});
  Tensor fits = full({2, 2}, 9.0);
  expect_values(empty_out(fits, {2, 2}), {9, 9, 9, 9});
  const uint64_t version = fits._version();
  expect_values(zeros_out(fits, {2, 2}), {0, 0, 0, 0});
  EXPECT_EQ(fits._version(), version + 1);
  expect_error(ErrorKind::Shape, "zeros: `out` has shape [2, 2], the result [3]",
               [&] { zeros_out(fits, {3}); });
  expect_error(ErrorKind::Value, "full: value 300", [&] {
    Tensor bytes = zeros({2}, kInt8);
    full_out(bytes, {2}, 300);
  });
}

TEST(FactoryOut, DrawsTheNumbersOfTheFunctionalForm) {
  const Generator generator(7), same(7);
  Tensor out = zeros({3, 4}).t();
  expect_error(ErrorKind::Shape, "randn: `out` has shape [4, 3], the result [2, 3]", [&] {
    randn_out(out, {2, 3}, generator);
  });
  expect_values(randn_out(out, {4, 3}, generator), values(randn({4, 3}, same)));
}

TEST(EmptyLike, KeepsTheOrderOfDimensions) {
  const Tensor x = zeros({2, 3, 4}).permute({2, 0, 1});
  expect_strides(empty_like(x), {1, 12, 4});
  expect_strides(empty_like(x, {}, MemoryFormat::Contiguous), {6, 3, 1});
  expect_strides(empty_like(x.flip({0})), {1, 12, 4});
  expect_strides(empty_like(zeros({1, 3}).expand({2, 3})), {3, 1});
  EXPECT_EQ(zeros_like(x, kInt32).dtype(), kInt32);
  expect_strides(empty({1, 2, 3, 3}, {}, MemoryFormat::ChannelsLast), {18, 1, 6, 2});
}

TEST(Empty, RefusesWhatItCannotMake) {
  expect_error(ErrorKind::NotImplemented, "SparseCPU",
               [] { empty({2}, TensorOptions().layout(Layout::Sparse)); });
  expect_error(ErrorKind::Runtime, "Pin memory can only be on CPU",
               [] { empty({2}, TensorOptions(kMeta).pinned_memory(true)); });
  const Tensor m = empty({1000000, 1000000}, kMeta);
  EXPECT_TRUE(m.is_meta());
  EXPECT_EQ(m.numel(), 1000000000000);
}

}  // namespace
}  // namespace tenon
