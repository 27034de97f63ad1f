// Worked examples 1 to 4 and 6 of the specification: a tensor is a view.
#include <gtest/gtest.h>

#include "tenon/core/copy_report.h"
#include "tenon/dispatch/key.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/iter/tensor_iterator.h"
#include "tenon/ops/print.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(Worked1, ATensorIsAViewOverAStorage) {
  const Tensor x = tensor({{1., 2.}, {3., 4.}});
  EXPECT_EQ(x.dtype(), kFloat32);
  EXPECT_EQ(x.storage().nbytes(), 16u);
  expect_sizes(x, {2, 2});
  expect_strides(x, {2, 1});
  EXPECT_EQ(to_string(x.key_set()), "DispatchKeySet(CPU)");

  const Tensor y = arange(12).view({3, 4});
  expect_strides(y, {4, 1});
  const Tensor last = y.index({2, 3});
  EXPECT_EQ(last.storage_offset(), 11);
  EXPECT_EQ(last.item<int64_t>(), 11);
  EXPECT_EQ(y.numpy_T().data_ptr(), y.data_ptr());
  expect_strides(y.numpy_T(), {1, 4});
  const Tensor column = y.index({Slice(), 2});
  expect_sizes(column, {3});
  expect_strides(column, {4});
  EXPECT_EQ(column.storage_offset(), 2);
  EXPECT_EQ(y.index({1, Slice()}).storage_offset(), 4);
}

TEST(Worked1, DescribePrintsTheWholePicture) {
  const Tensor x = tensor({{1., 2.}, {3., 4.}}).t();
  const std::string text = describe(x);
  for (const char* part : {"sizes", "[2, 2]", "strides", "[1, 2]", "storage_offset", "DispatchKeySet(CPU)",
                           "16 bytes", "allocator", "cpu", "float32"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
}

TEST(Worked2, ExpandAndFlipAllocateNothing) {
  const Tensor row = randn({1, 4});
  expect_strides(row.expand({3, 4}), {0, 1});
  const Tensor all = row.expand({1000, 4});
  EXPECT_EQ(all.storage().address(), row.storage().address());
  EXPECT_EQ(all.storage().nbytes(), 16u);

  const Tensor x = arange(5);
  const Tensor y = x.flip({0});
  expect_strides(y, {-1});
  EXPECT_EQ(y.storage_offset(), 4);
  EXPECT_EQ(y.storage().address(), x.storage().address());
  expect_values(y, {4, 3, 2, 1, 0});
}

TEST(Worked3, ContiguousCopiesAndMmDoesNot) {
  const Tensor x = randn({1000, 1000});
  const Tensor y = x.numpy_T();
  EXPECT_FALSE(y.is_contiguous());
  expect_strides(y, {1, 1000});
  const Tensor c = y.contiguous();
  EXPECT_NE(c.data_ptr(), y.data_ptr());
  expect_strides(c, {1000, 1});

  Tensor out = empty({1000, 1000});
  const int64_t bytes = cpu_memory_stats().allocated_bytes.current, copies = hidden_copies();
  mm_out(out, y, x);
  EXPECT_EQ(cpu_memory_stats().allocated_bytes.current, bytes);
  EXPECT_EQ(hidden_copies(), copies);
}

TEST(Worked4, CloneReleasesALargeStorage) {
  constexpr int64_t kLarge = 400'000'000;
  const int64_t before = cpu_memory_stats().allocated_bytes.current;
  Tensor five;
  {
    const Tensor large = empty({kLarge / 4});
    five = large.slice(0, 0, 5);
  }
  EXPECT_EQ(five.storage().nbytes(), static_cast<size_t>(kLarge));
  EXPECT_GE(cpu_memory_stats().allocated_bytes.current, before + kLarge);
  five = five.clone();
  EXPECT_EQ(five.storage().nbytes(), 20u);
  EXPECT_LT(cpu_memory_stats().allocated_bytes.current, before + 1000000);
}

TEST(Worked6, ShapesBroadcastAndDtypesPromote) {
  expect_sizes(zeros({3, 1}) + zeros({1, 4}), {3, 4});
  expect_sizes(zeros({3, 1, 4}) + zeros({2, 4}), {3, 2, 4});
  EXPECT_EQ((zeros({2}) + zeros({2}, kInt32)).dtype(), kFloat32);
  const Tensor x = zeros({3, 1, 4}), y = zeros({3, 1, 4});
  Tensor out = empty({3, 1, 4});
  const auto iter = TensorIteratorConfig().add_output(out).add_input(x).add_input(y).build();
  EXPECT_EQ(iter.ndim(), 1);
  EXPECT_EQ(iter.shape()[0], 12);
}

}  // namespace
}  // namespace tenon
