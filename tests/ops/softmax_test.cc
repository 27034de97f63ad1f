#include <algorithm>
#include <cmath>

#include "tenon/core/thread_state.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

/// softmax along the last of two dimensions, in double.
std::vector<double> softmax_rows(const std::vector<double>& x, size_t n, bool log) {
  std::vector<double> out(x.size());
  for (size_t r = 0; r < x.size(); r += n) {
    const double m =
        *std::max_element(x.begin() + static_cast<long>(r), x.begin() + static_cast<long>(r + n));
    double s = 0;
    for (size_t j = 0; j < n; ++j) s += std::exp(x[r + j] - m);
    for (size_t j = 0; j < n; ++j) out[r + j] = log ? x[r + j] - m - std::log(s) : std::exp(x[r + j] - m) / s;
  }
  return out;
}

TEST(Softmax, MatchesLoopsOnEveryStride) {
  for (const DType t : {kFloat32, kFloat64}) {
    const double tolerance = t == kFloat32 ? 1e-6 : 1e-14;
    for (const Tensor& x : every_stride({5, 7}, t)) {
      expect_values(softmax(x, -1), softmax_rows(values(x), 7, false), tolerance);
      expect_values(log_softmax(x, 1), softmax_rows(values(x), 7, true), tolerance);
      const Tensor columns = softmax(x.t(), 0);
      expect_values(columns.t(), softmax_rows(values(x), 7, false), tolerance);
    }
  }
}

TEST(Softmax, TakesLongRowsLargeNumbersAndDtypes) {
  const Tensor x = random_tensor({3, 5000}, kFloat32, 5);
  expect_values(softmax(x, 1), softmax_rows(values(x), 5000, false), 1e-6);
  expect_values(softmax(tensor({1000., 1000.}), 0), {0.5, 0.5}, 1e-6);
  EXPECT_EQ(softmax(zeros({2}, kFloat16), 0).dtype(), kFloat16);
  EXPECT_EQ(softmax(arange(3), 0, kFloat64).dtype(), kFloat64);
  expect_error(ErrorKind::NotImplemented, "int64", [] { softmax(arange(3), 0); });
  expect_error(ErrorKind::Index, "out of range", [] { softmax(zeros({2}), 1); });
  expect_sizes(softmax(zeros({0, 3}), 1), {0, 3});
  expect_values(softmax(tensor(2.0), 0), {1});
}

TEST(NllLoss, MatchesLoops) {
  const Tensor x = random_tensor({4, 3}, kFloat64, 2), w = tensor({0.5, 1.0, 2.0}, kFloat64);
  const Tensor t = tensor({2, 0, -100, 1});
  const auto v = values(x);
  const double each[] = {-v[2] * 2, -v[3] * 0.5, 0, -v[10] * 1};
  expect_values(nll_loss(x, t, w, 0), {each[0], each[1], each[2], each[3]}, 1e-15);
  expect_values(nll_loss(x, t, w, 2), {each[0] + each[1] + each[3]}, 1e-15);
  expect_values(nll_loss(x, t, w), {(each[0] + each[1] + each[3]) / 3.5}, 1e-15);
  expect_values(nll_loss(x, t), {(-v[2] - v[3] - v[10]) / 3}, 1e-15);
  expect_error(ErrorKind::Index, "Target 3 is out of bounds", [&] { nll_loss(x, tensor({0, 1, 2, 3})); });
  expect_error(ErrorKind::Shape, "size mismatch", [&] { nll_loss(x, tensor({0, 1})); });
  expect_error(ErrorKind::Type, "int64", [&] { nll_loss(x, zeros({4})); });
}

TEST(NllLoss, RefusesWeightsThatWantAGradient) {
  const Tensor x = zeros({1, 2}), t = tensor({1});
  Tensor weight = ones({2});
  weight.requires_grad_();
  expect_error(ErrorKind::NotImplemented, "derivative for `weight`", [&] { nll_loss(x, t, weight); });
  const NoGradGuard no_grad;
  expect_values(nll_loss(x, t, weight), {0});
}

TEST(CrossEntropy, IsLogSoftmaxThenNll) {
  const Tensor x = random_tensor({4, 3}, kFloat64, 7), t = tensor({2, 0, 1, 1});
  const auto lp = softmax_rows(values(x), 3, true);
  const double want = -(lp[2] + lp[3] + lp[7] + lp[10]) / 4;
  expect_values(cross_entropy_loss(x, t), {want}, 1e-14);
  // Class probabilities that name one class each are the same loss.
  Tensor one_hot = zeros({4, 3}, kFloat64);
  const int64_t classes[] = {2, 0, 1, 1};
  for (int64_t i = 0; i < 4; ++i) one_hot[i][classes[i]].fill_(1);
  expect_values(cross_entropy_loss(x, one_hot), {want}, 1e-14);
  double smooth = 0;
  for (const double l : lp) smooth -= l / 4;
  expect_values(cross_entropy_loss(x, t, {}, 1, -100, 0.1), {0.9 * want + 0.1 / 3 * smooth}, 1e-14);
  const Tensor images = random_tensor({2, 3, 2}, kFloat64, 8);
  const Tensor flat = images.transpose(1, 2).reshape({4, 3});
  EXPECT_NEAR(cross_entropy_loss(images, t.view({2, 2})).item<double>(),
              cross_entropy_loss(flat, t).item<double>(), 1e-14);
}

TEST(CrossEntropy, MeanOfNoRowsIsNan) {
  EXPECT_TRUE(std::isnan(cross_entropy_loss(zeros({0, 3}), zeros({0, 3})).item<float>()));
  EXPECT_TRUE(std::isnan(cross_entropy_loss(zeros({0, 3}), zeros({0}, kInt64)).item<float>()));
}

TEST(MseLoss, AveragesSquares) {
  expect_values(mse_loss(tensor({1., 2.}), tensor({3., 5.})), {6.5});
  expect_values(mse_loss(tensor({1., 2.}), tensor({3., 5.}), 2), {13});
}

}  // namespace
}  // namespace tenon
