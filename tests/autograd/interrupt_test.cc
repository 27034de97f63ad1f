// A backward pass that is interrupted: no node runs after the request, and tensors are as usable as before.
#include <gtest/gtest.h>

#include <vector>

#include "tenon/autograd/engine.h"
#include "tenon/autograd/hooks.h"
#include "tenon/core/interrupt.h"
#include "tenon/tenon.h"

namespace tenon {
namespace {

struct Stopped : Interruption {};

TEST(InterruptedBackward, NoNodeRunsAfterTheRequest) {
  set_interrupt_answer([]() -> bool { throw Stopped(); });
  Tensor x = ones({3});
  x.requires_grad_();
  std::vector<Tensor> steps{x};
  std::vector<int> ran;
  for (int i = 1; i <= 6; ++i) {
    steps.push_back(steps.back() * 2);
    autograd::register_hook(steps.back(), [&ran, i](const Tensor&) {
      ran.push_back(i);
      if (i == 4) request_interrupt();
      return Tensor();
    });
  }
  EXPECT_THROW(steps.back().sum().backward(), Stopped);
  EXPECT_EQ(ran, (std::vector<int>{6, 5, 4}));
  EXPECT_FALSE(x.grad().defined());

  ran.clear();
  (x * 3).sum().backward();
  EXPECT_EQ(x.grad().sum().item<double>(), 9);
  set_interrupt_answer(nullptr);
}

}  // namespace
}  // namespace tenon
