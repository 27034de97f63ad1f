#include "tenon/generated/factory/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(Clamp, InPlaceWritesNothingThatItRefuses) {
  Tensor x = tensor({-5, 0, 5});
  expect_error(ErrorKind::Type, "cannot be stored", [&] { x.clamp_(Scalar(0), Scalar(2.5)); });
  expect_error(ErrorKind::Type, "cannot be stored", [&] { x.clamp_(zeros({3}, kInt64), zeros({3})); });
  expect_error(ErrorKind::Shape, "cannot hold", [&] { x.clamp_(zeros({3}, kInt64), zeros({2, 3}, kInt64)); });
  expect_error(ErrorKind::Device, "meta",
               [&] { x.clamp_(zeros({3}, kInt64), zeros({3}, TensorOptions(kMeta).dtype(kInt64))); });
  expect_values(x, {-5, 0, 5});
}

TEST(Clamp, InPlaceReadsItsBoundsAsTheyWere) {
  Tensor x = tensor({-5, 0, 5});
  x.clamp_(tensor({1, 1, 1}), x);
  expect_values(x, {-5, 0, 5});
}

}  // namespace
}  // namespace tenon
