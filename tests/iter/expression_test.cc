// Derivatives of pointwise operators and operators made from text at run time.
#include <cmath>
#include <thread>

#include "tenon/expr/expr.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/typed_text.h"
#include "tenon/generated/pointwise_info.h"
#include "tests/iter/iter_testing.h"

namespace tenon::testing {
namespace {

constexpr std::string_view kX[] = {"x"};
constexpr std::string_view kXY[] = {"x", "y"};
constexpr std::string_view kA[] = {"a"};

// The gradient of `info` by operand `i` where the incoming one is all ones.
Tensor gradient(const PointwiseInfo& info, int i, const std::vector<const Tensor*>& tensors,
                const std::vector<Scalar>& scalars, const Tensor& result) {
  const PointwiseDerivative* d = derivative_of(info, i);
  EXPECT_NE(d, nullptr);
  const Tensor ones =
      tensor_of(std::vector<double>(static_cast<size_t>(result.numel()), 1), result.sizes(), result.dtype());
  std::vector<const Tensor*> operands;
  for (const int8_t t : d->tensors) {
    operands.push_back(t == PointwiseDerivative::kGrad     ? &ones
                       : t == PointwiseDerivative::kResult ? &result
                                                           : tensors[static_cast<size_t>(t)]);
  }
  std::vector<Scalar> numbers;
  for (const int8_t s : d->scalars) numbers.push_back(scalars[static_cast<size_t>(s)]);
  return call(*d->info, operands, numbers);
}

TEST(Derivative, OfAProductIsTheOtherOperand) {
  const Tensor x = vector_of({2, 3}), y = vector_of({5, 7});
  EXPECT_EQ(values(gradient(kMul, 0, {&x, &y}, {}, call(kMul, {&x, &y}))), (std::vector<double>{5, 7}));
  EXPECT_EQ(values(gradient(kMul, 1, {&x, &y}, {}, call(kMul, {&x, &y}))), (std::vector<double>{2, 3}));
  EXPECT_EQ(values(gradient(kAdd, 1, {&x, &y}, {4}, x)), (std::vector<double>{4, 4}));
  EXPECT_EQ(derivative_of(kLess, 0), nullptr);
  EXPECT_EQ(derivative_of(kMul, 0), derivative_of(kMul, 0));
}

TEST(Derivative, OfADerivativeHasItsOwnGrad) {
  const PointwiseInfo& cube = make_pointwise("x * x * x", kX, {}, ComputeRule::Same, ResultRule::Compute);
  const PointwiseDerivative* first = derivative_of(cube, 0);
  ASSERT_NE(first, nullptr);
  const Tensor x = vector_of({2, -1}, DType::Float64), ones = vector_of({1, 1}, DType::Float64);
  ASSERT_EQ(first->tensors.size(), 2u);
  EXPECT_EQ(values(call(*first->info, {&ones, &x})), (std::vector<double>{12, 3}));
  // By the operand x of the first derivative, which is its tensor 1.
  const PointwiseDerivative* second = derivative_of(*first->info, 1);
  ASSERT_NE(second, nullptr);
  std::vector<const Tensor*> operands;
  for (const int8_t t : second->tensors) operands.push_back(t == 1 ? &x : &ones);
  EXPECT_EQ(values(call(*second->info, operands)), (std::vector<double>{12, -6}));
}

TEST(MakePointwise, RunsAndDifferentiatesWhatTheBuildNeverSaw) {
  const PointwiseInfo& f =
      make_pointwise("a * x * sigmoid(y)", kXY, kA, ComputeRule::Float, ResultRule::Compute);
  EXPECT_EQ(&f, &make_pointwise("a * x * sigmoid(y)", kXY, kA, ComputeRule::Float, ResultRule::Compute));
  const Tensor x = vector_of({1, -2, 3}, DType::Float64), y = vector_of({0, 1, -30}, DType::Float64);
  const Tensor result = call(f, {&x, &y}, {2.5}), by_y = gradient(f, 1, {&x, &y}, {2.5}, result);
  for (int64_t i = 0; i < 3; ++i) {
    const double s = 1 / (1 + std::exp(-get(y, {i})));
    EXPECT_NEAR(get(result, {i}), 2.5 * get(x, {i}) * s, 1e-13);
    EXPECT_NEAR(get(by_y, {i}), 2.5 * get(x, {i}) * s * (1 - s), 1e-13);
  }
  EXPECT_THROW(make_pointwise("x +", kX, {}, ComputeRule::Same, ResultRule::Compute), Error);
  EXPECT_THROW(make_pointwise("z", kX, {}, ComputeRule::Same, ResultRule::Compute), Error);
}

TEST(MakePointwise, FirstUseFromManyThreadsGivesOneAnswer) {
  const PointwiseInfo& f = make_pointwise("x * x + 1", kX, {}, ComputeRule::Same, ResultRule::Compute);
  std::vector<std::thread> threads;
  std::vector<const PointwiseDerivative*> seen(4);
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] {
      const Tensor x = vector_of({3});
      EXPECT_EQ(values(call(f, {&x})), (std::vector<double>{10}));
      seen[i] = derivative_of(f, 0);
    });
  }
  for (auto& t : threads) t.join();
  for (const auto* d : seen) EXPECT_EQ(d, seen[0]);
}

