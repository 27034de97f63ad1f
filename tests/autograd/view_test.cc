// Views and in-place writes: whose history changes when elements are shared.
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using V = std::vector<double>;

std::string node_name(const Tensor& t) { return t.grad_fn() ? std::string(t.grad_fn()->name()) : "none"; }

TEST(View, WriteToTheBaseMakesAnOldViewDifferentiable) {
  Tensor b = make({3}, {1, 2, 3}), w = leaf({3}, {4, 5, 6});
  Tensor v = b.slice(0, 0, 2);
  EXPECT_FALSE(v.requires_grad());
  b.mul_(w);
  EXPECT_TRUE(v.requires_grad());
  EXPECT_EQ(node_name(v), "AsStridedBackward0");
  EXPECT_EQ(values(v), (V{4, 10}));
  tenon::sum(tenon::mul(v, v)).backward();
  EXPECT_EQ(values(w.grad()), (V{8, 40, 0}));
}

TEST(View, TakenBeforeRequiresGradStaysOutUntilAnInPlaceWrite) {
  Tensor b = make({3}, {1, 2, 3});
  Tensor v = b.slice(0, 0, 2);
  b.requires_grad_();
  EXPECT_FALSE(v.requires_grad());
  EXPECT_EQ(v.grad_fn(), nullptr);
  EXPECT_FALSE(tenon::mul(v, Scalar(2)).requires_grad());
  // A view taken now takes part.
  EXPECT_TRUE(b.slice(0, 0, 2).requires_grad());
  EXPECT_EQ(error_of([&] { v.mul_(Scalar(2)); }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  {
    const NoGradGuard guard;
    v.mul_(Scalar(2));
  }
  EXPECT_EQ(values(b), (V{2, 4, 3}));
  EXPECT_FALSE(v.requires_grad());
}

TEST(View, WriteThroughAViewIsHistoryOfTheBase) {
  Tensor x = leaf({2, 3}, {1, 2, 3, 4, 5, 6}), w = leaf({3}, {10, 20, 30});
  Tensor b = tenon::mul(x, Scalar(2));
  b.select(0, 1).mul_(w);
  EXPECT_EQ(node_name(b), "CopySlices");
  EXPECT_EQ(values(b), (V{2, 4, 6, 80, 200, 360}));
  b.backward(make({2, 3}, {1, 1, 1, 1, 2, 3}));
  EXPECT_EQ(values(x.grad()), (V{2, 2, 2, 20, 80, 180}));
  EXPECT_EQ(values(w.grad()), (V{8, 20, 36}));
}

TEST(View, WriteThroughAViewOfAPlainBase) {
  Tensor b = make({2, 2}, {1, 2, 3, 4}), w = leaf({2}, {5, 6});
  b.t().select(0, 1).copy_(w);
  EXPECT_EQ(values(b), (V{1, 5, 3, 6}));
  b.backward(make({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(values(w.grad()), (V{2, 4}));
}

TEST(View, OtherViewsSeeTheNewHistory) {
  Tensor x = leaf({4}, {1, 2, 3, 4}), w = leaf({2}, {5, 6});
  Tensor b = tenon::mul(x, Scalar(1));
  Tensor head = b.slice(0, 0, 2), middle = b.slice(0, 1, 3);
  EXPECT_EQ(node_name(middle), "SliceBackward0");
  head.mul_(w);
  EXPECT_EQ(node_name(middle), "AsStridedBackward0");
  EXPECT_EQ(node_name(head), "AsStridedBackward0");
  tenon::sum(middle).backward();
  EXPECT_EQ(values(x.grad()), (V{0, 6, 1, 0}));
  EXPECT_EQ(values(w.grad()), (V{0, 2}));
}

TEST(View, ViewsOfViewsShareTheBase) {
  Tensor x = leaf({2, 2}, {1, 2, 3, 4});
  Tensor b = tenon::mul(x, Scalar(1));
  Tensor v = b.t().select(0, 0);
  EXPECT_TRUE(v._base().is_same(b));
  v.mul_(Scalar(10));
  tenon::sum(b).backward();
  EXPECT_EQ(values(x.grad()), (V{10, 1, 10, 1}));
}

TEST(View, NegativeStridesAndSteps) {
  Tensor x = leaf({6}, {1, 2, 3, 4, 5, 6});
  Tensor b = tenon::mul(x, Scalar(1));
  Tensor v = b.flip({0}).slice(0, 0, 6, 2);  // 6 4 2
  v.mul_(make({3}, {10, 100, 1000}));
  b.backward(make({6}, {1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(values(x.grad()), (V{1, 1000, 1, 100, 1, 10}));
}

TEST(View, ExpandedViewSumsBack) {
  Tensor b = make({3}, {1, 2, 3}), w = leaf({3}, {1, 1, 1});
  Tensor v = b.unsqueeze(0).expand({4, 3});
  b.mul_(w);
  tenon::sum(v).backward();
  EXPECT_EQ(values(w.grad()), (V{4, 8, 12}));
}

TEST(View, OverlappingWindowsSumBack) {
  Tensor b = make({4}, {1, 1, 1, 1}), w = leaf({4}, {1, 1, 1, 1});
  Tensor v = b.unfold(0, 3, 1);
  b.mul_(w);
  v.backward(make({2, 3}, {1, 2, 3, 10, 20, 30}));
  EXPECT_EQ(values(w.grad()), (V{1, 12, 23, 30}));
}

TEST(View, WriteThroughAViewIsTwiceDifferentiable) {
  check_second_gradients(
      [](const std::vector<Tensor>& in) {
        Tensor b = tenon::mul(in[0], in[0]);
        b.t().select(0, 1).mul_(in[1]);
        return std::vector<Tensor>{tenon::mul(b, b)};
      },
      {leaf({2, 2}, {1, 2, 3, 4}), leaf({2}, {0.5, -0.7})});
}

TEST(View, RenewedViewIsTwiceDifferentiable) {
  check_second_gradients(
      [](const std::vector<Tensor>& in) {
        Tensor b = make({3}, {1, 2, 3});
        Tensor v = b.slice(0, 1, 3);
        b.mul_(in[0]);
        return std::vector<Tensor>{tenon::mul(v, v)};
      },
      {leaf({3}, {1, -2, 3})});
}

TEST(View, MadeInNoGradMayNotBeWrittenWithGrad) {
  Tensor x = leaf({2}, {1, 2});
  Tensor b = tenon::mul(x, Scalar(2));
  Tensor v;
  {
    const NoGradGuard guard;
    v = b.select(0, 0);
  }
  EXPECT_FALSE(v.requires_grad());
  EXPECT_NE(error_of([&] {
              v.mul_(Scalar(2));
            }).find("A view was created in no_grad mode and is being modified inplace"),
            std::string::npos);
  EXPECT_EQ(values(b), (V{2, 4}));
}

TEST(View, OfAViewMadeInNoGradIsAsItsBase) {
  Tensor x = leaf({2}, {1, 2});
  Tensor b = make({2}, {1, 2});
  b.mul_(x);
  Tensor v;
  {
    const NoGradGuard guard;
    v = b.slice(0, 0, 1);
  }
  Tensor inner = v.unsqueeze(0), flipped = v.flip({0});
  EXPECT_FALSE(inner.requires_grad());
  EXPECT_FALSE(flipped.requires_grad());
  EXPECT_NE(error_of([&] { inner.mul_(x.slice(0, 0, 1)); }).find("created in no_grad mode"),
            std::string::npos);
}

TEST(View, OfABaseWithANewHistoryCanBeWritten) {
  Tensor b = make({3}, {1, 2, 3}), w = leaf({3}, {4, 5, 6});
  Tensor v = b.slice(0, 0, 2);
  b.copy_(w);
  v.mul_(make({2}, {10, 100}));
  tenon::sum(b).backward();
  EXPECT_EQ(values(w.grad()), (V{10, 100, 1}));
}

TEST(View, VersionIsSharedWithTheBase) {
  Tensor b = make({3}, {1, 2, 3});
  Tensor v = b.slice(0, 0, 2);
  v.zero_();
  EXPECT_EQ(b._version(), 1u);
  b.add_(Scalar(1));
  EXPECT_EQ(v._version(), 2u);
}

TEST(View, WritingBackIntoWhatWasSavedLeaksNothing) {
  Tensor w = leaf({1}, {3});
  Storage kept;
  {
    Tensor y = tenon::mul(w, Scalar(2)), c = make({1}, {5});
    kept = c.storage();
    y.add_(tenon::mul(y, w));
    c.add_(tenon::mul(c, w));
  }
  EXPECT_EQ(kept.use_count(), 1u);
}

TEST(View, BaseOutlivesItsName) {
  Tensor w = leaf({3}, {4, 5, 6});
  Tensor v;
  {
    Tensor b = make({3}, {1, 2, 3});
    v = b.slice(0, 0, 2);
    b.mul_(w);
  }
  tenon::sum(v).backward();
  EXPECT_EQ(values(w.grad()), (V{1, 2, 0}));
}

}  // namespace
}  // namespace tenon
