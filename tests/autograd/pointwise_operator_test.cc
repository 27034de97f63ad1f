// Derivatives of pointwise operators, and run-time expressions, as operators of the dispatcher.
#include "tenon/autograd/pointwise_operator.h"

#include <set>
#include <thread>

#include "tenon/dispatch/library.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using Binary = Tensor(const Tensor&, const Tensor&);

std::vector<std::string>& lines() {
  static std::vector<std::string> lines;
  return lines;
}

/// What the dispatch trace says while this lives.
struct Traced {
  Traced() {
    lines().clear();
    set_diagnostic_sink(+[](std::string_view line) { lines().emplace_back(line); });
    set_dispatch_trace(true);
  }
  ~Traced() {
    set_dispatch_trace(false);
    set_diagnostic_sink(nullptr);
  }
  static bool saw(const std::string& text) {
    for (const std::string& line : lines()) {
      if (line.find(text) != std::string::npos) return true;
    }
    return false;
  }
};

/// All operators that calls of a scope went through, whatever they are.
std::set<std::string>& passed_by() {
  static std::set<std::string> names;
  return names;
}
void watch(const OperatorHandle& op, DispatchKeySet keys, Stack& stack) {
  passed_by().insert(op.full_name());
  op.redispatch_boxed(keys.below(Functionality::Profiler), stack);
}

Tensor first_gradient(const Tensor& y, const Tensor& x, bool create_graph = false) {
  return autograd::grad({&y, 1}, {&x, 1}, std::vector<Tensor>{tenon::ones_like(y)}, {}, create_graph)[0];
}

