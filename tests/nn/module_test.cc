#include "tenon/nn/module.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/autograd/autograd.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/nn.h"
#include "tenon/ops/factory/from_data.h"
#include "tests/nn/testing.h"

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

struct Counted : Module {
  Counted() {
    register_buffer("count", tenon::tensor(std::vector<int64_t>{7}));
    register_buffer("cache", ones({2}), false);
  }
  Tensor forward(const Tensor& x) override { return x; }
  void add_again() { register_buffer("count", ones({1})); }
};
struct Nested : Module {
  Net& net = register_module("net", Net());
  Counted& counted = register_module("counted", Counted());
  Tensor forward(const Tensor& x) override { return net(x); }
};

/// What f() throws, an Error of kind Runtime, without its place in a program.
std::string refusal_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Runtime);
    return std::string(e.message());
  }
  return "no error";
}

TEST(Module, BuffersAreNamedAndNotTrained) {
  Nested nested;
  std::vector<std::string> names;
  for (const auto& [name, value] : nested.named_buffers()) {
    names.push_back(name);
    EXPECT_FALSE(value.requires_grad());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"counted.count", "counted.cache"}));
  EXPECT_EQ(nested.parameters().size(), 3u);
  EXPECT_EQ(kind_of([&] { nested.counted.add_again(); }), ErrorKind::Value);
}

TEST(Module, StateIsParametersAndPersistentBuffersOfTheModulesMemory) {
  Nested nested;
  const StateDict state = nested.state_dict();
  std::vector<std::string> names;
  for (const auto& [name, value] : state) {
    names.push_back(name);
    EXPECT_FALSE(value.requires_grad());
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"net.scale", "net.hidden.weight", "net.hidden.bias", "counted.count"}));
  EXPECT_EQ(state.at("net.hidden.weight").data_ptr(), nested.net.hidden.weight.data_ptr());
}

TEST(Module, StateIsCopiedIntoTheModule) {
  Nested from, to;
  from.net.scale.detach().fill_(5);
  from.counted.buffers()[0].fill_(9);
  StateDict state = from.state_dict();
  state.set("net.hidden.bias", state.at("net.hidden.bias").to(kFloat64));
  const Tensor weight = to.net.hidden.weight;
  const IncompatibleKeys keys = to.load_state_dict(state);
  EXPECT_TRUE(keys.missing_keys.empty() && keys.unexpected_keys.empty());
  EXPECT_TRUE(weight.is_same(to.net.hidden.weight) && weight.requires_grad() && weight.is_leaf());
  EXPECT_TRUE(equal(weight, from.net.hidden.weight));
  EXPECT_TRUE(equal(to.net.hidden.bias, from.net.hidden.bias));
  EXPECT_EQ(to.net.scale.item<float>(), 5);
  EXPECT_EQ(to.counted.buffers()[0].item<int64_t>(), 9);
}

TEST(Module, AllThatDoesNotFitIsListedAndNothingIsChanged) {
  Nested nested;
  const StateDict state{{"net.scale", zeros({1})},
                        {"net.hidden.weight", zeros({3, 4})},
                        {"counted.count", zeros({})},
                        {"net.hidden.weigth", zeros({4, 3})},
                        {"other", zeros({1})}};
  EXPECT_EQ(
      refusal_of([&] { nested.load_state_dict(state); }),
      "the state does not fit the module:"
      "\n\tMissing key(s) in state_dict: \"net.hidden.bias\"."
      "\n\tUnexpected key(s) in state_dict: \"net.hidden.weigth\", \"other\"."
      "\n\tsize mismatch for net.hidden.weight: a shape of [3, 4] in the state_dict, [4, 3] in the module."
      "\n\tsize mismatch for counted.count: a shape of [] in the state_dict, [1] in the module.");
  // Names may be missing and unknown where that is asked for; shapes fit all the same.
  EXPECT_NE(refusal_of([&] { nested.load_state_dict(state, false); }), "no error");
  EXPECT_EQ(nested.net.scale.item<float>(), 1);
  const IncompatibleKeys keys =
      nested.load_state_dict({{"net.scale", zeros({1})}, {"other", zeros({1})}}, false);
  EXPECT_EQ(keys.missing_keys,
            (std::vector<std::string>{"net.hidden.weight", "net.hidden.bias", "counted.count"}));
  EXPECT_EQ(keys.unexpected_keys, (std::vector<std::string>{"other"}));
  EXPECT_EQ(nested.net.scale.item<float>(), 0);
}

TEST(Module, AValueThatCannotBeCopiedIsNamedAndNothingIsChanged) {
  Nested nested;
  const auto bad = [&](const Tensor& bias) {
    return refusal_of([&] {
      nested.load_state_dict({{"net.scale", zeros({1})}, {"net.hidden.bias", bias}}, false);
    });
  };
  EXPECT_EQ(
      bad(empty({4}, TensorOptions(kMeta))),
      "the state does not fit the module:\n\tWhile copying \"net.hidden.bias\": copy_: cannot copy out of a "
      "meta tensor; it has no data");
  EXPECT_NE(bad(empty({4}, DType::Float8E5M2)).find("copy_: no conversion from float8_e5m2 to float32"),
            std::string::npos);
  EXPECT_EQ(nested.net.scale.item<float>(), 1);
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
