// Recording: what a call leaves behind, for functional, in-place and out forms, and in every mode.
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using V = std::vector<double>;

std::string node_name(const Tensor& t) { return t.grad_fn() ? std::string(t.grad_fn()->name()) : "none"; }
std::vector<std::string> next_names(const Node& node) {
  std::vector<std::string> names;
  for (const Edge& e : node.next_edges()) names.push_back(e.node ? std::string(e.node->name()) : "none");
  return names;
}

TEST(History, WorkedExampleOfALine) {
  Tensor x = leaf({1}, {2}, kFloat32), w = leaf({1}, {3}, kFloat32), b = leaf({1}, {1}, kFloat32);
  Tensor y = tenon::sum(tenon::add(tenon::mul(x, w), b));
  EXPECT_EQ(node_name(y), "SumBackward0");
  const Node& add = *y.grad_fn()->next_edges()[0].node;
  EXPECT_EQ(add.name(), "AddBackward0");
  EXPECT_EQ(next_names(add), (std::vector<std::string>{"MulBackward0", "AccumulateGrad"}));
  y.backward();
  EXPECT_EQ(values(x.grad()), (V{3}));
  EXPECT_EQ(values(w.grad()), (V{2}));
  EXPECT_EQ(values(b.grad()), (V{1}));
}

TEST(History, WorkedExampleOfACube) {
  Tensor x = leaf({}, {2});
  const Tensor y = tenon::pow(x, 3);
  const Tensor first = autograd::grad({&y, 1}, {&x, 1}, {}, {}, true)[0];
  EXPECT_EQ(values(first), (V{12}));
  EXPECT_TRUE(first.requires_grad());
  const Tensor second = autograd::grad({&first, 1}, {&x, 1}, {}, {}, true)[0];
  EXPECT_EQ(values(second), (V{12}));
  EXPECT_EQ(values(autograd::grad({&second, 1}, {&x, 1})[0]), (V{6}));
}

TEST(History, NothingIsRecordedWhereNothingRequiresGrad) {
  const Tensor a = make({2}, {1, 2});
  const Tensor b = tenon::mul(a, a);
  EXPECT_FALSE(b.requires_grad());
  EXPECT_TRUE(b.is_leaf());
  EXPECT_FALSE(b.key_set().has(Functionality::Autograd));
  Tensor x = leaf({2}, {1, 2});
  const NoGradGuard guard;
  const Tensor c = tenon::mul(x, x);
  EXPECT_FALSE(c.requires_grad());
  EXPECT_FALSE(c.key_set().has(Functionality::Autograd));
}

TEST(History, KeyIsOnTensorsThatTakePart) {
  Tensor x = leaf({2}, {1, 2});
  EXPECT_TRUE(x.key_set().has(Functionality::Autograd));
  EXPECT_TRUE(tenon::exp(x).key_set().has(Functionality::Autograd));
  EXPECT_FALSE(x.detach().key_set().has(Functionality::Autograd));
  x.requires_grad_(false);
  EXPECT_FALSE(x.key_set().has(Functionality::Autograd));
  EXPECT_FALSE(tenon::exp(x).requires_grad());
}

TEST(History, RequiresGradIsRefusedWhereItMeansNothing) {
  Tensor i = make({1}, {1}, kInt64);
  EXPECT_NE(error_of([&] { i.requires_grad_(); }).find("only tensors of floating point"), std::string::npos);
  Tensor x = leaf({1}, {1});
  Tensor y = tenon::exp(x);
  EXPECT_NE(error_of([&] { y.requires_grad_(false); }).find("leaf variables"), std::string::npos);
  EXPECT_NO_THROW(y.requires_grad_());
}

TEST(History, IntegerResultsHaveNoHistory) {
  Tensor x = leaf({3}, {1, 5, 2});
  EXPECT_FALSE(tenon::argmax(x).requires_grad());
  EXPECT_FALSE(tenon::gt(x, Scalar(1)).requires_grad());
}

TEST(History, BroadcastAndPromotionComeBack) {
  Tensor a = leaf({3, 1}, {1, 2, 3}), b = leaf({4}, {1, 2, 3, 4}, kFloat32);
  const Tensor y = tenon::mul(a, b);
  EXPECT_EQ(y.dtype(), kFloat64);
  tenon::sum(y).backward();
  EXPECT_EQ(values(a.grad()), (V{10, 10, 10}));
  EXPECT_EQ(values(b.grad()), (V{6, 6, 6, 6}));
  EXPECT_EQ(b.grad().dtype(), kFloat32);
  EXPECT_EQ(b.grad().sizes(), (IntArrayRef{4}));
}

