// Recording of signatures that the built-in operators do not have yet: several lists, and arguments that are
// written on the way (running statistics).
#include "tenon/autograd/history.h"
#include "tenon/dispatch/library.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using namespace tenon::autograd;
using V = std::vector<double>;

// sum_i a_i * b_i, over lists.
Tensor dot_lists(TensorList a, TensorList b) {
  Tensor out = tenon::mul(a[0], b[0]);
  for (size_t i = 1; i < a.size(); ++i) out = tenon::add(out, tenon::mul(a[i], b[i]));
  return out;
}
// x * 3; counts into `mean`, and into `count` where there is one.
Tensor running(const Tensor& x, Tensor& mean, Tensor& count) {
  mean.add_(x);
  if (count.defined()) count.add_(Scalar(1));
  return tenon::mul(x, Scalar(3));
}

TENON_LIBRARY(written_test, m) {
  m.def("dot_lists(Tensor[] a, Tensor[] b) -> Tensor");
  m.def("running(Tensor x, Tensor(a!) mean, Tensor(b!)? count) -> Tensor");
}
TENON_LIBRARY_IMPL(written_test, CPU, m) {
  m.impl("dot_lists", &dot_lists);
  m.impl("running", &running);
}

OperatorEntry* entry_of(const char* name) {
  return &Dispatcher::singleton().find_schema_or_throw(name).entry();
}

using Lists = Tensor(TensorList, TensorList);
void dot_lists_backward(const OpNode& node, std::span<const Tensor> grads, Gradients& out) {
  const auto& saved = static_cast<const SavedCall<Lists>&>(node);
  const auto times = [&](std::vector<Tensor> list) {
    for (Tensor& t : list) t = tenon::mul(grads[0], t);
    return list;
  };
  if (out.wanted(0)) out.set(0, times(saved.arg<1>()));
  if (out.wanted(1)) out.set(1, times(saved.arg<0>()));
}

TEST(Written, SeveralListsAreSavedAndLedTo) {
  constexpr ArgumentUse uses[] = {{.argument = 0, .saves = 2}, {.argument = 1, .saves = 1}};
  const DerivativeInfo info{.entry = entry_of("written_test::dot_lists"),
                            .node_name = "DotListsBackward0",
                            .uses = uses,
                            .backward = &dot_lists_backward};
  Tensor a = leaf({1}, {2}), b = leaf({1}, {3}), c = leaf({1}, {5}), d = make({1}, {7});
  const std::vector<Tensor> first{a, b}, second{c, d};
  Tensor y = HistoryCall<Lists>::call({.data = &info}, a.key_set(), first, second);
  EXPECT_EQ(y.grad_fn()->next_edges().size(), 4u);
  y.backward();
  EXPECT_EQ(values(a.grad()), (V{5}));
  EXPECT_EQ(values(b.grad()), (V{7}));
  EXPECT_EQ(values(c.grad()), (V{2}));
  EXPECT_NE(error_of([&] { y.backward(); }), "no error");
}

using Running = Tensor(const Tensor&, Tensor&, Tensor&);
Tensor seen_mean;
void running_backward(const OpNode& node, std::span<const Tensor> grads, Gradients& out) {
  seen_mean = static_cast<const SavedCall<Running>&>(node).arg<1>();
  out.set(0, tenon::mul(grads[0], Scalar(3)));
}

struct WrittenArguments : ::testing::Test {
  static constexpr ArgumentUse kUses[] = {{.argument = 0, .saves = 2}};
  DerivativeInfo info{.entry = entry_of("written_test::running"),
                      .node_name = "RunningBackward0",
                      .uses = kUses,
                      .backward = &running_backward};
  Tensor call(const Tensor& x, Tensor mean, Tensor count) {
    return HistoryCall<Running>::call({.data = &info}, x.key_set() | mean.key_set(), x, mean, count);
  }
};

TEST_F(WrittenArguments, AreWrittenAndTakeNoPart) {
  Tensor x = leaf({1}, {2}), mean = make({1}, {10}), count = make({1}, {0});
  Tensor y = call(x, mean, count);
  EXPECT_EQ(values(mean), (V{12}));
  EXPECT_EQ(values(count), (V{1}));
  EXPECT_FALSE(mean.requires_grad());
  y.backward();
  EXPECT_EQ(values(x.grad()), (V{3}));
  // What was saved is the value before the call, which a change afterwards does not touch.
  EXPECT_EQ(values(seen_mean), (V{10}));
  EXPECT_EQ(values(call(x, mean, Tensor())), (V{6}));
}

TEST_F(WrittenArguments, AreRefusedWhereTheyRequireGrad) {
  Tensor x = leaf({1}, {2}), plain = make({1}, {2}), mean = leaf({1}, {10});
  const std::string leaf_error = "a leaf Variable that requires grad is being used in an in-place operation.";
  EXPECT_EQ(error_of([&] { call(x, mean, Tensor()); }), leaf_error);
  EXPECT_EQ(error_of([&] { call(plain, mean, Tensor()); }), leaf_error);
  EXPECT_NE(error_of([&] {
              call(x, tenon::mul(mean, Scalar(1)), Tensor());
            }).find("running: argument `mean` is written in place and its derivative is not implemented"),
            std::string::npos);
  EXPECT_EQ(values(mean), (V{10}));
  const NoGradGuard guard;
  call(x, mean, Tensor());
  EXPECT_EQ(values(mean), (V{12}));
}

TEST_F(WrittenArguments, ThatAreNotDifferentiableMayBeAnything) {
  Tensor x = leaf({1}, {2}), mean = make({1}, {10}), count = make({1}, {3}, kInt64);
  call(x, mean, count).backward();
  EXPECT_EQ(values(count), (V{4}));
}

}  // namespace
}  // namespace tenon
