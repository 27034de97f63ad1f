// Pointwise calls on a device that runs programs by the evaluator of tenon/abi: every kind of call has the
// host's bits, dtype and strides.
#include <cstring>

#include "tenon/abi/program.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/optimizer/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/device_stubs.h"
#include "tests/core/host_memory.h"
#include "tests/expr/random_typed.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using expr::testing::random_elements;
using expr::testing::same_element;

int launches = 0;
bool declines = false;
std::string last_name;

bool launch(void*, const TenonLaunch& given) {
  if (declines) return false;
  ++launches;
  last_name = given.name;
  EXPECT_TRUE(abi::evaluates(*given.program));
  abi::run(given);
  return true;
}

Device mirror() {
  static const Backend backend = [] {
    const Backend b = testing::host_memory_device("mirror", "Mirror");
    set_pointwise_device(b, &launch, nullptr);
    return b;
  }();
  return Device(backend, 0);
}

/// A tensor of random elements on both devices.
struct Pair {
  Tensor host, device;

  Pair() = default;
  Pair(Tensor h, Tensor d) : host(std::move(h)), device(std::move(d)) {}
  Pair(DType dtype, Dims sizes, uint64_t seed) {
    host = make_empty(sizes, dtype, kCPU);
    device = make_empty(sizes, dtype, mirror());
    const DType part = real_dtype(dtype);
    const size_t count = host.nbytes() / item_size(part);
    const auto bytes = random_elements(part, count, seed);
    if (bytes.empty()) return;
    std::memcpy(host.data_ptr(), bytes.data(), bytes.size());
    std::memcpy(device.data_ptr(), bytes.data(), bytes.size());
  }
  template <class F>
  Pair view(F&& f) const {
    return {f(host), f(device)};
  }
};

std::vector<const char*> elements_of(const Tensor& t) {
  std::vector<const char*> all;
  testing::for_each_position(t.sizes(), [&](std::span<const int64_t> at) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * t.strides()[d];
    all.push_back(static_cast<const char*>(t.data_ptr()) +
                  offset * static_cast<int64_t>(item_size(t.dtype())));
  });
  return all;
}

void expect_same(const Tensor& device, const Tensor& host, const std::string& what) {
  ASSERT_EQ(device.device(), mirror()) << what;
  ASSERT_EQ(device.dtype(), host.dtype()) << what;
  ASSERT_EQ(device.sizes().to_dims(), host.sizes().to_dims()) << what;
  ASSERT_EQ(device.strides().to_dims(), host.strides().to_dims()) << what;
  const auto got = elements_of(device), want = elements_of(host);
  const DType part = real_dtype(host.dtype());
  for (size_t i = 0; i < want.size(); ++i) {
    for (size_t p = 0; p < item_size(host.dtype()); p += item_size(part))
      ASSERT_TRUE(same_element(got[i] + p, want[i] + p, part)) << what << ", element " << i;
  }
}

/// Calls f on the operands of each device, and compares what it returns.
template <class F, class... P>
void expect_same_call(const std::string& what, F&& f, const P&... operands) {
  const int before = launches;
  const Tensor got = f(operands.device...);
  EXPECT_GT(launches, before) << what;
  expect_same(got, f(operands.host...), what);
}

constexpr DType kNumbers[] = {kUInt8,    kInt8,    kInt16,   kInt32,     kInt64,     kFloat16,
                              kBFloat16, kFloat32, kFloat64, kComplex64, kComplex128};

struct PointwiseDevice : ::testing::Test {
  void SetUp() override {
    (void)mirror();
    declines = false;
  }
};

TEST_F(PointwiseDevice, RunsEveryDTypeAndStride) {
  for (const DType t : kNumbers) {
    const std::string what(name(t));
    const Pair x(t, {4, 6}, 1), y(t, {4, 6}, 2);
    const Pair turned = Pair(t, {6, 4}, 3).view([](const Tensor& v) { return v.transpose(0, 1); });
    const Pair reversed = y.view([](const Tensor& v) { return v.flip({1}); });
    const Pair row = Pair(t, {1, 6}, 4),
               part = Pair(t, {4, 12}, 5).view([](const Tensor&v) { return v.slice(1, 1, 12, 2); });
    for (const Pair& other : {y, turned, reversed, row, part}) {
      expect_same_call(
          what, [](const Tensor& a, const Tensor& b) { return a * b; }, x, other);
      expect_same_call(
          what, [](const Tensor& a, const Tensor& b) { return sub(a, b, 3); }, x, other);
      expect_same_call(
          what, [](const Tensor& a, const Tensor& b) { return eq(b, a); }, x, other);
    }
    expect_same_call(
        what, [](const Tensor& a) { return exp(a); }, part);
    expect_same_call(
        what, [](const Tensor& a) { return sin(a); }, turned);
    expect_same_call(
        what, [](const Tensor& a) { return abs(a); }, x);
    expect_same_call(
        what, [](const Tensor& a) { return pow(a, 2); }, x);
  }
  expect_same_call(
      "bool", [](const Tensor& a) { return logical_not(a); }, Pair(kBool, {9}, 6));
}

