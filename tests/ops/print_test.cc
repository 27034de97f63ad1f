// What a tensor's text is: the lines that PyTorch prints for the same elements.
#include "tenon/ops/print.h"

#include <sstream>

#include "tenon/generated/factory/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

TEST(Print, ShowsWholeNumbersAndFractions) {
  EXPECT_EQ(to_string(tensor({{1., 2.}, {3., 4.}})), "tensor([[1., 2.],\n        [3., 4.]])");
  EXPECT_EQ(to_string(tensor({1.5, 2.25, -3.0})), "tensor([ 1.5000,  2.2500, -3.0000])");
  EXPECT_EQ(to_string(tensor({0.1})), "tensor([0.1000])");
  EXPECT_EQ(to_string(tensor({NAN, INFINITY, 1.0})), "tensor([nan, inf, 1.])");
}

TEST(Print, WritesToStreams) {
  std::ostringstream out;
  out << tensor({1, 2}) << Tensor();
  EXPECT_EQ(out.str(), "tensor([1, 2])tensor(undefined)");
}

TEST(Print, ShowsIntegersAndTruthValues) {
  EXPECT_EQ(to_string(tensor({1, 20, -3})), "tensor([ 1, 20, -3])");
  EXPECT_EQ(to_string(tensor({1, 2}, kInt32)), "tensor([1, 2], dtype=tenon.int32)");
  EXPECT_EQ(to_string(tensor({true, false})), "tensor([ True, False])");
}

TEST(Print, ShowsScientificNumbers) {
  EXPECT_EQ(to_string(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(to_string(tensor({1e9, 1.0})), "tensor([1.0000e+09, 1.0000e+00])");
}

TEST(Print, ShowsEmptyAndZeroDim) {
  EXPECT_EQ(to_string(tensor(3)), "tensor(3)");
  EXPECT_EQ(to_string(tensor(2.5)), "tensor(2.5000)");
  EXPECT_EQ(to_string(zeros({0})), "tensor([])");
  EXPECT_EQ(to_string(zeros({2, 0})), "tensor([], size=(2, 0))");
  EXPECT_EQ(to_string(zeros({0}, kInt64)), "tensor([], dtype=tenon.int64)");
}

TEST(Print, ShowsMoreDimensionsWithBlankLines) {
  EXPECT_EQ(to_string(arange(8).view({2, 2, 2})),
            "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])");
}

TEST(Print, SummarisesLargeTensors) {
  EXPECT_EQ(to_string(arange(2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  const std::string rows = "tensor([[0.],\n        [0.],\n        [0.],\n        ...,\n        [0.],\n";
  EXPECT_EQ(to_string(zeros({1001, 1})).substr(0, rows.size()), rows);
}

TEST(Print, SaysDtypeDeviceAndHistory) {
  EXPECT_EQ(to_string(zeros({2}, kFloat64)), "tensor([0., 0.], dtype=tenon.float64)");
  EXPECT_EQ(to_string(zeros({2}, kMeta)), "tensor(..., device='meta', size=(2,))");
  EXPECT_EQ(to_string(zeros({1}, TensorOptions().requires_grad(true))), "tensor([0.], requires_grad=True)");
  const Tensor x = ones({1}, TensorOptions().requires_grad(true));
  EXPECT_EQ(to_string(x * x), "tensor([1.], grad_fn=<MulBackward0>)");
}

TEST(Print, WrapsLongLines) {
  std::string first = "tensor([", rest = "        ";
  for (int i = 0; i < 24; ++i) first += i < 23 ? "0., " : "0.,\n";
  for (int i = 0; i < 6; ++i) rest += i < 5 ? "0., " : "0.])";
  EXPECT_EQ(to_string(zeros({30})), first + rest);
  EXPECT_EQ(to_string(tensor({0.0, 10.0})), "tensor([ 0., 10.])");
}

}  // namespace
}  // namespace tenon