TEST(History, OnlyWhatIsNeededIsSaved) {
  Tensor x = leaf({1}, {2});
  Tensor c = make({1}, {5});
  Tensor y = tenon::mul(x, c);
  {
    const NoGradGuard guard;
    x.mul_(Scalar(3));  // d/dx needs c alone
  }
  y.backward();
  EXPECT_EQ(values(x.grad()), (V{5}));
}

TEST(History, ChangeOfASavedResultIsReported) {
  Tensor x = leaf({1}, {1});
  Tensor y = tenon::exp(x);
  y.mul_(Scalar(2));
  EXPECT_TRUE(error_of([&] { tenon::sum(y).backward(); })
                  .starts_with(
                      "backward: `exp` saved its result, which was changed in place (version 1, expected 0); "
                      "use the out-of-place form instead, or write to a clone() of it: writes through "
                      "`.data` and detach() count too. Saved at "));
}

TEST(History, ChangeOfASavedArgumentIsReportedThroughAnyView) {
  Tensor x = leaf({2}, {1, 2});
  Tensor c = make({2}, {3, 4});
  Tensor y = tenon::mul(x, c);
  c.select(0, 0).zero_();
  EXPECT_TRUE(
      error_of([&] { tenon::sum(y).backward(); })
          .starts_with("backward: `mul` saved `other`, which was changed in place (version 1, expected 0); "
                       "use the out-of-place form instead, or write to a clone() of it: writes through "
                       "`.data` and detach() count too. Saved at "));
}

TEST(History, InPlaceOfAResult) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = tenon::mul(x, Scalar(3));
  y.mul_(y.detach().clone());
  EXPECT_EQ(node_name(y), "MulBackward0");
  tenon::sum(y).backward();
  EXPECT_EQ(values(x.grad()), (V{9, 18}));
}

TEST(History, InPlaceKeepsTheOldValueThatItsDerivativeNeeds) {
  Tensor x = leaf({2}, {1, 2}), w = leaf({2}, {5, 7});
  Tensor y = tenon::mul(x, Scalar(3));
  y.mul_(w);
  tenon::sum(y).backward();
  EXPECT_EQ(values(w.grad()), (V{3, 6}));
  EXPECT_EQ(values(x.grad()), (V{15, 21}));
}

TEST(History, InPlaceSavesItsResult) {
  Tensor x = leaf({2}, {0, 1});
  Tensor y = tenon::mul(x, Scalar(1));
  y.exp_();
  tenon::sum(y).backward();
  EXPECT_NEAR(values(x.grad())[1], std::exp(1.0), 1e-15);
  Tensor z = tenon::mul(x, Scalar(1));
  z.exp_();
  z.add_(Scalar(1));
  EXPECT_NE(error_of([&] { tenon::sum(z).backward(); }).find("`exp_` saved its result"), std::string::npos);
}

TEST(History, InPlaceMakesAPlainTensorDifferentiable) {
  Tensor b = make({2}, {1, 2}), w = leaf({2}, {5, 7});
  b.mul_(w);
  EXPECT_TRUE(b.requires_grad());
  EXPECT_FALSE(b.is_leaf());
  tenon::sum(b).backward();
  EXPECT_EQ(values(w.grad()), (V{1, 2}));
}

TEST(History, FillForgetsTheHistory) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = tenon::mul(x, Scalar(3));
  y.zero_();
  tenon::sum(tenon::add(y, x)).backward();
  EXPECT_EQ(values(x.grad()), (V{1, 1}));
}

