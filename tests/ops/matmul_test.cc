#include <cstring>

#include "tenon/generated/factory/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using namespace testing;

std::vector<double> product(const Tensor& a, const Tensor& b) {
  std::vector<double> out;
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < b.size(1); ++j) {
      double s = 0;
      for (int64_t k = 0; k < a.size(1); ++k) {
        const int64_t at_a[] = {i, k}, at_b[] = {k, j};
        s += element(a, at_a) * element(b, at_b);
      }
      out.push_back(s);
    }
  }
  return out;
}

TEST(Mm, MatchesLoopsOnEveryStrideAndDtype) {
  for (const DType t : {kUInt8, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64}) {
    for (const Tensor& a : every_stride({5, 7}, t)) {
      for (const Tensor& b : every_stride({7, 4}, t, 11)) {
        auto want = product(a, b);
        const double tolerance = t == kFloat16    ? 2e-3
                                 : t == kBFloat16 ? 2e-2
                                 : t == kFloat32  ? 1e-5
                                 : t == kFloat64  ? 1e-13
                                                  : 0;
        if (t == kUInt8) {
          for (double& w : want) w = static_cast<uint8_t>(static_cast<int64_t>(w));
        }
        expect_values(mm(a, b), want, tolerance);
      }
    }
  }
}

TEST(Mm, HasTheSameBitsOfEitherLayout) {
  const Tensor a = random_tensor({130, 140}, kFloat32, 1), b = random_tensor({140, 150}, kFloat32, 2);
  const Tensor rows = mm(a, b), columns = mm(a, b.t().contiguous().t());
  EXPECT_EQ(std::memcmp(rows.data_ptr(), columns.data_ptr(), rows.nbytes()), 0);
}

TEST(Mm, ChecksShapesAndDtypes) {
  expect_error(ErrorKind::Shape, "cannot be multiplied (2x3 and 2x3)", [] {
    mm(zeros({2, 3}), zeros({2, 3}));
  });
  expect_error(ErrorKind::Shape, "must be a 2D tensor", [] { mm(zeros({3}), zeros({3, 3})); });
  expect_error(ErrorKind::Type, "`mat2` is float64, `self` is float32", [] {
    mm(zeros({2, 2}), zeros({2, 2}, kFloat64));
  });
  expect_error(ErrorKind::Device, "same device", [] { mm(zeros({2, 2}), zeros({2, 2}, kMeta)); });
  EXPECT_TRUE(mm(zeros({2, 3}, kMeta), zeros({3, 4}, kMeta)).is_meta());
}

TEST(Mm, KnowsEmptyOperands) {
  expect_values(mm(zeros({2, 0}), zeros({0, 2})), {0, 0, 0, 0});
  expect_sizes(mm(zeros({0, 3}), zeros({3, 2})), {0, 2});
}

TEST(Addmm, ScalesBothParts) {
  const Tensor bias = tensor({1., 2.}), a = tensor({{1., 2.}, {3., 4.}}), b = tensor({{0., 1.}, {1., 0.}});
  expect_values(addmm(bias, a, b), {3, 3, 5, 5});
  expect_values(addmm(bias, a, b, 2, 10), {22, 14, 42, 34});
  expect_values(addmm(full({2}, NAN), a, b, 0), {2, 1, 4, 3});
  expect_error(ErrorKind::Shape, "does not broadcast", [&] { addmm(zeros({3}), a, b); });
  Tensor out = empty({0});
  addmm_out(out, bias, a, b);
  expect_values(out, {3, 3, 5, 5});
  Tensor self = a.clone();
  mm_out(self, self, b);
  expect_values(self, {2, 1, 4, 3});
}

TEST(Addmm, ScalesIntegersExactly) {
  const int64_t odd = (int64_t{1} << 53) + 1;
  const Tensor one = ones({1, 1}, kInt64), nothing = zeros({1, 1}, kInt64);
  EXPECT_EQ(addmm(nothing, one, one, 1, odd).item().to_int(), odd);
  EXPECT_EQ(addmm(one, nothing, nothing, odd, 1).item().to_int(), odd);
}

TEST(Matmul, FollowsTheRulesOfRanks) {
  const Tensor v = arange(3).to(kFloat32), m = random_tensor({3, 4}, kFloat32, 3);
  EXPECT_EQ(matmul(v, v).dim(), 0);
  expect_values(matmul(v, v), {5});
  expect_sizes(matmul(v, m), {4});
  expect_values(matmul(v, m), product(v.view({1, 3}), m), 1e-6);
  expect_sizes(matmul(m.t(), v), {4});
  expect_sizes(matmul(zeros({2, 5, 3}), m), {2, 5, 4});
  expect_sizes(matmul(zeros({2, 5, 3}), v), {2, 5});
  expect_sizes(matmul(v, zeros({2, 3, 5})), {2, 5});
  expect_sizes(matmul(zeros({7, 1, 5, 3}), zeros({2, 3, 4})), {7, 2, 5, 4});
  expect_error(ErrorKind::Shape, "at least 1D", [&] { matmul(tensor(1.), v); });
  expect_error(ErrorKind::Shape, "cannot be multiplied", [&] { matmul(v, zeros({2, 4})); });
}

TEST(Matmul, MultipliesBatches) {
  const Tensor a = random_tensor({2, 1, 3, 4}, kFloat64, 1), b = random_tensor({5, 4, 2}, kFloat64, 2);
  const Tensor c = matmul(a, b);
  expect_sizes(c, {2, 5, 3, 2});
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 5; ++j) expect_values(c[i][j], product(a[i][0], b[j]), 1e-14);
  }
  expect_values(bmm(b.transpose(1, 2), b)[3], product(b[3].t(), b[3]), 1e-14);
}

TEST(Linear, AddsABias) {
  const Tensor x = random_tensor({2, 3, 4}, kFloat32, 4), w = random_tensor({5, 4}, kFloat32, 5),
               b = random_tensor({5}, kFloat32, 6);
  const Tensor y = linear(x, w, b);
  expect_sizes(y, {2, 3, 5});
  auto want = product(x.view({6, 4}), w.t());
  for (size_t i = 0; i < want.size(); ++i) want[i] += values(b)[i % 5];
  expect_values(y, want, 1e-5);
  expect_sizes(linear(x[0], w), {3, 5});
  expect_sizes(linear(x, w[0]), {2, 3});
  expect_error(ErrorKind::Type,
               "linear: `weight` is float64, `input` is float32; convert one with .to(tenon.float32)",
               [&] { linear(x, w.to(kFloat64)); });
  expect_error(ErrorKind::Shape, "do not fit", [&] { linear(x, zeros({5, 3})); });
}

}  // namespace
}  // namespace tenon
