#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(TensorList, IsMadeOfWhatHoldsTensors) {
  const Tensor a = tensor({1., 2.}), b = tensor({3.});
  const std::vector<Tensor> vector{a, b};
  const std::array<Tensor, 2> array{a, b};
  const Tensor plain[] = {a, b};
  for (const Tensor& joined : {cat({a, b}), cat(vector), cat(array), cat(plain), cat(std::span(vector))})
    expect_values(joined, {1, 2, 3});
  expect_values(cat(a), {1, 2});
  expect_values(stack({b, b}, 1), {3, 3});
}

TEST(UndefinedTensor, IsRefusedByAllThatAskWhatItIs) {
  Tensor t;
  const auto refused = [](auto&& f) { expect_error(ErrorKind::Type, "undefined", f); };
  refused([&] { t.dim(); });
  refused([&] { t.sizes(); });
  refused([&] { t.size(0); });
  refused([&] { t.numel(); });
  refused([&] { t.dtype(); });
  refused([&] { t.device(); });
  refused([&] { t.storage(); });
  refused([&] { t.data_ptr(); });
  refused([&] { t._version(); });
  refused([&] { t.is_contiguous(); });
  refused([&] { t.requires_grad_(); });
  refused([&] { t.item(); });
  refused([&] { t.sum(); });
  refused([&] { t.clone(); });
  refused([&] { t.detach(); });
  refused([&] { t.view({1}); });
  refused([&] { t.to(kInt64); });
  refused([&] { t[0]; });
  refused([&] { t.transpose(0, 1); });
  EXPECT_FALSE(t.requires_grad());
  EXPECT_FALSE(t.is_view());
}

TEST(Cat, JoinsAlongADimension) {
  const Tensor a = tensor({{1, 2}, {3, 4}}), b = tensor({{5., 6.}});
  const Tensor list[] = {a, b, empty({0})};
  const Tensor c = cat(list);
  EXPECT_EQ(c.dtype(), kFloat32);
  expect_values(c, {1, 2, 3, 4, 5, 6});
  const Tensor columns[] = {a, a.flip({1})};
  expect_values(cat(columns, -1), {1, 2, 2, 1, 3, 4, 4, 3});
  const Tensor wrong[] = {a, zeros({2, 3})};
  expect_error(ErrorKind::Shape, "must match except in dimension 0", [&] { cat(wrong); });
  const Tensor scalars[] = {tensor(1)};
  expect_error(ErrorKind::Shape, "zero-dimensional", [&] { cat(scalars); });
  expect_error(ErrorKind::Value, "non-empty", [] { cat({}); });
  const Tensor none[] = {Tensor(), tensor({1})};
  expect_error(ErrorKind::Type, "cat: expected tensors, got an undefined one", [&] { cat(none); });
  expect_error(ErrorKind::Type, "stack: expected tensors, got an undefined one", [&] { stack(none); });
}

TEST(Stack, AddsADimension) {
  const Tensor list[] = {tensor({1, 2}), tensor({3, 4})};
  expect_values(stack(list, 1), {1, 3, 2, 4});
  const Tensor wrong[] = {tensor({1}), tensor({1, 2})};
  expect_error(ErrorKind::Shape, "equal size", [&] { stack(wrong); });
}

TEST(Isclose, AllowsRelativeAndAbsoluteDistance) {
  const Tensor a = tensor({1.0, 1.0, INFINITY, NAN}), b = tensor({1.000001, 1.1, INFINITY, NAN});
  expect_values(isclose(a, b), {1, 0, 1, 0});
  expect_values(isclose(a, b, 0.2, 0, true), {1, 1, 1, 1});
  EXPECT_TRUE(allclose(arange(3), arange(3)));
  expect_values(isclose(tensor({1.0}), tensor({INFINITY})), {0});
}

}  // namespace
}  // namespace tenon
