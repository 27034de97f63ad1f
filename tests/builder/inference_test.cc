// Inference in C++: a module planned once, run at addresses.
#include "tenon/builder/inference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "tenon/core/error.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/functions.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/nn.h"

namespace tenon {
namespace {

using Tensors = std::vector<Tensor>;

struct Net : nn::Module {
  nn::Linear& hidden = register_module("hidden", nn::Linear(4, 8));
  nn::Linear& last = register_module("last", nn::Linear(8, 3));
  Tensor forward(const Tensor& x) override { return last(relu(hidden(x))); }
};

TEST(Inference, GivesEagerBitsAtAddresses) {
  Net net;
  const NoGradGuard no_grad;
  const Inference run({randn({2, 4})},
                      [&](std::span<const Tensor> x) {
                        return Tensors{net(x[0]), x[0]};
                      },
                      {.exact = true});
  ASSERT_EQ(run.inputs().size(), 1u);
  EXPECT_EQ(run.outputs()[0].sizes, (Dims{2, 3}));
  for (int i = 0; i < 3; ++i) {
    const Tensor x = randn({2, 4}), y = empty({2, 3}), copy = empty({2, 4});
    const std::array<Address, 1> from{reinterpret_cast<Address>(x.data_ptr())};
    const std::array<Address, 2> to{reinterpret_cast<Address>(y.data_ptr()),
                                    reinterpret_cast<Address>(copy.data_ptr())};
    run.execute(from, to);
    EXPECT_TRUE(equal(y, net(x)));
    EXPECT_TRUE(equal(copy, x));
    EXPECT_TRUE(equal(run({x})[0], y));
  }
}

TEST(Inference, WritesResultsThatNoInputChanges) {
  const Tensor weight = randn({2, 3});
  const Inference run({ones({2})}, [&](std::span<const Tensor> x) {
    return Tensors{weight.t(), mul(x[0], 2)};
  });
  const Tensor x = ones({2}), fixed = zeros({3, 2}), doubled = zeros({2});
  const std::array<Address, 1> from{reinterpret_cast<Address>(x.data_ptr())};
  const std::array<Address, 2> to{reinterpret_cast<Address>(fixed.data_ptr()),
                                  reinterpret_cast<Address>(doubled.data_ptr())};
  run.execute(from, to);
  EXPECT_TRUE(equal(fixed, weight.t()));
  EXPECT_TRUE(equal(doubled, full({2}, 2)));
}

TEST(Inference, MultipliesRowsOfOneTensorByOneWeightTogether) {
  const Tensor weight = randn({40, 64});
  const auto unrolled = [&](std::span<const Tensor> x) {
    Tensors rows;
    for (int64_t i = 0; i < 20; ++i) rows.push_back(mm(select(x[0], 0, i), weight));
    return Tensors{stack(rows)};
  };
  const Tensor x = randn({20, 1, 40});
  for (const bool exact : {false, true}) {
    const Inference run({x}, unrolled, {.exact = exact});
    const auto products = std::ranges::count_if(run.graph().nodes, [](const graph::Node& node) {
      return node.op.traits().anchor.kind == AnchorTrait::Kind::Matmul;
    });
    EXPECT_EQ(products, exact ? 20 : 3);  // two rows by themselves, before it was known that more come
    EXPECT_TRUE(equal(run({x})[0], unrolled(std::array{x})[0]));
  }
}

TEST(Inference, NamesInputsThatDoNotFit) {
  const Inference run({ones({2, 4})}, [](std::span<const Tensor> x) { return Tensors{mul(x[0], 2)}; });
  const auto message = [&](const Tensors& inputs) {
    try {
      run(inputs);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(message({}).find("0 inputs, expected 1"), std::string::npos);
  EXPECT_NE(message({ones({4, 2})})
                .find("input 0 is float32 of shape [4, 2], and the plan was made for float32 of "
                      "shape [2, 4]"),
            std::string::npos)
      << message({ones({4, 2})});
  EXPECT_NE(message({ones({2, 4}, TensorOptions(kInt64))}).find("int64"), std::string::npos);
  EXPECT_NE(message({Tensor()}).find("undefined"), std::string::npos);
  EXPECT_THROW(run.execute({}, {}), Error);
}

TEST(Inference, WhatTheFunctionThrowsLeavesTheThreadAsItWas) {
  EXPECT_THROW(Inference({ones({2})}, [](std::span<const Tensor> x) -> Tensors { return {mm(x[0], x[0])}; }),
               Error);
  const Tensor w = ones({2}).requires_grad_();
  sum(mul(w, 3)).backward();
  EXPECT_EQ(w.grad().select(0, 0).item<float>(), 3.0f);
}

}  // namespace
}  // namespace tenon