TEST(History, InPlaceOnALeafIsRefused) {
  Tensor x = leaf({2}, {1, 2});
  EXPECT_EQ(error_of([&] { x.mul_(Scalar(2)); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(error_of([&] { x.select(0, 1).mul_(Scalar(2)); }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(values(x), (V{1, 2}));
  EXPECT_EQ(x._version(), 0u);
  const NoGradGuard guard;
  x.mul_(Scalar(2));
  EXPECT_EQ(values(x), (V{2, 4}));
  EXPECT_TRUE(x.is_leaf());
}

TEST(History, OutIsRefused) {
  Tensor x = leaf({2}, {1, 2}), out = make({2}, {0, 0});
  EXPECT_EQ(error_of([&] { tenon::mul_out(out, x, x); }),
            "mul(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments "
            "requires grad.");
  const NoGradGuard guard;
  tenon::mul_out(out, x, x);
  EXPECT_EQ(values(out), (V{1, 4}));
}

TEST(History, DetachCutsAndShares) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = tenon::mul(x, x);
  Tensor d = y.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_EQ(d.data_ptr(), y.data_ptr());
  y.mul_(Scalar(2));
  EXPECT_FALSE(d.requires_grad());
  EXPECT_EQ(values(d), (V{2, 8}));
}

TEST(History, DetachInPlace) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = tenon::mul(x, x);
  autograd::detach_(y);
  EXPECT_TRUE(y.is_leaf());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(error_of([&] { autograd::detach_(x.select(0, 0)); }),
            "Can't detach views in-place. Use detach() instead.");
}

TEST(History, SecondPassNeedsARetainedGraph) {
  Tensor x = leaf({1}, {3});
  Tensor y = tenon::mul(x, x);
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(values(x.grad()), (V{12}));
  EXPECT_EQ(error_of([&] { y.backward(); }).substr(0, 53),
            "Trying to backward through the graph a second time (o");
}

TEST(History, WrongRootsAreRefused) {
  Tensor x = leaf({2}, {1, 2});
  EXPECT_EQ(
      error_of([&] { tenon::mul(x, x).backward(); }),
      "backward: grad can be implicitly created only for scalar outputs; output 0 has shape [2]: pass its "
      "gradient as `gradient`");
  EXPECT_NE(
      error_of([&] { make({1}, {1}).backward(); }).find("does not require grad and does not have a grad_fn"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              tenon::mul(x, x).backward(make({3}, {1, 1, 1}));
            }).find("Mismatch in shape"),
            std::string::npos);
  Tensor z = leaf({1}, {1}), y = tenon::sum(x);
  EXPECT_NE(error_of([&] {
              autograd::grad({&y, 1}, {&z, 1});
            }).find("not have been used in the graph"),
            std::string::npos);
  EXPECT_FALSE(autograd::grad({&y, 1}, {&z, 1}, {}, {}, false, true)[0].defined());
}

TEST(History, CreateGraphMakesGradDifferentiable) {
  Tensor x = leaf({2}, {1, 2});
  tenon::sum(tenon::pow(x, 3)).backward({}, {}, true);
  EXPECT_TRUE(x.grad().requires_grad());
  const Tensor g = tenon::sum(x.grad());
  EXPECT_EQ(values(autograd::grad({&g, 1}, {&x, 1})[0]), (V{6, 12}));
  // The gradient's history leads back to x, which keeps the gradient: a cycle, as in PyTorch.
  x.set_grad({});
}

TEST(History, RetainGradKeepsThatOfAResult) {
  Tensor x = leaf({2}, {1, 2});
  Tensor y = tenon::mul(x, Scalar(3));
  y.retain_grad();
  tenon::sum(tenon::mul(y, y)).backward();
  EXPECT_EQ(values(y.grad()), (V{6, 12}));
  EXPECT_EQ(values(x.grad()), (V{18, 36}));
}

TEST(History, InferenceModeTakesNoPart) {
  Tensor x = leaf({2}, {1, 2});
  Tensor made, view;
  {
    const InferenceMode guard;
    made = tenon::mul(x, x);
    view = x.select(0, 0);
  }
  EXPECT_FALSE(made.requires_grad());
  EXPECT_NE(error_of([&] { made.requires_grad_(); }).find("inference tensor"), std::string::npos);
  EXPECT_NE(error_of([&] { tenon::mul(x, made); }).find("Inference tensors cannot be saved for backward"),
            std::string::npos);
  EXPECT_NE(error_of([&] { view.mul_(x.select(0, 1)); }).find("inference mode"), std::string::npos);
}

TEST(History, GradOfALeafCanBeSetAndCleared) {
  Tensor x = leaf({2}, {1, 2});
  x.set_grad(make({2}, {10, 20}));
  tenon::sum(x).backward();
  EXPECT_EQ(values(x.grad()), (V{11, 21}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
  tenon::sum(x).backward();
  EXPECT_EQ(values(x.grad()), (V{1, 1}));
  EXPECT_NE(error_of([&] { x.set_grad(make({1}, {1})); }).find("shape"), std::string::npos);
}

TEST(History, TheFirstGradientIsNotSharedWithItsSource) {
  Tensor x = leaf({2}, {1, 2}), y = leaf({2}, {1, 2});
  Tensor g = make({2}, {1, 1});
  tenon::add(x, y).backward(g);
  EXPECT_NE(x.grad().data_ptr(), g.data_ptr());
  EXPECT_NE(x.grad().data_ptr(), y.grad().data_ptr());
}

TEST(History, SavedTensorsAreVisible) {
  struct Collect final : autograd::SavedVisitor {
    void tensor(std::string_view name, const Tensor& t) override { seen.emplace_back(name, values(t)); }
    std::vector<std::pair<std::string, V>> seen;
    void list(std::string_view, const std::vector<Tensor>&) override { FAIL(); }
  } collect;
  Tensor x = leaf({1}, {2}), w = leaf({1}, {3});
  tenon::mul(x, w).grad_fn()->visit_saved(collect);
  EXPECT_EQ(collect.seen, (std::vector<std::pair<std::string, V>>{{"self", {2}}, {"other", {3}}}));
}

}  // namespace
}  // namespace tenon
