// Operators without a derivative, and custom operators with one registered by hand.
#include "tenon/autograd/fallback.h"

#include "tenon/dispatch/library.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

Tensor halve(const Tensor& x) { return tenon::mul(x, Scalar(0.5)); }
Tensor& halve_(Tensor& x) { return x.mul_(Scalar(0.5)); }

TENON_LIBRARY(autograd_test, m) {
  m.def("halve(Tensor x) -> Tensor");
  m.def("halve_(Tensor(a!) x) -> Tensor(a!)");
  m.def("plain(Tensor x) -> Tensor");
}
TENON_LIBRARY_IMPL(autograd_test, CPU, m) {
  m.impl("halve", &halve);
  m.impl("halve_", &halve_);
  m.impl("plain", &halve);
}
TENON_LIBRARY_IMPL(autograd_test, Autograd, m) {
  m.impl("halve", autograd::autograd_not_implemented_fallback());
  m.impl("halve_", autograd::autograd_not_implemented_fallback());
}

template <class Sig>
auto op(const char* name) {
  return Dispatcher::singleton().find_schema_or_throw(name).typed<Sig>();
}

TEST(Fallback, ForwardWorksAndBackwardSaysWhatIsMissing) {
  const auto f = op<Tensor(const Tensor&)>("autograd_test::halve");
  Tensor x = leaf({2}, {1, 3});
  const Tensor y = f.call(x);
  EXPECT_EQ(values(y), (std::vector<double>{0.5, 1.5}));
  EXPECT_TRUE(y.requires_grad());
  EXPECT_EQ(y.grad_fn()->name(), "NotImplemented");
  EXPECT_EQ(error_of([&] { tenon::sum(y).backward(); }),
            "derivative for autograd_test::halve is not implemented");
  EXPECT_FALSE(f.call(x.detach()).requires_grad());
  const NoGradGuard guard;
  EXPECT_FALSE(f.call(x).requires_grad());
}

TEST(Fallback, InPlace) {
  const auto f = op<Tensor&(Tensor&)>("autograd_test::halve_");
  Tensor x = leaf({2}, {1, 3});
  EXPECT_EQ(error_of([&] { f.call(x); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  Tensor y = tenon::mul(x, Scalar(1));
  f.call(y);
  EXPECT_EQ(values(y), (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(error_of([&] { tenon::sum(y).backward(); }),
            "derivative for autograd_test::halve_ is not implemented");
}

TEST(Fallback, WithoutAnAutogradKernelTheKernelsOwnOperatorsRecord) {
  Tensor x = leaf({2}, {1, 3});
  const Tensor y = op<Tensor(const Tensor&)>("autograd_test::plain").call(x);
  tenon::sum(y).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{0.5, 0.5}));
}

}  // namespace
}  // namespace tenon