TEST(PointwiseOperator, ADerivativeIsAnOperatorFromItsFirstUseOn) {
  Dispatcher& dispatcher = Dispatcher::singleton();
  EXPECT_FALSE(dispatcher.find_op("aten::softplus_like", "self"));
  Tensor x = leaf({2}, {0.5, -1});
  tenon::sum(tenon::mul(tenon::silu(x), make({2}, {2, 3}))).backward();
  const auto op = dispatcher.find_op("aten::silu_backward", "self");
  ASSERT_TRUE(op);
  EXPECT_EQ(schema::to_string(op->schema()), "aten::silu_backward.self(Tensor grad, Tensor self) -> Tensor");
  EXPECT_TRUE(dispatcher.find_op("aten::mul_backward", "Tensor_self"));
  // It follows from silu, which somebody declared.
  const auto listed = dispatcher.operator_names(), all = dispatcher.operator_names(Dispatcher::Listed::No);
  const auto has = [](const auto& names, const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_FALSE(has(listed, "aten::silu_backward.self"));
  EXPECT_TRUE(has(all, "aten::silu_backward.self"));
  EXPECT_TRUE(has(all, "aten::silu"));
  // In-place calls use the same one.
  Tensor y = tenon::mul(leaf({1}, {0.5}), Scalar(1));
  y.silu_();
  tenon::sum(y).backward();
  EXPECT_FALSE(has(dispatcher.operator_names(Dispatcher::Listed::No), "aten::silu_backward.self_2"));
}

TEST(PointwiseOperator, IsCalledByName) {
  Tensor x = leaf({3}, {0.5, -1, 2});
  tenon::sum(tenon::tanh(x)).backward();
  const auto f = Dispatcher::singleton().find_schema_or_throw("aten::tanh_backward", "self").typed<Binary>();
  Tensor grad = leaf({2, 1}, {2, -1}), result = leaf({3}, {0.1, 0.2, 0.3});
  const Tensor y = f.call(grad, result);
  EXPECT_EQ(y.sizes(), (Dims{2, 3}));
  EXPECT_NEAR(values(y)[5], -1 * (1 - 0.3 * 0.3), 1e-15);
  tenon::sum(y).backward();
  EXPECT_NEAR(values(grad.grad())[0], 3 - 0.01 - 0.04 - 0.09, 1e-14);
  EXPECT_NEAR(values(result.grad())[1], (2 - 1) * -2 * 0.2, 1e-15);
  const NoGradGuard no_grad;
  EXPECT_FALSE(f.call(grad, result).requires_grad());
  EXPECT_EQ(f.call(tenon::empty({4}, TensorOptions(kMeta)), tenon::empty({4}, TensorOptions(kMeta))).sizes(),
            Dims{4});
}

TEST(PointwiseOperator, BackwardIsTracedAtEveryOrder) {
  Tensor x = leaf({2}, {0.5, -1});
  Tensor first, second;
  {
    const Traced traced;
    first = first_gradient(tenon::sin(x), x, true);
    EXPECT_TRUE(
        Traced::saw("[call] op=[aten::sin_backward.self], key=[AutogradCPU], args=[CPU, AutogradCPU]"));
    EXPECT_TRUE(Traced::saw("[redispatch] op=[aten::sin_backward.self], key=[CPU]"));
  }
  {
    const Traced traced;
    second = first_gradient(first, x);
    EXPECT_TRUE(Traced::saw("[redispatch] op=[aten::sin_backward_backward.self_self], key=[CPU]"));
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(values(first)[i], std::cos(values(x)[i]), 1e-15);
    EXPECT_NEAR(values(second)[i], -std::sin(values(x)[i]), 1e-15);
  }
}

TEST(PointwiseOperator, KeysAboveAndKernelsOfOthersSeeIt) {
  Library above(Library::Kind::Impl, "_", "Profiler", SourceLocation::here());
  above.fallback(CppFunction::make_from_boxed_function<&watch>());
  Tensor x = leaf({2}, {0.5, -1});
  const Tensor y = tenon::sum(tenon::cos(x));
  {
    passed_by().clear();
    const IncludeDispatchKeyGuard on{DispatchKeySet(Functionality::Profiler)};
    y.backward();
  }
  EXPECT_TRUE(passed_by().contains("aten::cos_backward.self"));
  EXPECT_NEAR(values(x.grad())[0], -std::sin(0.5), 1e-15);

  Library kernel(Library::Kind::Impl, "aten", "CPU", SourceLocation::here());
  kernel.impl(
      "cos_backward.self", +[](const Tensor& grad, const Tensor&) { return tenon::mul(grad, Scalar(7)); });
  Tensor z = leaf({1}, {3});
  tenon::sum(tenon::cos(z)).backward();
  EXPECT_EQ(values(z.grad()), std::vector<double>{7});
}

TEST(PointwiseOperator, AGradientThatIsMultipliedByOneIsPassedOn) {
  Tensor a = leaf({2}, {1, 2}), b = leaf({2}, {3, 4});
  const auto passed = [&](const Tensor& y, const Tensor& x) {
    const Tensor seed = make({2}, {5, 6}, y.dtype());
    return autograd::grad({&y, 1}, {&x, 1}, {&seed, 1}, {}, false)[0].data_ptr() == seed.data_ptr();
  };
  EXPECT_TRUE(passed(tenon::add(a, b), a));
  EXPECT_TRUE(passed(tenon::add(a, b), b));
  EXPECT_TRUE(passed(tenon::add(a, b, Scalar(1.0)), b)) << "times a number that is 1";
  EXPECT_FALSE(passed(tenon::add(a, b, Scalar(2)), b));
  EXPECT_TRUE(passed(tenon::mul(a, Scalar(1)), a));
  EXPECT_FALSE(passed(tenon::mul(a, Scalar(3)), a));
  EXPECT_FALSE(passed(tenon::sub(a, b), b));
  EXPECT_FALSE(passed(tenon::mul(a, b), a));
  Tensor z = tenon::complex(a.detach(), b.detach()).requires_grad_();
  EXPECT_TRUE(passed(tenon::add(z, z.detach()), z));
  EXPECT_FALSE(passed(tenon::mul(z, Scalar(std::complex<double>(1, 1))), z));
}

const std::string_view kX[] = {"x"}, kXY[] = {"x", "y"}, kA[] = {"a"};

Tensor call(const PointwiseInfo& info, std::initializer_list<const Tensor*> tensors,
            const Scalar* number = nullptr) {
  return autograd::call_expression(info, {tensors.begin(), tensors.size()},
                                   {&number, number ? size_t{1} : size_t{0}});
}

TEST(PointwiseOperator, AnExpressionOfRunTimeIsRecordedToAnyOrder) {
  const PointwiseInfo& f = make_pointwise("a * x * x * y", kXY, kA, ComputeRule::Float, ResultRule::Compute);
  Tensor x = leaf({2}, {2, 3}), y = leaf({1}, {5});
  const Scalar a(0.5);
  Tensor z;
  {
    const Traced traced;
    z = call(f, {&x, &y}, &a);
    EXPECT_TRUE(Traced::saw("[call] op=[aten::pointwise.expr"));
  }
  EXPECT_EQ(values(z), (std::vector<double>{10, 22.5}));
  const Tensor first = first_gradient(z, x, true);
  EXPECT_EQ(values(first), (std::vector<double>{10, 15}));
  const Tensor second = first_gradient(first, x, true);
  EXPECT_EQ(values(second), (std::vector<double>{5, 5}));
  EXPECT_EQ(values(first_gradient(second, y)), std::vector<double>{2});
  EXPECT_FALSE(call(f, {&z, &y}, &a).is_leaf());
  const PointwiseInfo& test = make_pointwise("x > 1", kX, {}, ComputeRule::Same, ResultRule::Bool);
  EXPECT_FALSE(call(test, {&x}).requires_grad());
}

TEST(PointwiseOperator, AnExpressionThatIsNotHolomorphicHasNoFormalDerivativeOnComplexTensors) {
  const PointwiseInfo& f = make_pointwise("x * abs(x)", kX, {}, ComputeRule::Float, ResultRule::Compute);
  Tensor x = leaf({1}, {-2});
  EXPECT_EQ(values(first_gradient(call(f, {&x}), x)), std::vector<double>{4});
  Tensor z = tenon::complex(x.detach(), x.detach()).requires_grad_();
  EXPECT_NE(error_of([&] { call(f, {&z}); }).find("no derivative on complex tensors"), std::string::npos);
  const Tensor plain = z.detach();
  EXPECT_EQ(call(f, {&plain}).numel(), 1);
}

TEST(PointwiseOperator, OneIsMadeHoweverManyThreadsComeFirst) {
  const PointwiseInfo& f = make_pointwise("x * x * x - 7", kX, {}, ComputeRule::Float, ResultRule::Compute);
  const auto count = [] {
    size_t n = 0;
    for (const std::string& name : Dispatcher::singleton().operator_names(Dispatcher::Listed::No)) {
      n += name.starts_with("aten::pointwise");
    }
    return n;
  };
  const size_t before = count();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      Tensor x = leaf({1}, {2});
      const Tensor first = first_gradient(call(f, {&x}), x, true);
      right += values(first) == std::vector<double>{12} &&
               values(first_gradient(first, x)) == std::vector<double>{12};
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 8);
  EXPECT_LE(count() - before, 4u) << "the expression, its derivative, and that one's by both operands";
}

TEST(PointwiseOperator, ManyOrdersEndWithAnError) {
  Tensor x = leaf({1}, {0.5});
  Tensor y = tenon::exp(x);
  for (int order = 0; order < 4; ++order) y = first_gradient(y, x, true);
  EXPECT_NEAR(values(y)[0], std::exp(0.5), 1e-15);
  y = tenon::pow(x, leaf({1}, {2.5}));
  std::string error = "no error";
  for (int order = 0; order < 10 && error == "no error"; ++order) {
    error = error_of([&] { y = first_gradient(y, x, true); });
  }
  EXPECT_NE(error.find("operands, more than 8"), std::string::npos) << error;
}

}  // namespace
}  // namespace tenon
