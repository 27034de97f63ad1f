// Every differentiable operator against central differences in float64, first and second derivatives, with
// incoming gradients of every layout. Points are away from kinks.
#include "tenon/dispatch/dispatcher.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using In = std::vector<Tensor>;

void check(const Function& f, const In& inputs) {
  check_gradients(f, inputs);
  check_second_gradients(f, inputs);
}
void check_one(const std::function<Tensor(const Tensor&)>& f, Tensor x) {
  check([&](const In& in) { return In{f(in[0])}; }, {std::move(x)});
}
void check_two(const std::function<Tensor(const Tensor&, const Tensor&)>& f, Tensor x, Tensor y) {
  check([&](const In& in) { return In{f(in[0], in[1])}; }, {std::move(x), std::move(y)});
}

Tensor around_zero() { return leaf({2, 3}, {-1.5, -0.8, -0.3, 0.4, 0.9, 1.7}); }
Tensor above_zero() { return leaf({2, 3}, {0.2, 0.5, 0.9, 1.3, 2.1, 3.4}); }
Tensor row() { return leaf({3}, {0.7, -1.1, 1.9}); }
Tensor matrix(int64_t n, int64_t m, double seed) {
  std::vector<double> v;
  for (int64_t i = 0; i < n * m; ++i) v.push_back(std::sin(seed + 1.7 * static_cast<double>(i)) + 0.1 * seed);
  return leaf({n, m}, v);
}

TEST(Gradcheck, UnaryOperators) {
  using F = Tensor (*)(const Tensor&);
  struct Case {
    const char* name;
    F f;
    bool positive;
  };
  const Case cases[] = {
      {"neg", [](const Tensor& x) { return tenon::neg(x); }, false},
      {"abs", [](const Tensor& x) { return tenon::abs(x); }, false},
      {"exp", [](const Tensor& x) { return tenon::exp(x); }, false},
      {"log", [](const Tensor& x) { return tenon::log(x); }, true},
      {"log1p", [](const Tensor& x) { return tenon::log1p(x); }, true},
      {"expm1", [](const Tensor& x) { return tenon::expm1(x); }, false},
      {"sqrt", [](const Tensor& x) { return tenon::sqrt(x); }, true},
      {"rsqrt", [](const Tensor& x) { return tenon::rsqrt(x); }, true},
      {"reciprocal", [](const Tensor& x) { return tenon::reciprocal(x); }, true},
      {"square", [](const Tensor& x) { return tenon::square(x); }, false},
      {"tanh", [](const Tensor& x) { return tenon::tanh(x); }, false},
      {"sigmoid", [](const Tensor& x) { return tenon::sigmoid(x); }, false},
      {"relu", [](const Tensor& x) { return tenon::relu(x); }, false},
      {"silu", [](const Tensor& x) { return tenon::silu(x); }, false},
      {"softplus", [](const Tensor& x) { return tenon::softplus(x); }, false},
      {"log_sigmoid", [](const Tensor& x) { return tenon::log_sigmoid(x); }, false},
      {"leaky_relu", [](const Tensor& x) { return tenon::leaky_relu(x, 0.1); }, false},
      {"sign", [](const Tensor& x) { return tenon::mul(tenon::sign(x), x); }, false},
      {"pow 3", [](const Tensor& x) { return tenon::pow(x, 3); }, false},
      {"pow 0.5", [](const Tensor& x) { return tenon::pow(x, 0.5); }, true},
      {"add 2", [](const Tensor& x) { return tenon::add(x, Scalar(2), Scalar(3)); }, false},
      {"mul 2", [](const Tensor& x) { return tenon::mul(x, Scalar(2.5)); }, false},
      {"div 2", [](const Tensor& x) { return tenon::div(x, Scalar(2.5)); }, false},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    check_one(c.f, c.positive ? above_zero() : around_zero());
  }
}

bool finite(const Tensor& t) {
  for (const double v : values(t)) {
    if (!std::isfinite(v)) return false;
  }
  return true;
}

