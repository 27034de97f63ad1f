// Worked example 5 of the specification: gradients of a sum of a product, and a second derivative.
#include <gtest/gtest.h>

#include "tenon/autograd/autograd.h"
#include "tenon/autograd/node.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/ops/factory/from_data.h"
#include "tenon/ops/tensor_operators.h"

namespace tenon {
namespace {

TEST(Worked5, GradientsOfAProductAndTheirNodes) {
  const TensorOptions with_grad = TensorOptions().requires_grad(true);
  const Tensor x = tensor(2.0, with_grad), w = tensor(3.0, with_grad), b = tensor(1.0, with_grad);
  const Tensor y = (x * w + b).sum();
  EXPECT_EQ(y.item<float>(), 7);
  y.backward();
  EXPECT_EQ(x.grad().item<float>(), 3);
  EXPECT_EQ(w.grad().item<float>(), 2);
  EXPECT_EQ(b.grad().item<float>(), 1);

  const auto sum_node = y.grad_fn();
  ASSERT_TRUE(sum_node);
  EXPECT_EQ(sum_node->name(), "SumBackward0");
  const auto& add_node = sum_node->next_edges()[0].node;
  EXPECT_EQ(add_node->name(), "AddBackward0");
  EXPECT_EQ(add_node->next_edges()[0].node->name(), "MulBackward0");
}

TEST(Worked5, TheSecondDerivativeOfACube) {
  const Tensor x = tensor(2.0, TensorOptions().requires_grad(true));
  const Tensor y = pow(x, 3);
  const Tensor outputs[] = {y}, inputs[] = {x};
  const Tensor first = autograd::grad(outputs, inputs, {}, std::nullopt, true)[0];
  EXPECT_EQ(first.item<float>(), 12);
  const Tensor firsts[] = {first};
  EXPECT_EQ(autograd::grad(firsts, inputs)[0].item<float>(), 12);
}

}  // namespace
}  // namespace tenon
