// autograd::Function: functions with a backward of their own.
#include "tenon/autograd/function.h"

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using autograd::AutogradContext;
using autograd::Function;
using V = std::vector<double>;

struct Cube : Function<Cube> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, double factor) {
    ctx->save_for_backward({x});
    ctx->saved_data["factor"] = factor;
    return tenon::mul(tenon::mul(tenon::mul(x, x), x), Scalar(factor));
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, const std::vector<Tensor>& grads) {
    const Tensor x = ctx->get_saved_variables()[0];
    const double factor = ctx->saved_data["factor"].to<double>();
    return {tenon::mul(tenon::mul(grads[0], tenon::mul(x, x)), Scalar(3 * factor)), Tensor()};
  }
};

TEST(Function, ForwardAndBackward) {
  Tensor x = leaf({2}, {2, 3});
  Tensor y = Cube::apply(x, 10.0);
  EXPECT_EQ(values(y), (V{80, 270}));
  EXPECT_EQ(y.grad_fn()->name(), "CubeBackward");
  tenon::sum(y).backward();
  EXPECT_EQ(values(x.grad()), (V{120, 270}));
  EXPECT_TRUE(
      error_of([&] { tenon::sum(y).backward(); }).starts_with("Trying to backward through the graph a"));
}

TEST(Function, BackwardIsRecordedToAnyOrder) {
  Tensor x = leaf({}, {2});
  Tensor y = Cube::apply(x, 1.0);
  for (const double expected : {12., 12., 6.}) {
    y = autograd::grad({&y, 1}, {&x, 1}, {}, {}, true)[0];
    EXPECT_EQ(values(y), (V{expected}));
  }
}

TEST(Function, NothingIsRecordedWithoutNeed) {
  EXPECT_FALSE(Cube::apply(make({1}, {1}), 1.0).requires_grad());
  const NoGradGuard guard;
  EXPECT_FALSE(Cube::apply(leaf({1}, {1}), 1.0).requires_grad());
}

struct Parts : Function<Parts> {
  static std::vector<Tensor> forward(AutogradContext* ctx, const std::vector<Tensor>& list,
                                     bool materialize) {
    ctx->set_materialize_grads(materialize);
    std::vector<Tensor> out;
    for (const Tensor& t : list) out.push_back(tenon::mul(t, Scalar(2)));
    Tensor positive = tenon::gt(list[0], Scalar(0)), half = tenon::mul(list[0], Scalar(0.5));
    ctx->mark_non_differentiable({half});
    out.push_back(positive);
    out.push_back(half);
    return out;
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, const std::vector<Tensor>& grads) {
    seen.clear();
    needed.clear();
    for (const Tensor& g : grads) seen.push_back(g.defined() ? values(g) : V{-1});
    for (size_t i = 0; i < 2; ++i) needed.push_back(ctx->needs_input_grad(i));
    return {grads[0].defined() ? tenon::mul(grads[0], Scalar(2)) : Tensor(), grads[1], Tensor()};
  }
  static inline std::vector<V> seen;
  static inline std::vector<bool> needed;
};

TEST(Function, ListsSeveralResultsAndMissingGradients) {
  Tensor a = leaf({1}, {3}), b = leaf({1}, {4});
  auto out = Parts::apply(std::vector<Tensor>{a, b}, true);
  ASSERT_EQ(out.size(), 4u);
  EXPECT_FALSE(out[2].requires_grad());
  EXPECT_FALSE(out[3].requires_grad());
  out[1].backward();
  EXPECT_EQ(Parts::seen, (std::vector<V>{{0}, {1}, {0}, {0}}));
  out = Parts::apply(std::vector<Tensor>{a, b}, false);
  autograd::grad({&out[0], 1}, {&a, 1});
  EXPECT_EQ(Parts::seen, (std::vector<V>{{1}, {-1}, {-1}, {-1}}));
  EXPECT_EQ(Parts::needed, (std::vector<bool>{true, false}));
}

