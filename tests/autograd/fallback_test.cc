// Operators without a derivative, and custom operators with one registered by hand.
#include "tenon/autograd/fallback.h"

#include "tenon/dispatch/library.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tests/autograd/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

Tensor halve(const Tensor& x) { return tenon::mul(x, Scalar(0.5)); }
Tensor& halve_(Tensor& x) { return x.mul_(Scalar(0.5)); }

// Kernels that touch elements and call no operator.
Tensor raw(const Tensor& x) {
  const Tensor c = x.detach().contiguous(), out = make_empty(x.sizes(), x.dtype());
  for (int64_t i = 0; i < x.numel(); ++i) out.data_ptr<double>()[i] = 3 * c.data_ptr<double>()[i];
  return out;
}
Tensor& raw_(Tensor& x, const Tensor&) {
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<double>()[i * x.stride(0)] *= 3;
  return x;
}
Tensor row(const Tensor& x, int64_t i) {
  return make_view(x, Dims{x.size(1)}, Dims{x.stride(1)}, x.storage_offset() + i * x.stride(0));
}
Tensor raw_row(const Tensor& x) { return row(x, 0); }
std::vector<Tensor> raw_rows(const Tensor& x) { return {row(x, 0), row(x, 1)}; }
std::tuple<Tensor, Tensor, int64_t> raw_three(const Tensor& x) {
  return {raw(x), make_empty({1}, DType::Int64), 7};
}
std::vector<Tensor> raw_list(TensorList xs) { return {raw(xs[0]), raw(xs[1])}; }
void raw_lists_(TensorList xs) {
  for (const Tensor& x : xs) {
    Tensor t = x;
    raw_(t, x);
  }
}
Tensor composed(const Tensor& x) { return tenon::mul(tenon::exp(x), x); }

TENON_LIBRARY(autograd_test, m) {
  m.def("halve(Tensor x) -> Tensor");
  m.def("halve_(Tensor(a!) x) -> Tensor(a!)");
  m.def("plain(Tensor x) -> Tensor");
  m.def("raw(Tensor x) -> Tensor");
  m.def("raw_(Tensor(a!) x, Tensor by) -> Tensor(a!)");
  m.def("raw_row(Tensor(a) x) -> Tensor(a)");
  m.def("raw_rows(Tensor(a -> *) x) -> Tensor(a)[]");
  m.def("raw_three(Tensor x) -> (Tensor, Tensor, int)");
  m.def("raw_list(Tensor[] xs) -> Tensor[]");
  m.def("raw_lists_(Tensor(a!)[] xs) -> ()");
  m.def("composed(Tensor x) -> Tensor", &composed);
}
TENON_LIBRARY_IMPL(autograd_test, CPU, m) {
  m.impl("halve", &halve);
  m.impl("halve_", &halve_);
  m.impl("plain", &halve);
  m.impl("raw", &raw);
  m.impl("raw_", &raw_);
  m.impl("raw_row", &raw_row);
  m.impl("raw_rows", &raw_rows);
  m.impl("raw_three", &raw_three);
  m.impl("raw_list", &raw_list);
  m.impl("raw_lists_", &raw_lists_);
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

TEST(Fallback, ACatchAllKernelIsDifferentiatedThroughWhatItCalls) {
  Tensor x = leaf({1}, {2});
  tenon::sum(op<Tensor(const Tensor&)>("autograd_test::composed").call(x)).backward();
  EXPECT_NEAR(values(x.grad())[0], 3 * std::exp(2.0), 1e-12);
}

void expect_missing(const std::string& name, const std::function<void()>& backward) {
  const std::string error = error_of(backward);
  for (const std::string& part :
       {"derivative for autograd_test::" + name + " is not implemented",
        "register_autograd(\"autograd_test::" + name, std::string("autograd::custom_derivative"),
        "register_not_differentiable(\"autograd_test::" + name,
        std::string("autograd::not_differentiable()")}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
}

TEST(Unregistered, ResultsRequireGradAndBackwardSaysWhatIsMissing) {
  const auto f = op<Tensor(const Tensor&)>("autograd_test::raw");
  Tensor x = leaf({2}, {1, 3});
  const Tensor y = f.call(x);
  EXPECT_EQ(values(y), (std::vector<double>{3, 9}));
  EXPECT_TRUE(y.requires_grad());
  expect_missing("raw", [&] { tenon::sum(tenon::add(tenon::mul(f.call(x), Scalar(100)), x)).backward(); });
  EXPECT_FALSE(x.grad().defined());
  // Nothing arrives where nobody asks.
  tenon::sum(tenon::add(f.call(x).detach(), x)).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1}));
  EXPECT_FALSE(f.call(x.detach()).requires_grad());
  const NoGradGuard guard;
  EXPECT_FALSE(f.call(x).requires_grad());
}