/// All operators that take only tensors, one or two, and accept small matrices; whoever adds one has it
/// tested here.
TEST(Gradcheck, EveryOperatorOfOneOrTwoTensors) {
  // Values in no special relation to each other, inside most domains; the others get values above 1.
  const std::vector<double> below_one = {0.15, 0.31, 0.47, 0.58, 0.72, 0.83},
                            above_one = {1.21, 1.37, 1.58, 1.72, 1.91, 2.23};
  Dispatcher& dispatcher = Dispatcher::singleton();
  size_t checked = 0;
  for (const std::string& name : dispatcher.operator_names()) {
    const OperatorHandle op = dispatcher.find_schema_or_throw_full(name);
    const auto& schema = op.schema();
    const size_t n = schema.arguments.size();
    if (!name.starts_with("aten::") || n < 1 || n > 2 || schema.returns.size() != 1 ||
        !schema.returns[0].type.is_tensor())
      continue;
    bool fits = true;
    for (const auto& a : schema.arguments) fits &= a.type.is_tensor() && !a.type.optional && !a.is_write();
    fits &= name != "aten::_copy_from_and_resize";  // it writes its second argument, whatever its schema says
    // Their derivatives raise.
    fits &= name != "aten::_standard_gamma_grad" && name != "aten::special_zeta";
    if (!fits) continue;
    SCOPED_TRACE(name);
    const Function f = [&](const In& in) -> In {
      const Tensor out = n == 1 ? op.typed<Tensor(const Tensor&)>().call(in[0])
                                : op.typed<Tensor(const Tensor&, const Tensor&)>().call(in[0], in[1]);
      return {out.is_complex() ? tenon::view_as_real(out) : out};
    };
    for (const auto& numbers : {below_one, above_one}) {
      In inputs = {leaf({2, 3}, numbers)};
      if (n == 2) inputs.push_back(leaf({2, 3}, {0.63, 0.22, 0.91, 0.34, 0.55, 0.77}));
      Tensor out;
      try {
        out = f(inputs)[0];
      } catch (const Error&) {
        break;  // other shapes or dtypes
      }
      if (!out.requires_grad()) break;
      if (!finite(out)) continue;
      check_gradients(f, inputs);
      const std::vector<Tensor> first =
          autograd::grad({&out, 1}, inputs, std::vector<Tensor>{tenon::ones_like(out)}, {}, true, true);
      // Their second derivatives by the shape raise.
      bool twice = name != "aten::igamma" && name != "aten::igammac";
      for (const Tensor& g : first) twice &= g.defined() && g.requires_grad();
      if (twice) check_second_gradients(f, inputs);
      ++checked;
      break;
    }
  }
  EXPECT_GT(checked, 30u);
  RecordProperty("operators", static_cast<int>(checked));
}

TEST(Gradcheck, BinaryOperatorsBroadcast) {
  check_two([](const Tensor& a, const Tensor& b) { return tenon::add(a, b, Scalar(2)); }, around_zero(),
            row());
  check_two([](const Tensor& a, const Tensor& b) { return tenon::sub(a, b); }, row(), around_zero());
  check_two([](const Tensor& a, const Tensor& b) { return tenon::mul(a, b); }, around_zero(), row());
  check_two([](const Tensor& a, const Tensor& b) { return tenon::div(a, b); }, around_zero(), row());
  check_two([](const Tensor& a, const Tensor& b) { return tenon::pow(a, b); }, above_zero(), row());
  check_two([](const Tensor& a, const Tensor& b) { return tenon::maximum(a, b); }, around_zero(), row());
  check_two(
      [](const Tensor& a, const Tensor& b) { return tenon::where(tenon::gt(a, b), tenon::mul(a, a), b); },
      around_zero(), row());
}

TEST(Gradcheck, TransposedArguments) {
  check_two(
      [](const Tensor& a, const Tensor& b) {
        return tenon::mul(a.t(), b.flip({0, 1}));
      },
      matrix(2, 3, 1), matrix(3, 2, 2));
}

