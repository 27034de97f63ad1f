#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/indexing/indexed.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(Indexing, AssignsWithoutLeadingOnes) {
  Tensor x = zeros({3, 4});
  x.index_put_({TensorIndex(0)}, ones({1, 1, 4}));
  x.index_put_({TensorIndex(tensor({1, 2}))}, full({1, 1, 2, 4}, 2));
  expect_values(x, {1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2});
}

TEST(Indexing, TakesIntegersSlicesNoneAndEllipsis) {
  const Tensor x = arange(24).view({2, 3, 4});
  expect_values(x[1][2], {20, 21, 22, 23});
  expect_values(x.index({0, -1, 2}), {10});
  expect_sizes(x.index({None, Ellipsis, 0}), {1, 2, 3});
  expect_values(x.index({1, Slice({}, {}, -1), 0}), {20, 16, 12});
  expect_sizes(x.index({Ellipsis, None}), {2, 3, 4, 1});
  expect_sizes(x.index({false}), {0, 2, 3, 4});
  EXPECT_EQ(x.index({Ellipsis}).data_ptr(), x.data_ptr());
  expect_error(ErrorKind::Index, "too many indices", [&] { x.index({0, 0, 0, 0}); });
  expect_error(ErrorKind::Index, "single ellipsis", [&] { x.index({Ellipsis, Ellipsis}); });
  expect_error(ErrorKind::Index, "index 3 is out of bounds for dimension 1 with size 3", [&] {
    x.index({0, 3});
  });
  expect_error(ErrorKind::Index, "out of bounds for dimension 0", [&] { x[2]; });
}

TEST(Indexing, TakesTensors) {
  const Tensor x = arange(12).view({3, 4});
  expect_values(x.index({tensor({2, 0, -1})}), {8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11});
  expect_values(x.index({Slice(), tensor({3, 0})}), {3, 0, 7, 4, 11, 8});
  expect_values(x.index({tensor({0, 2}), tensor({1, 3})}), {1, 11});
  expect_values(x.index({tensor({{0}, {2}}), tensor({1, 3})}), {1, 3, 9, 11});
  expect_values(x.index({x > 8}), {9, 10, 11});
  expect_values(x.index({tensor({true, false, true}), 1}), {1, 9});
  expect_values(x.flip({0}).index({tensor({0})}), {8, 9, 10, 11});
  const Tensor y = arange(24).view({2, 3, 4});
  // Index tensors apart put their dimensions first; side by side, where they stand.
  expect_sizes(y.index({tensor({0, 1, 0, 1, 0}), Slice(), tensor({0, 1, 2, 3, 0})}), {5, 3});
  expect_sizes(y.index({Slice(), tensor({0, 1, 0, 1, 0}), tensor({0, 1, 2, 3, 0})}), {2, 5});
  expect_error(ErrorKind::Index, "index 3 is out of bounds for dimension 0 with size 3",
               [&] { x.index({tensor({3})}); });
  expect_error(ErrorKind::Index, "mask", [&] { x.index({tensor({true, false})}); });
  expect_error(ErrorKind::Index, "must be", [&] { x.index({tensor({1.0})}); });
}

TEST(Indexing, WritesThroughViewsAndPositions) {
  Tensor x = zeros({3, 4});
  x.index_put_({1}, tensor({1., 2., 3., 4.}));
  x.index_put_({Slice({}, {}, -2), 0}, tensor({7., 8.}));
  expect_values(x, {8, 0, 0, 0, 1, 2, 3, 4, 7, 0, 0, 0});
  x.index_put_({tensor({0, 2}), tensor({3, 3})}, tensor(5));
  EXPECT_EQ(x.index({2, 3}).item<float>(), 5);
  x.index_put_({x > 4}, tensor(0.));
  expect_values(amax(x), {4});
  const auto before = values(x);
  expect_error(ErrorKind::Index, "out of bounds", [&] { x.index_put_({tensor({0, 9})}, tensor(1.)); });
  expect_error(ErrorKind::Shape, "does not broadcast", [&] { x.index_put_({tensor({0, 1})}, zeros({3})); });
  expect_values(x, before);
  const Tensor index[] = {tensor({1, 1, 1})};
  Tensor counts = zeros({3});
  tenon::index_put_(counts, index, ones({3}), true);
  expect_values(counts, {0, 3, 0});
}

