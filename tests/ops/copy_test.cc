#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(Copy, WritesEveryStrideFromEveryStride) {
  const Dims sizes{2, 3, 4};
  for (const Tensor& src : every_stride(sizes, kFloat32)) {
    for (Tensor dst : every_stride(sizes, kFloat64, 9)) {
      bool writable = true;
      for (const int64_t s : dst.strides()) writable &= s != 0;
      if (!writable) {
        expect_error(ErrorKind::Runtime, "single memory location", [&] { dst.copy_(src); });
        continue;
      }
      dst.copy_(src);
      expect_values(dst, values(src));
    }
  }
}

TEST(Copy, BroadcastsAndConverts) {
  Tensor x = zeros({2, 3}, kInt32);
  x.copy_(tensor({1.9, -1.9, 3.0}));
  expect_values(x, {1, -1, 3, 1, -1, 3});
  expect_error(ErrorKind::Shape, "does not broadcast", [&] { x.copy_(zeros({4})); });
  expect_values(x, {1, -1, 3, 1, -1, 3});
}

TEST(Copy, ReadsAnOverlappingSourceFirst) {
  Tensor x = arange(5);
  x.copy_(x.flip({0}));
  expect_values(x, {4, 3, 2, 1, 0});
  x.slice(0, 1, 5).copy_(x.slice(0, 0, 4));
  expect_values(x, {4, 4, 3, 2, 1});
}

TEST(To, ReturnsItselfWhenNothingChanges) {
  const Tensor x = arange(3);
  EXPECT_TRUE(x.to(kInt64).is_same(x));
  EXPECT_FALSE(x.to(kInt64, false, true).is_same(x));
  const Tensor h = tensor({1.0009765625, 70000.0}).to(kFloat16);
  expect_values(h, {1.0009765625, INFINITY});
  expect_values(h.to(kFloat32), {1.0009765625, INFINITY});
  expect_values(tensor({0.0, 2.0, NAN}).to(kBool), {0, 1, 1});
  EXPECT_TRUE(x.to(kMeta, kInt64).is_meta());
  expect_error(ErrorKind::NotImplemented, "meta tensor", [&] { x.to(kMeta, kInt64).to(kCPU, kInt64); });
}

TEST(Contiguous, CopiesExactlyWhenNeeded) {
  for (const Tensor& x : every_stride({2, 3}, kFloat32)) {
    const Tensor y = x.contiguous();
    EXPECT_TRUE(y.is_contiguous());
    EXPECT_EQ(y.is_same(x), x.is_contiguous());
    expect_values(y, values(x));
    EXPECT_NE(x.clone().data_ptr(), x.data_ptr());
  }
}

TEST(Item, ReadsOneElementOfEveryDtype) {
  for (const DType t :
       {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    EXPECT_EQ(full({1, 1}, 1, t).item().to_double(), 1.0) << name(t);
  }
  expect_error(ErrorKind::Runtime, "2 elements cannot be converted to Scalar", [] { zeros({2}).item(); });
  expect_error(ErrorKind::Runtime, "meta", [] { zeros({1}, kMeta).item(); });
  expect_error(ErrorKind::Runtime, "ambiguous", [] { zeros({2}).is_nonzero(); });
}

TEST(Fill, SetsEveryStride) {
  for (Tensor x : every_stride({2, 3, 4}, kFloat32)) {
    bool writable = true;
    for (const int64_t s : x.strides()) writable &= s != 0;
    if (!writable) continue;
    x.fill_(2.5);
    expect_values(x, std::vector<double>(24, 2.5));
    x.zero_();
    expect_values(x, std::vector<double>(24, 0));
    x.fill_(tensor(3));
    expect_values(x, std::vector<double>(24, 3));
  }
  expect_error(ErrorKind::Shape, "0-dimension", [] { zeros({2}).fill_(zeros({2})); });
  Tensor one = zeros({1});
  one.expand({3}).fill_(1);  // every order of writes gives the same
  expect_values(one, {1});
}

TEST(Equal, ComparesShapeAndElements) {
  EXPECT_TRUE(equal(arange(3), tensor({0, 1, 2})));
  EXPECT_FALSE(equal(arange(3), arange(4)));
  EXPECT_FALSE(equal(tensor({NAN}), tensor({NAN})));
  EXPECT_TRUE(equal(tensor({0.0}), tensor({-0.0})));
  // Dtypes promote, as in PyTorch.
  EXPECT_TRUE(equal(arange(3), arange(3).to(kFloat32)));
  EXPECT_FALSE(equal(arange(3), zeros({3})));
}

TEST(ReadOnlyMemory, IsReadButNeverWritten) {
  float data[3] = {1, 2, 3};
  const Tensor x = from_blob(data, {3});
  x.storage()->set_read_only(true);
  expect_values(add(x, x), {2, 4, 6});
  for (const auto& write : {+[](Tensor t) { t.add_(1); },
                            +[](Tensor t) {
                              t.view({3, 1}).zero_();
                            },
                            +[](Tensor t) { add_out(t, ones({3}), ones({3})); }}) {
    expect_error(ErrorKind::Runtime, "memory that may only be read", [&] { write(x); });
  }
  EXPECT_EQ(data[0], 1);
}

TEST(Resize, KeepsTheElementsThatFit) {
  Tensor x = arange(4);
  x.resize_({2, 3});
  expect_sizes(x, {2, 3});
  EXPECT_EQ(values(x)[3], 3);
  x.resize_({2});
  expect_values(x, {0, 1});
}

}  // namespace
}  // namespace tenon
