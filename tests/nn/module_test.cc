#include "tenon/nn/module.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/autograd/autograd.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/nn.h"

namespace tenon::nn {
namespace {

struct Net : Module {
  Linear& hidden = register_module("hidden", Linear(3, 4));
  Tensor scale = register_parameter("scale", ones({1}));
  Tensor forward(const Tensor& x) override { return mul(relu(hidden(x)), scale); }
  void add_again() { register_parameter("scale", ones({1})); }
  void add_dotted() { register_parameter("a.b", ones({1})); }
};

ErrorKind kind_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return ErrorKind::Internal;
}

TEST(Module, ParametersHaveTheirPathsOwnOnesFirst) {
  Net net;
  std::vector<std::string> names;
  for (const auto& [name, value] : net.named_parameters()) {
    names.push_back(name);
    EXPECT_TRUE(value.requires_grad());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "hidden.weight", "hidden.bias"}));
}

TEST(Module, TakenAndDottedNamesAreRefused) {
  Net net;
  EXPECT_EQ(kind_of([&] { net.add_again(); }), ErrorKind::Value);
  EXPECT_EQ(kind_of([&] { net.add_dotted(); }), ErrorKind::Value);
  EXPECT_EQ(net.parameters().size(), 3u);
}

TEST(Module, GradientsAreForgotten) {
  Net net;
  net(ones({2, 3})).sum().backward();
  EXPECT_TRUE(net.hidden.weight.grad().defined());
  net.zero_grad();
  for (const Tensor& p : net.parameters()) EXPECT_FALSE(p.grad().defined());
}

TEST(Module, EvalReachesTheModulesInside) {
  Net net;
  net.eval();
  EXPECT_FALSE(net.hidden.is_training());
  net.train();
  EXPECT_TRUE(net.hidden.is_training());
}

TEST(Module, CopiesShareParameters) {
  const Linear a(2, 2);
  const Linear b = a;
  EXPECT_TRUE(a.weight.is_same(b.weight));
}

TEST(Sequential, EachGetsTheResultOfTheOneBefore) {
  Sequential model(Linear(3, 4), ReLU(), Linear(4, 2));
  EXPECT_EQ(model.size(), 3u);
  EXPECT_EQ(model.named_parameters().back().first, "2.bias");
  EXPECT_EQ(model(ones({5, 3})).sizes(), (Dims{5, 2}));
}

TEST(Linear, ComputesInputTimesTransposedWeightPlusBias) {
  manual_seed(0);
  Linear layer(3, 2, {.dtype = kFloat64});
  const Tensor x = randn({4, 3}, kFloat64);
  const Tensor y = layer(x);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t o = 0; o < 2; ++o) {
      double want = layer.bias.data_ptr<double>()[o];
      for (int64_t k = 0; k < 3; ++k) {
        want += x.data_ptr<double>()[3 * i + k] * layer.weight.data_ptr<double>()[3 * o + k];
      }
      EXPECT_NEAR(y.data_ptr<double>()[2 * i + o], want, 1e-15);
    }
  }
}

TEST(Linear, StartsWithinItsBounds) {
  manual_seed(1);
  const Linear layer(64, 128);
  for (const Tensor& p : layer.parameters()) {
    float largest = 0;
    for (int64_t i = 0; i < p.numel(); ++i) largest = std::max(largest, std::abs(p.data_ptr<float>()[i]));
    EXPECT_LE(largest, 0.125f * (1 + 1e-6f));
    EXPECT_GT(largest, 0.1f);
  }
}

TEST(Linear, NegativeFeaturesAreRefused) {
  EXPECT_EQ(kind_of([] { Linear(-1, 2); }), ErrorKind::Value);
}

}  // namespace
}  // namespace tenon::nn