struct Wrong : Function<Wrong> {
  static Tensor forward(AutogradContext*, const Tensor& x, int64_t) { return tenon::mul(x, Scalar(1)); }
  static std::vector<Tensor> backward(AutogradContext*, const std::vector<Tensor>& grads) {
    return std::vector<Tensor>(count, grads[0]);
  }
  static inline size_t count = 0;
};

TEST(Function, WhatBackwardReturnsIsChecked) {
  Tensor x = leaf({1}, {1});
  const auto run = [&](size_t count) {
    Wrong::count = count;
    return error_of([&] { Wrong::apply(x, int64_t{3}).backward(); });
  };
  EXPECT_EQ(run(1), "Function WrongBackward returned an incorrect number of gradients (expected 2, got 1)");
  EXPECT_EQ(run(3), "Function WrongBackward returned an incorrect number of gradients (expected 2, got 3)");
  EXPECT_EQ(
      run(2),
      "Function WrongBackward returned a gradient different from None at position 2, but the corresponding "
      "forward input was not a Variable");
}

struct Double : Function<Double> {
  static Tensor forward(AutogradContext* ctx, Tensor x) {
    x.mul_(Scalar(2));
    ctx->mark_dirty({x});
    return x;
  }
  static std::vector<Tensor> backward(AutogradContext*, const std::vector<Tensor>& grads) {
    return {tenon::mul(grads[0], Scalar(2))};
  }
};

TEST(Function, DirtyArguments) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = tenon::mul(x, Scalar(3));
  Double::apply(y);
  Double::apply(y.slice(0, 0, 1));
  EXPECT_EQ(y.grad_fn()->name(), "CopySlices");
  tenon::sum(y).backward();
  EXPECT_EQ(values(x.grad()), (V{12, 6}));
  EXPECT_EQ(error_of([&] { Double::apply(x); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
}

struct Same : Function<Same> {
  static Tensor forward(AutogradContext*, const Tensor& x) { return x; }
  static std::vector<Tensor> backward(AutogradContext*, const std::vector<Tensor>& grads) { return grads; }
};

TEST(Function, AnArgumentReturnedAsItIs) {
  Tensor x = leaf({1}, {1});
  Tensor y = Same::apply(x);
  EXPECT_FALSE(y.is_same(x));
  EXPECT_TRUE(x.is_leaf());
  y.backward();
  EXPECT_EQ(values(x.grad()), (V{1}));
  EXPECT_NE(
      error_of([&] { y.mul_(Scalar(2)); }).find("Output 0 of SameBackward is a view and is being modified"),
      std::string::npos);
}

struct SavesResult : Function<SavesResult> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    Tensor y = tenon::exp(x);
    ctx->save_for_backward({y});
    return y;
  }
  static std::vector<Tensor> backward(AutogradContext* ctx, const std::vector<Tensor>& grads) {
    return {tenon::mul(grads[0], ctx->get_saved_variables()[0])};
  }
};

TEST(Function, SavedResultsMakeNoCycle) {
  Tensor x = leaf({1}, {0});
  Storage kept;
  {
    Tensor y = SavesResult::apply(x);
    kept = y.storage();
    Tensor g = autograd::grad({&y, 1}, {&x, 1}, {}, {}, true)[0];
    EXPECT_EQ(values(autograd::grad({&g, 1}, {&x, 1})[0]), (V{1}));
  }
  EXPECT_EQ(kept.use_count(), 1u);
}

TEST(Function, SavedDataOfAnotherTypeIsRefused) {
  autograd::SavedValue value;
  EXPECT_EQ(error_of([&] { value.to<double>(); }), "saved_data: holds nothing, asked for double");
  value = 3;
  EXPECT_EQ(value.to<int>(), 3);
  EXPECT_EQ(error_of([&] { value.to<double>(); }), "saved_data: holds int, asked for double");
}

}  // namespace
}  // namespace tenon