TEST_F(PointwiseDevice, PromotesMixedDTypesAndNumbers) {
  const Pair b(kBool, {5}, 1), i(kInt64, {5}, 2), u(kUInt8, {5}, 3), h(kFloat16, {5}, 4), f(kFloat32, {5}, 5),
      d(kFloat64, {5}, 6), c(kComplex64, {5}, 7);
  const auto product = [](const Tensor& x, const Tensor& y) { return x * y; };
  for (const Pair& x : {b, i, u, h, f, d, c}) {
    for (const Pair& y : {b, i, u, h, f, d, c}) expect_same_call("mixed", product, x, y);
  }
  expect_same_call(
      "number", [](const Tensor& x) { return x * 2.5; }, i);
  expect_same_call(
      "host", [](const Tensor& x) { return x * tensor(0.3); }, f);
  expect_same_call(
      "host, complex", [](const Tensor& x) { return x * tensor(0.3); }, c);
  expect_same_call(
      "choice", [](const Tensor& m, const Tensor& x) { return where(m, x, x * 2); }, b, h);
}

TEST_F(PointwiseDevice, WritesInPlaceAndToOtherDTypes) {
  for (const DType t : {kFloat32, kFloat16, kInt32, kComplex64}) {
    const Pair x(t, {3, 4}, 1), y(t, {3, 4}, 2);
    expect_same_call(
        "in place", [](Tensor a, const Tensor& b) { return a.mul_(b); }, x, y);
    expect_same_call(
        "of itself", [](Tensor a) { return a.add_(a); }, x);
  }
  struct Store {
    DType operand, out;
  };
  for (const Store s : {Store{kFloat32, kFloat16}, Store{kFloat64, kBFloat16}, Store{kInt64, kFloat16},
                        Store{kInt64, kUInt8}, Store{kFloat32, kComplex64}, Store{kInt32, kComplex128},
                        Store{kComplex128, kComplex64}, Store{kBool, kFloat32}}) {
    const Pair x(s.operand, {3, 4}, 3);
    const Pair out = Pair(s.out, {4, 3}, 4).view([](const Tensor& v) { return v.transpose(0, 1); });
    expect_same_call(
        std::string(name(s.operand)) + " to " + std::string(name(s.out)),
        [](const Tensor& a, Tensor o) { return mul_out(o, a, a); }, x, out);
  }
  const Pair z(kComplex64, {4}, 5), real(kFloat32, {4}, 6), wide(kComplex64, {4}, 7);
  expect_same_call(
      "absolute value", [](const Tensor& a, Tensor o) { return abs_out(o, a); }, z, real);
  expect_same_call(
      "truth, complex", [](const Tensor& a, Tensor o) { return eq_out(o, a, a); }, z, wide);
}

TEST_F(PointwiseDevice, WritesSeveralResultsAndLeavesOutAbsentOperands) {
  for (const DType t : {kFloat32, kBFloat16}) {
    const Pair p(t, {6}, 1), g(t, {6}, 2), m(t, {6}, 3);
    const int before = launches;
    for (const Device where : {kCPU, mirror()}) {
      const auto of = [&](const Pair& x) { return where.is_cpu() ? x.host : x.device; };
      Tensor weight = of(p), average = of(m);
      _sgd_step_(weight, of(g), average, 0.9, 0.1, -0.5, true);
    }
    EXPECT_EQ(launches, before + 1);
    expect_same(p.device, p.host, "weight");
    expect_same(m.device, m.host, "average");
  }
  const Pair x(kFloat32, {6}, 4);
  expect_same_call(
      "below", [](const Tensor& a) { return a.clamp(Scalar(1)); }, x);
  expect_same_call(
      "above", [](const Tensor& a) { return a.clamp(std::nullopt, Scalar(1)); }, x);
}

TEST_F(PointwiseDevice, RunsDerivativesAndTheirs) {
  for (const DType t : {kFloat32, kFloat16, kComplex64}) {
    const Pair x(t, {5}, 1), seed(t, {5}, 2);
    const auto gradient = [](Tensor a, const Tensor& g) {
      a = a.detach();
      a.requires_grad_();
      (sin(a) * a * exp(a)).backward(g);
      return a.grad();
    };
    expect_same_call("gradient", gradient, x, seed);
  }
}

TEST_F(PointwiseDevice, LaunchesNothingForNoElements) {
  const Pair none(kFloat32, {0, 3}, 1);
  const int before = launches;
  EXPECT_EQ((none.device + none.device).numel(), 0);
  EXPECT_EQ(launches, before);
}

TEST_F(PointwiseDevice, ADeclinedCallHasWrittenNothing) {
  const Pair x(kFloat32, {3}, 1);
  declines = true;
  Tensor written = x.device;
  const auto version = written._version();
  testing::expect_error(ErrorKind::NotImplemented, "add_: device mirror:0 declines",
                        [&] { written.add_(x.device); });
  EXPECT_EQ(written._version(), version);
  expect_same(x.device, x.host, "declined");
  declines = false;
  EXPECT_EQ((x.device + 1).numel(), 3);
  EXPECT_EQ(last_name, "add");
}

}  // namespace
}  // namespace tenon