// What the build has printed as nodes is what the text says.
TEST(Written, ConstantDataIsTheTextOfTheOperator) {
  for (const PointwiseInfo* info :
       {&pointwise_info::add_Tensor, &pointwise_info::silu, &pointwise_info::where_self,
        &pointwise_info::lt_Tensor, &pointwise_info::pow_Tensor_Tensor, &pointwise_info::exp}) {
    ASSERT_NE(info->written, nullptr) << info->name;
    std::vector<expr::Symbol> symbols;
    for (size_t i = 0; i < info->tensor_names.size(); ++i) {
      const bool mask = (info->mask_tensors >> i) & 1u;
      symbols.push_back(
          {info->tensor_names[i], mask ? expr::SymbolKind::MaskTensor : expr::SymbolKind::Tensor});
    }
    for (const char* name : info->scalar_names) symbols.push_back({name, expr::SymbolKind::Scalar});
    expr::Builder g;
    const expr::NodeId root = expr::parse(g, info->text, symbols);
    const expr::ExpressionPtr from_text = expr::instantiate(*g.finish({root}), {});
    const expr::ExpressionPtr from_data = expr::instantiate(*info->written, {});
    EXPECT_TRUE(*from_text == *from_data) << info->name << ": " << to_string(*from_data);
    EXPECT_EQ(to_string(expr::make_expression(expr::parts_of(*info->written))->key),
              to_string(info->written->key));
  }
}

TEST(MakePointwise, StoredRoundsAsAStepOfItsOwnDoes) {
  const PointwiseInfo& f =
      make_pointwise("stored(x * x) + y", kXY, {}, ComputeRule::Same, ResultRule::Compute);
  const PointwiseInfo& fused = make_pointwise("x * x + y", kXY, {}, ComputeRule::Same, ResultRule::Compute);
  for (const DType t : {DType::Float16, DType::BFloat16, DType::Float32, DType::Int8, DType::Int64}) {
    std::vector<double> a, b;
    for (int i = 0; i < 300; ++i) {
      a.push_back(is_floating_point(t) ? 0.37 * i - 50 : i % 41 - 20);
      b.push_back(is_floating_point(t) ? 1.0 / (i + 3) : i % 7);
    }
    const Tensor x = vector_of(a, t), y = vector_of(b, t), square = call(kMul, {&x, &x});
    EXPECT_EQ(values(call(f, {&x, &y})), values(add(square, y))) << name(t);
    const bool half = t == DType::Float16 || t == DType::BFloat16;
    EXPECT_EQ(values(call(fused, {&x, &y})) != values(add(square, y)), half) << name(t);
  }
}

TEST(MakePointwise, CastsInside) {
  const PointwiseInfo& f =
      make_pointwise("same(1 - float64(a)) * x", kX, kA, ComputeRule::Same, ResultRule::Compute);
  for (const double n : {0.999, 0.1, 1e-9}) {
    for (const DType t : {DType::Float32, DType::Float64}) {
      const Tensor x = vector_of({1, 3, -7}, t);
      const double factor = t == DType::Float32 ? static_cast<float>(1 - n) : 1 - n;
      std::vector<double> want;
      for (const double v : {1.0, 3.0, -7.0})
        want.push_back(t == DType::Float32 ? static_cast<float>(factor) * static_cast<float>(v) : factor * v);
      EXPECT_EQ(values(call(f, {&x}, {n})), want);
    }
  }
  // One number in two types; a mixed product that float32 alone would round.
  const PointwiseInfo& g =
      make_pointwise("same(wide(x) * wide(a) - wide(x)) + a", kX, kA, ComputeRule::Same, ResultRule::Compute);
  const Tensor x = vector_of({3, 1e8}, DType::Float32);
  const double n = 1.0000001;
  std::vector<double> want;
  for (const double v : {3.0, 1e8}) want.push_back(static_cast<float>(v * n - v) + static_cast<float>(n));
  EXPECT_EQ(values(call(g, {&x}, {n})), want);
  const PointwiseInfo& truncated =
      make_pointwise("same(int64(x)) + same(bool(x))", kX, {}, ComputeRule::Same, ResultRule::Compute);
  const Tensor y = vector_of({-2.75, 0, 0.5, 7}, DType::Float32);
  EXPECT_EQ(values(call(truncated, {&y})), (std::vector<double>{-1, 0, 1, 8}));
}

TEST(MakePointwise, CastsAreDifferentiated) {
  const PointwiseInfo& f = make_pointwise("stored(same(float64(x) * float64(x))) * y", kXY, {},
                                          ComputeRule::Same, ResultRule::Compute);
  const Tensor x = vector_of({2, -3}), y = vector_of({5, 7});
  const Tensor result = call(f, {&x, &y});
  EXPECT_EQ(values(gradient(f, 0, {&x, &y}, {}, result)), (std::vector<double>{20, -42}));
  EXPECT_EQ(values(gradient(f, 1, {&x, &y}, {}, result)), (std::vector<double>{4, 9}));
  const PointwiseInfo& whole =
      make_pointwise("same(int64(x)) * x", kX, {}, ComputeRule::Same, ResultRule::Compute);
  const Tensor z = vector_of({2.5, -3.5});
  EXPECT_EQ(values(gradient(whole, 0, {&z}, {}, call(whole, {&z}))), (std::vector<double>{2, -3}));
}

TEST(MakePointwise, TypesThatMeetWithoutACastAreAnError) {
  const std::string message = error_of(ErrorKind::Type, [] {
    make_pointwise("float64(x) + x", kX, {}, ComputeRule::Same, ResultRule::Compute);
  });
  EXPECT_NE(message.find("`add` of float64 and same"), std::string::npos) << message;
  const std::string unknown = error_of(
      ErrorKind::Value, [] { make_pointwise("float16(x)", kX, {}, ComputeRule::Same, ResultRule::Compute); });
  EXPECT_NE(unknown.find("unknown function 'float16'"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace tenon::testing
