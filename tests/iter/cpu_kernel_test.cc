#include "tenon/iter/cpu_kernel.h"

#include <cmath>

#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

// A user's operator as the documentation shows it.
Tensor scaled_abs(const Tensor& self, double scale) {
  const TensorIterator iter =
      TensorIteratorConfig().set_op_name("scaled_abs").add_output(Tensor()).add_input(self).build();
  TENON_DISPATCH_FLOATING_TYPES(iter.dtype(), "scaled_abs", [&] {
    const auto s = static_cast<scalar_t>(scale);
    cpu_kernel_vec(
        iter, [s](scalar_t x) -> scalar_t { return std::abs(x) * s; },
        [s](Vectorized<scalar_t> x) { return x.abs() * Vectorized<scalar_t>(s); });
  });
  return iter.output();
}

TEST(CpuKernel, ScaledAbsOnEveryArrangement) {
  std::mt19937 rng(11);
  for (const DType t : {DType::Float32, DType::Float64}) {
    for (int round = 0; round < 30; ++round) {
      const Tensor x = random_tensor(rng, {1 + round, 1 + round % 9, 5}, t), y = scaled_abs(x, 0.5);
      ASSERT_EQ(y.dtype(), t);
      for_each_index(x.sizes(),
                     [&](const auto& index) { ASSERT_EQ(get(y, index), std::abs(get(x, index)) * 0.5); });
    }
  }
  const Tensor ints = vector_of({1}, DType::Int64);
  EXPECT_EQ(error_of(ErrorKind::NotImplemented, [&] { scaled_abs(ints, 1); }),
            "scaled_abs: not implemented for int64, only for float32, float64");
}

TEST(CpuKernel, ConvertsOperandsWhereTheIteratorPromotes) {
  const Tensor a = tensor_of({1, 2, 3}, {3, 1}, DType::Int32), b = vector_of({0.5, 1.5}, DType::Float16);
  const TensorIterator iter = TensorIteratorConfig()
                                  .add_output(make_empty({3, 2}, DType::Float32))
                                  .add_input(a)
                                  .add_input(b)
                                  .promote_inputs_to_common_dtype(true)
                                  .build();
  cpu_kernel(iter, [](float x, float y) { return x * y; });
  EXPECT_EQ(values(iter.output()), (std::vector<double>{0.5, 1.5, 1, 3, 1.5, 4.5}));
  const TensorIterator strict = TensorIteratorConfig().add_output(Tensor()).add_input(b).build();
  EXPECT_EQ(error_of(ErrorKind::Type, [&] { cpu_kernel(strict, [](float x) { return x; }); }),
            "TensorIterator: output 0 is float16, the kernel's is float32");
  EXPECT_THROW(cpu_kernel(strict, [](Half x, Half) { return x; }), Error);
}

TEST(CpuKernel, TypesMayDifferBetweenOperands) {
  const Tensor x = vector_of({-1, 0, 2}), out = make_empty({3}, DType::Bool);
  const TensorIterator iter =
      TensorIteratorConfig().check_all_same_dtype(false).add_output(out).add_input(x).build();
  cpu_kernel(iter, [](float v) { return v > 0; });
  EXPECT_EQ(values(out), (std::vector<double>{0, 0, 1}));
}

TEST(Vectorized, DoesElementByElementWhatTheOperatorsSay) {
  const float a[] = {1, -2, 3, -4, 5, -6, 7, -0.0f}, b[] = {2, 2, 2, 2, 4, 4, 4, 4};
  const auto x = Vectorized<float>::loadu(a), y = Vectorized<float>::loadu(b);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ((x + y)[i], a[i] + b[i]);
    EXPECT_EQ((x - y)[i], a[i] - b[i]);
    EXPECT_EQ((x * y)[i], a[i] * b[i]);
    EXPECT_EQ((x / y)[i], a[i] / b[i]);
    EXPECT_EQ(x.abs()[i], std::abs(a[i]));
    EXPECT_EQ(minimum(x, y)[i], std::min(a[i], b[i]));
    EXPECT_EQ(maximum(x, y)[i], std::max(a[i], b[i]));
  }
  EXPECT_FALSE(std::signbit(x.abs()[7]));
  EXPECT_EQ(Vectorized<int16_t>::size(), 16);
}

TEST(Dispatch, NamesTheDtypeAndWhatWouldDo) {
  const auto bytes = [](DType t) {
    return TENON_DISPATCH_FLOATING_TYPES_AND2(DType::Float16, DType::BFloat16, t, "op",
                                              [&] { return sizeof(scalar_t); });
  };
  EXPECT_EQ(bytes(DType::Float16), 2u);
  EXPECT_EQ(bytes(DType::Float64), 8u);
  EXPECT_NE(
      error_of(ErrorKind::NotImplemented, [&] { bytes(DType::Int32); }).find("op: not implemented for int32"),
      std::string::npos);
}

}  // namespace
}  // namespace tenon::testing