TEST(Gradcheck, Reductions) {
  check_one([](const Tensor& x) { return tenon::sum(x); }, around_zero());
  check_one(
      [](const Tensor& x) {
        return tenon::mul(tenon::sum(x, IntArrayRef{1}), tenon::sum(x, IntArrayRef{-1}));
      },
      around_zero());
  check_one([](const Tensor& x) { return tenon::mul(x, tenon::sum(x, IntArrayRef{0}, true)); },
            around_zero());
  check_one([](const Tensor& x) { return tenon::mean(tenon::mul(x, x)); }, around_zero());
  check_one([](const Tensor& x) { return tenon::mul(x, tenon::mean(x, IntArrayRef{1}, true)); },
            around_zero());
  check_one([](const Tensor& x) { return tenon::amax(x, IntArrayRef{1}); }, around_zero());
  check_one([](const Tensor& x) { return tenon::amin(x, IntArrayRef{0}, true); }, around_zero());
  check_one([](const Tensor& x) { return tenon::max(x); }, around_zero());
  check_one([](const Tensor& x) { return std::get<0>(tenon::max(x, 1)); }, around_zero());
  check_one([](const Tensor& x) { return tenon::cumsum(x, 1); }, around_zero());
  check_one([](const Tensor& x) { return tenon::logsumexp(x, IntArrayRef{1}); }, around_zero());
}

TEST(Gradcheck, TiedMaximaShareTheGradient) {
  Tensor x = leaf({4}, {1, 3, 3, 2});
  tenon::amax(x, IntArrayRef{0}).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0, 0.5, 0.5, 0}));
}

TEST(Gradcheck, Softmax) {
  check_one([](const Tensor& x) { return tenon::softmax(x, 1); }, around_zero());
  check_one([](const Tensor& x) { return tenon::softmax(x, 0); }, around_zero());
  check_one([](const Tensor& x) { return tenon::log_softmax(x, 1); }, around_zero());
}

TEST(Gradcheck, Losses) {
  const Tensor target = make({2}, {2, 0}, kInt64);
  check_one([&](const Tensor& x) { return tenon::cross_entropy_loss(x, target); }, around_zero());
  check_one([&](const Tensor& x) { return tenon::nll_loss(tenon::log_softmax(x, 1), target, {}, 0); },
            around_zero());
  check_one(
      [&](const Tensor& x) {
        return tenon::nll_loss(x, target, make({3}, {0.2, 0.3, 0.5}));
      },
      around_zero());
}

TEST(Gradcheck, MatrixProducts) {
  check_two([](const Tensor& a, const Tensor& b) { return tenon::mm(a, b); }, matrix(2, 3, 1),
            matrix(3, 4, 2));
  check_two([](const Tensor& a, const Tensor& b) { return tenon::mm(a.t(), b.t()); }, matrix(3, 2, 1),
            matrix(4, 3, 2));
  check_two([](const Tensor& a, const Tensor& b) { return tenon::mv(a, b); }, matrix(2, 3, 1), row());
  check_two([](const Tensor& a, const Tensor& b) { return tenon::dot(a, b); }, row(), leaf({3}, {1, 2, 3}));
  check_two([](const Tensor& a, const Tensor& b) { return tenon::matmul(a, b); }, matrix(2, 3, 1), row());
  check([](const In& in) { return In{tenon::addmm(in[0], in[1], in[2], 0.5, 2)}; },
        {row(), matrix(2, 4, 1), matrix(4, 3, 2)});
  check([](const In& in) { return In{tenon::linear(in[0], in[1], in[2])}; },
        {matrix(2, 4, 1), matrix(3, 4, 2), row()});
  check_two(
      [](const Tensor& a, const Tensor& b) {
        return tenon::bmm(a.view({2, 1, 3}), b.view({2, 3, 2}));
      },
      matrix(2, 3, 1), matrix(6, 2, 2));
}