TEST(Unregistered, InPlace) {
  const auto f = op<Tensor&(Tensor&, const Tensor&)>("autograd_test::raw_");
  Tensor x = leaf({2}, {1, 3});
  EXPECT_EQ(error_of([&] { f.call(x, x); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  Tensor y = tenon::mul(x, Scalar(1));
  f.call(y, y);
  EXPECT_EQ(values(y), (std::vector<double>{3, 9}));
  expect_missing("raw_", [&] { tenon::sum(y).backward(); });
  // A tensor without history that is written from one with.
  Tensor plain = make({2}, {1, 2});
  f.call(plain, x);
  EXPECT_TRUE(plain.requires_grad());
  expect_missing("raw_", [&] { tenon::sum(plain).backward(); });
  // Through a view the base is written.
  Tensor whole = tenon::mul(leaf({2, 2}, {1, 2, 3, 4}), Scalar(1));
  Tensor first = whole.select(0, 0);
  f.call(first, x);
  expect_missing("raw_", [&] { tenon::sum(whole).backward(); });
}

TEST(Unregistered, Views) {
  Tensor x = leaf({2, 2}, {1, 2, 3, 4});
  const Tensor row = op<Tensor(const Tensor&)>("autograd_test::raw_row").call(x);
  EXPECT_TRUE(row.is_view());
  EXPECT_TRUE(row.requires_grad());
  expect_missing("raw_row", [&] { tenon::sum(row).backward(); });
  const Tensor y = tenon::mul(x, Scalar(1));
  const std::vector<Tensor> rows = op<std::vector<Tensor>(const Tensor&)>("autograd_test::raw_rows").call(y);
  expect_missing("raw_rows", [&] { tenon::sum(rows[1]).backward(); });
  EXPECT_NE(error_of([&] { Tensor(rows[0]).mul_(Scalar(2)); }).find("returns multiple views"),
            std::string::npos);
}

TEST(Unregistered, SeveralResultsAndLists) {
  Tensor x = leaf({2}, {1, 3});
  const auto [y, count, n] =
      op<std::tuple<Tensor, Tensor, int64_t>(const Tensor&)>("autograd_test::raw_three").call(x);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(count.requires_grad());
  EXPECT_EQ(n, 7);
  expect_missing("raw_three", [&] { tenon::sum(y).backward(); });

  const std::vector<Tensor> both{make({1}, {1}), x};
  const std::vector<Tensor> out = op<std::vector<Tensor>(TensorList)>("autograd_test::raw_list").call(both);
  EXPECT_TRUE(out[0].requires_grad());
  expect_missing("raw_list", [&] { tenon::sum(out[0]).backward(); });

  const auto write = op<void(TensorList)>("autograd_test::raw_lists_");
  EXPECT_EQ(error_of([&] { write.call(both); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  const std::vector<Tensor> written{make({1}, {1}), tenon::mul(x, Scalar(1))};
  write.call(written);
  EXPECT_EQ(values(written[1]), (std::vector<double>{3, 9}));
  expect_missing("raw_lists_", [&] { tenon::sum(written[0]).backward(); });
}

TEST(NotDifferentiable, ResultsHaveNoHistory) {
  Library lib(Library::Kind::Impl, "autograd_test", "Autograd", SourceLocation::here());
  lib.impl("raw", autograd::not_differentiable());
  lib.impl("raw_", autograd::not_differentiable());
  lib.impl("raw_row", autograd::not_differentiable());
  lib.impl("plain", autograd::not_differentiable());
  const auto f = op<Tensor(const Tensor&)>("autograd_test::raw");
  Tensor x = leaf({2}, {1, 3});
  EXPECT_FALSE(f.call(x).requires_grad());
  EXPECT_FALSE(op<Tensor(const Tensor&)>("autograd_test::plain").call(x).requires_grad());
  tenon::sum(tenon::add(tenon::mul(f.call(x), Scalar(100)), x)).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{1, 1}));

  const auto write = op<Tensor&(Tensor&, const Tensor&)>("autograd_test::raw_");
  EXPECT_EQ(error_of([&] { write.call(x, x); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  Tensor w = leaf({2, 2}, {1, 2, 3, 4});
  const Tensor whole = tenon::mul(w, Scalar(5));
  Tensor first = whole.select(0, 0);
  write.call(first, x);
  tenon::sum(whole).backward();
  EXPECT_EQ(values(w.grad()), (std::vector<double>{0, 0, 5, 5}))
      << "the written part forgot where it came from";
  EXPECT_FALSE(op<Tensor(const Tensor&)>("autograd_test::raw_row").call(w).requires_grad());
  Tensor plain = make({2}, {1, 2});
  write.call(plain, x);
  EXPECT_FALSE(plain.requires_grad());
}

}  // namespace
}  // namespace tenon
