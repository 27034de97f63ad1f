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

std::string printed(const auto& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Print, ShowsWhatDescribesATensorAsPythonDoes) {
  EXPECT_EQ(printed(kFloat32), "tenon.float32");
  EXPECT_EQ(printed(ones({1}).dtype()), "tenon.float32");
  EXPECT_EQ(printed(Layout::Strided), "tenon.strided");
  EXPECT_EQ(printed(Layout::SparseCsr), "tenon.sparse_csr");
  EXPECT_EQ(printed(MemoryFormat::Contiguous), "tenon.contiguous_format");
  EXPECT_EQ(printed(MemoryFormat::Preserve), "tenon.preserve_format");
  EXPECT_EQ(printed(MemoryFormat::ChannelsLast), "tenon.channels_last");
  EXPECT_EQ(printed(MemoryFormat::ChannelsLast3d), "tenon.channels_last_3d");
  EXPECT_EQ(printed(kCPU), "cpu");
  EXPECT_EQ(printed(zeros({1}, kMeta).device()), "meta");
  EXPECT_EQ(printed(ones({2, 3}).sizes()), "[2, 3]");
  EXPECT_EQ(printed(Dims{}), "[]");
  EXPECT_EQ(printed(TensorOptions()), "TensorOptions()");
  EXPECT_EQ(printed(TensorOptions(kFloat64).device(kMeta).requires_grad(true)),
            "TensorOptions(dtype=tenon.float64, device=meta, requires_grad=True)");
}

TEST(Print, ShowsNumbersAsPythonDoes) {
  EXPECT_EQ(printed(Scalar(true)), "True");
  EXPECT_EQ(printed(Scalar(-3)), "-3");
  EXPECT_EQ(printed(Scalar(2.0)), "2.0");
  EXPECT_EQ(printed(Scalar(-0.0)), "-0.0");
  EXPECT_EQ(printed(Scalar(0.1)), "0.1");
  EXPECT_EQ(printed(Scalar(1e-4)), "0.0001");
  EXPECT_EQ(printed(Scalar(1e-5)), "1e-05");
  EXPECT_EQ(printed(Scalar(1e15)), "1000000000000000.0");
  EXPECT_EQ(printed(Scalar(1e16)), "1e+16");
  EXPECT_EQ(printed(Scalar(-INFINITY)), "-inf");
  EXPECT_EQ(printed(Scalar(-NAN)), "nan");
  EXPECT_EQ(printed(Scalar(std::complex<double>(1, -2.5))), "(1-2.5j)");
  EXPECT_EQ(printed(Scalar(std::complex<double>(0, 1))), "1j");
}

TEST(Print, LeavesOtherValuesToTheirOwnOperators) {
  EXPECT_EQ(printed(2.5f), "2.5");
  EXPECT_EQ(printed("cpu"), "cpu");
  EXPECT_EQ(printed(Half(1.5f)), "1.5");
}

}  // namespace
}  // namespace tenon
