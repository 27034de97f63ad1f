#include "tenon/optim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/autograd/autograd.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::optim {
namespace {

constexpr double kGradients[] = {0.5, -1.25, 2.0, 0.125};

Tensor scalar_parameter(double value) {
  Tensor p = full({1}, value, kFloat64);
  p.requires_grad_();
  return p;
}

/// The parameter after one step for each gradient.
double run(Optimizer& optimizer) {
  Tensor p = optimizer.parameters()[0];
  for (const double g : kGradients) {
    p.set_grad(full({1}, g, kFloat64));
    optimizer.step();
  }
  return *p.data_ptr<double>();
}

TEST(Sgd, FollowsItsFormula) {
  SGD optimizer({scalar_parameter(1.5)},
                {.lr = 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.01});
  double p = 1.5, velocity = 0;
  bool first = true;
  for (const double g : kGradients) {
    const double d = g + 0.01 * p;
    velocity = first ? d : 0.9 * velocity + 0.75 * d;
    first = false;
    p -= 0.1 * velocity;
  }
  EXPECT_NEAR(run(optimizer), p, 1e-14);
}

TEST(Sgd, NesterovLooksAhead) {
  SGD optimizer({scalar_parameter(1.5)}, {.lr = 0.1, .momentum = 0.9, .nesterov = true});
  double p = 1.5, velocity = 0;
  for (const double g : kGradients) {
    velocity = 0.9 * velocity + g;
    p -= 0.1 * (g + 0.9 * velocity);
  }
  EXPECT_NEAR(run(optimizer), p, 1e-14);
}

double adam_reference(double p, bool decoupled, double decay) {
  double m = 0, v = 0;
  int step = 0;
  for (double g : kGradients) {
    ++step;
    if (decoupled)
      p *= 1 - 0.1 * decay;
    else
      g += decay * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= 0.1 * (m / (1 - std::pow(0.9, step))) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
  }
  return p;
}

TEST(Adam, FollowsItsFormula) {
  Adam optimizer({scalar_parameter(1.5)}, {.lr = 0.1, .weight_decay = 0.2});
  EXPECT_NEAR(run(optimizer), adam_reference(1.5, false, 0.2), 1e-12);
}

TEST(AdamW, ShrinksTheParameterItself) {
  AdamW optimizer({scalar_parameter(1.5)}, {.lr = 0.1, .weight_decay = 0.2});
  EXPECT_NEAR(run(optimizer), adam_reference(1.5, true, 0.2), 1e-12);
}

TEST(Optimizer, LeavesParametersWithoutGradient) {
  SGD optimizer({scalar_parameter(1.5)}, {.lr = 0.1, .momentum = 0.9});
  optimizer.step();
  EXPECT_EQ(*optimizer.parameters()[0].data_ptr<double>(), 1.5);
}

TEST(Optimizer, ForgetsOrZeroesGradients) {
  SGD optimizer({scalar_parameter(1.5)}, {.lr = 0.1});
  Tensor p = optimizer.parameters()[0];
  p.set_grad(ones({1}, kFloat64));
  optimizer.zero_grad(false);
  EXPECT_EQ(*p.grad().data_ptr<double>(), 0);
  optimizer.zero_grad();
  EXPECT_FALSE(p.grad().defined());
}

TEST(Optimizer, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](auto&& make) {
    try {
      make();
    } catch (const Error& e) {
      return e.kind() == ErrorKind::Value;
    }
    return false;
  };
  EXPECT_TRUE(refused([] { SGD({}, {.lr = 0.1}); }));
  EXPECT_TRUE(refused([] { SGD({scalar_parameter(1)}, {.lr = -1}); }));
  EXPECT_TRUE(refused([] { SGD({scalar_parameter(1)}, {.lr = 1, .nesterov = true}); }));
  EXPECT_TRUE(refused([] { SGD({scalar_parameter(1).mul(2)}, {.lr = 1}); }));
  EXPECT_TRUE(refused([] { Adam({scalar_parameter(1)}, {.beta1 = 1}); }));
}

}  // namespace
}  // namespace tenon::optim