TEST(Gradcheck, Views) {
  const std::function<Tensor(const Tensor&)> views[] = {
      [](const Tensor& x) { return x.t(); },
      [](const Tensor& x) { return x.transpose(0, 1); },
      [](const Tensor& x) {
        return x.permute({1, 0});
      },
      [](const Tensor& x) { return x.select(1, -1); },
      [](const Tensor& x) { return x.slice(1, 0, 3, 2); },
      [](const Tensor& x) { return x.slice(1, std::nullopt, std::nullopt, -1); },
      [](const Tensor& x) {
        return x.flip({0, 1});
      },
      [](const Tensor& x) {
        return x.view({3, 2});
      },
      [](const Tensor& x) { return x.t().reshape({6}); },
      [](const Tensor& x) { return x.unsqueeze(1).squeeze(1); },
      [](const Tensor& x) {
        return x.unsqueeze(0).expand({2, 2, 3});
      },
      [](const Tensor& x) {
        return x.as_strided({2, 2}, {1, 2}, 1);
      },
      [](const Tensor& x) { return x.unfold(1, 2, 1); },
      [](const Tensor& x) { return x.diagonal(); },
      [](const Tensor& x) { return x.clone(); },
      [](const Tensor& x) { return x.t().contiguous(); },
  };
  int i = 0;
  for (const auto& f : views) {
    SCOPED_TRACE(i++);
    check_one([&](const Tensor& x) { return f(tenon::mul(x, x)); }, around_zero());
  }
}

TEST(Gradcheck, Indexing) {
  const Tensor rows = make({3}, {1, 0, 1}, kInt64);
  check_one([&](const Tensor& x) { return tenon::index_select(x, 0, rows); }, around_zero());
  check_one(
      [&](const Tensor& x) {
        return tenon::gather(x, 1, make({2, 2}, {2, 2, 0, 1}, kInt64));
      },
      around_zero());
  check_one([&](const Tensor& x) { return tenon::index(x, std::vector<Tensor>{rows}); }, around_zero());
}

TEST(Gradcheck, IndexedWrites) {
  const Tensor rows = make({3}, {1, 0, 1}, kInt64);
  const std::vector<Tensor> at = {rows}, apart = {make({2}, {1, 0}, kInt64)};
  check_two(
      [&](const Tensor& x, const Tensor& y) { return tenon::index_add(tenon::mul(x, x), 0, rows, y, 2); },
      around_zero(), matrix(3, 3, 1));
  check_two([&](const Tensor& x, const Tensor& y) { return tenon::mul(x, x).index_add_(0, rows, y); },
            around_zero(), matrix(3, 3, 1));
  check_two([&](const Tensor& x,
                const Tensor& y) { return tenon::mul(x, x).index_put_(at, tenon::mul(y, y), true); },
            around_zero(), matrix(3, 3, 1));
  check_two(
      [&](const Tensor& x, const Tensor& y) { return tenon::mul(x, x).index_put_(apart, tenon::mul(y, y)); },
      around_zero(), row());
}

TEST(Gradcheck, CopiesAndConversions) {
  check_two([](const Tensor& x, const Tensor& y) { return tenon::mul(x, x).copy_(tenon::mul(y, y)); },
            around_zero(), row());
  check_two(
      [](const Tensor& x, const Tensor& y) {
        Tensor all = tenon::mul(x, x), some = all.select(0, 1);
        tenon::fill_(some, y);
        return all;
      },
      around_zero(), leaf({}, {2}));
  Tensor x = leaf({2}, {1, 2}, kFloat32);
  tenon::sum(tenon::mul(x.to(kFloat64), make({2}, {3, 4}))).backward();
  EXPECT_EQ(x.grad().dtype(), kFloat32);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{3, 4}));
}

TEST(Gradcheck, ProductsAndMoments) {
  check_one([](const Tensor& x) { return tenon::prod(x); }, around_zero());
  check_one([](const Tensor& x) { return tenon::prod(x, 1); }, around_zero());
  check_one([](const Tensor& x) { return tenon::prod(x, 1); }, leaf({2, 3}, {1, 0, 2, 3, 4, 5}));
  check_one([](const Tensor& x) { return tenon::var(x); }, around_zero());
  check_one([](const Tensor& x) { return tenon::std(x, IntArrayRef{1}); }, around_zero());
}

TEST(Gradcheck, InPlaceOperators) {
  check_two(
      [](const Tensor& a, const Tensor& b) {
        Tensor y = tenon::mul(a, a);
        y.add_(b);
        y.mul_(b);
        y.div_(tenon::add(tenon::mul(b, b), Scalar(1)));
        return y.tanh_();
      },
      around_zero(), row());
}

}  // namespace
}  // namespace tenon