TEST(IndexSelect, MatchesLoopsOnEveryStride) {
  const Tensor index = tensor({2, 0, 2});
  for (const Tensor& x : every_stride({3, 4, 3}, kFloat32)) {
    for (int64_t d = 0; d < 3; d += 2) {
      const Tensor y = index_select(x, d, index);
      for_each_position(y.sizes(), [&](std::span<const int64_t> at) {
        std::vector<int64_t> from(at.begin(), at.end());
        from[static_cast<size_t>(d)] =
            std::vector<int64_t>{2, 0, 2}[static_cast<size_t>(at[static_cast<size_t>(d)])];
        EXPECT_EQ(element(y, at), element(x, from));
      });
    }
  }
  const Tensor x = zeros({3, 2});
  expect_sizes(index_select(x, 1, tensor(1)), {3, 1});
  expect_error(ErrorKind::Index, "index 3 is out of bounds for dimension 0 with size 3", [&] {
    index_select(x, 0, tensor({0, 3}));
  });
  expect_error(ErrorKind::Type, "int32 or int64", [&] { index_select(x, 0, tensor({0.})); });
  expect_error(ErrorKind::Index, "vector", [&] { index_select(x, 0, tensor({{0}})); });
}

TEST(IndexAdd, AddsRepeatedPositions) {
  Tensor x = zeros({3, 2});
  x.index_add_(0, tensor({0, 2, 0}), tensor({{1., 2.}, {3., 4.}, {5., 6.}}), 2);
  expect_values(x, {12, 16, 0, 0, 6, 8});
  expect_error(ErrorKind::Shape, "expected `source`", [&] { x.index_add_(0, tensor({0}), zeros({2, 2})); });
}

TEST(Gather, ReadsAlongADimension) {
  const Tensor x = tensor({{1, 2}, {3, 4}});
  expect_values(gather(x, 1, tensor({{0, 0}, {1, 0}})), {1, 1, 4, 3});
  expect_values(gather(x, 0, tensor({{1, 0}})), {3, 2});
  expect_error(ErrorKind::Index, "index 2 is out of bounds", [&] { gather(x, 1, tensor({{2}})); });
  expect_error(ErrorKind::Shape, "same number of dimensions", [&] { gather(x, 1, tensor({0})); });
}

TEST(IndexSelect, RefusesAnotherDevice) {
  const Tensor x = arange(4), rows = tensor({1, 0});
  const Tensor elsewhere = rows.to(kMeta);
  expect_error(ErrorKind::Device, "`index` is on meta", [&] { index_select(x, 0, elsewhere); });
  expect_error(ErrorKind::Device, "`index` is on meta", [&] { index_add(x, 0, elsewhere, rows); });
  expect_error(ErrorKind::Device, "`source` is on meta", [&] { index_add(x, 0, rows, elsewhere); });
}

TEST(Nonzero, ListsPositionsInOrder) {
  for (const Tensor& x : every_stride({3, 4}, kInt32)) {
    std::vector<double> want;
    for_each_position(x.sizes(), [&](std::span<const int64_t> at) {
      if (element(x, at) == 0) return;
      want.push_back(static_cast<double>(at[0]));
      want.push_back(static_cast<double>(at[1]));
    });
    expect_values(nonzero(x), want);
  }
  expect_sizes(nonzero(tensor(5)), {1, 0});
  expect_sizes(nonzero(zeros({0, 3})), {0, 2});
}

TEST(IndexedCall, IsBoxedForDevicesWithoutOurTypes) {
  const Tensor x = arange(6).view({3, 2}), out = zeros({2, 2}), index = tensor({2, 0});
  const Dims sizes{2, 2};
  const ops::IndexedCall call{.op = "index_select",
                              .argument = "index",
                              .sizes = sizes,
                              .to = ops::every_element(out, sizes),
                              .from = ops::slices(x, 0, index)};
  Stack stack;
  detail::StubArg<const ops::IndexedCall&>::push(stack, call);
  ASSERT_EQ(stack.size(), 15u) << "seven values, and four for each side";
  EXPECT_TRUE(stack.at<Tensor>(7).is_same(out));
  EXPECT_EQ(stack.at<CellList<Tensor>>(9).span().size(), 0u);
  EXPECT_TRUE(stack.at<Tensor>(11).is_same(x));
  EXPECT_TRUE(stack.at<CellList<Tensor>>(13).span()[0].is_same(index));
  const auto numbers = stack.at<CellList<int64_t>>(14).span();
  // Dimension 0, one size of 3, a step of 2, and the strides of the index over the loop.
  EXPECT_EQ(std::vector<int64_t>(numbers.begin(), numbers.end()), (std::vector<int64_t>{0, 1, 3, 2, 1, 0}));
}

TEST(Masked, FillsAndSelects) {
  const Tensor x = arange(4), m = tensor({true, false, true, false});
  expect_values(masked_fill(x, m, 9), {9, 1, 9, 3});
  EXPECT_EQ(masked_fill(x, m, 9).dtype(), kInt64);
  expect_values(masked_select(x, m), {0, 2});
  expect_error(ErrorKind::Type, "must be bool", [&] { masked_fill(x, x, 1); });
}

}  // namespace
}  // namespace tenon
