// Functions that libraries fill in for the host, for stubs of expression operators among others.
#include <dlfcn.h>

#include <cmath>
#include <thread>

#include "tenon/core/parallel.h"
#include "tenon/dispatch/stub.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/arithmetic/stubs.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/unary/stubs.h"
#include "tenon/iter/cpu_kernel.h"
#include "tests/dispatch/testing.h"

namespace tenon {
namespace {

using detail::StubRegistration;

Tensor made_of(const std::vector<float>& values, IntArrayRef sizes) {
  Tensor t = make_empty(sizes, kFloat32);
  std::copy(values.begin(), values.end(), t.data_ptr<float>());
  return t;
}
std::vector<float> values_of(const Tensor& t) {
  const Tensor dense = t.contiguous();
  return {dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel()};
}
const std::vector<float> kSix{-1, 2, -3, 4, -5, 6};

void ten_more(const TensorIterator& iter) {
  cpu_kernel(iter, [](float x) -> float { return std::fabs(x) + 10; });
}
void twenty_more(const TensorIterator& iter) {
  cpu_kernel(iter, [](float x) -> float { return std::fabs(x) + 20; });
}
void sum_of_squares(const TensorIterator& iter, const Scalar& alpha) {
  cpu_kernel(iter, [a = static_cast<float>(alpha.to_double())](float x, float y) -> float {
    return x * x + a * y * y;
  });
}

TEST(HostStub, ServesEveryFormAndStrideOfAnExpressionOperator) {
  const Tensor x = made_of(kSix, {2, 3});
  const std::vector<float> plain{1, 2, 3, 4, 5, 6}, own{11, 12, 13, 14, 15, 16};
  const auto all_forms = [&](const std::vector<float>& dense, const std::vector<float>& turned) {
    EXPECT_EQ(values_of(abs(x)), dense);
    EXPECT_EQ(values_of(abs(x.t())), turned);
    EXPECT_EQ(abs(x.t()).strides(), x.t().strides());
    Tensor out = make_empty({0}, kFloat32);
    EXPECT_EQ(values_of(abs_out(out, x)), dense);
    Tensor wide = make_empty({2, 3}, kFloat64);
    EXPECT_THROW(abs_out(wide, x), Error) << "an output of another dtype";
    Tensor self = x.clone(), strided = x.clone();
    EXPECT_EQ(values_of(abs_(self)), dense);
    Tensor view = strided.t();
    EXPECT_EQ(values_of(abs_(view)), turned);
    EXPECT_EQ(values_of(strided), dense);
    const Tensor many = made_of(std::vector<float>(3 * kGrainSize, -1), {3 * kGrainSize});
    EXPECT_EQ(values_of(abs(many)), std::vector<float>(3 * kGrainSize, dense[0]));
    EXPECT_EQ(abs(make_empty({0, 2}, kFloat32)).numel(), 0);
  };
  all_forms(plain, {1, 4, 2, 5, 3, 6});
  {
    const StubRegistration registered(ops::abs_stub, kCpuBackend, &ten_more);
    all_forms(own, {11, 14, 12, 15, 13, 16});
    const Tensor doubles = abs(x.to(kFloat64)), integers = abs(x.to(kInt64));
    EXPECT_EQ(doubles.dtype(), kFloat64);
    EXPECT_EQ(values_of(doubles.to(kFloat32)), own);
    EXPECT_EQ(integers.dtype(), kInt64);
    EXPECT_EQ(values_of(integers.to(kFloat32)), own);
  }
  all_forms(plain, {1, 4, 2, 5, 3, 6});
}

TEST(HostStub, GetsNumbersAndBroadcastOperands) {
  const Tensor x = made_of({1, 2, 3}, {3}), y = made_of({10}, {1}), column = made_of({1, 2}, {2, 1});
  EXPECT_EQ(values_of(add(x, y, 2)), (std::vector<float>{21, 22, 23}));
  const StubRegistration registered(ops::add_stub, kCpuBackend, &sum_of_squares);
  EXPECT_EQ(values_of(add(x, x, 2)), (std::vector<float>{3, 12, 27}));
  EXPECT_EQ(values_of(add(x, y, 2)), (std::vector<float>{201, 204, 209})) << "one element for all";
  EXPECT_EQ(values_of(add(x, x.to(kInt64), 2)), (std::vector<float>{3, 12, 27})) << "mixed dtypes";
  EXPECT_EQ(values_of(add(x, column)), (std::vector<float>{2, 5, 10, 5, 8, 13}));
}

TEST(HostStub, TheNewestRunsAndWhoGoesLeavesTheOthers) {
  const Tensor x = one(-1);
  auto first = std::make_unique<StubRegistration>(ops::abs_stub, kCpuBackend, &ten_more);
  auto second = std::make_unique<StubRegistration>(ops::abs_stub, kCpuBackend, &twenty_more);
  EXPECT_EQ(value_of(abs(x)), 21);
  first.reset();
  EXPECT_EQ(value_of(abs(x)), 21);
  second.reset();
  EXPECT_EQ(value_of(abs(x)), 1);
  EXPECT_EQ(ops::abs_stub.own(kCpuBackend), nullptr);
  first = std::make_unique<StubRegistration>(ops::abs_stub, kCpuBackend, &ten_more);
  second = std::make_unique<StubRegistration>(ops::abs_stub, kCpuBackend, &twenty_more);
  second.reset();
  EXPECT_EQ(value_of(abs(x)), 11);
}

TEST(HostStub, AFunctionOnBoxedValuesMayDecline) {
  ops::abs_stub.set_boxed(
      kCpuBackend,
      [](void*, Stream, Stack& stack) {
        if (stack.at<Tensor>(1).dtype() != kFloat32) return false;
        *stack.at<Tensor>(0).data_ptr<float>() = 7;
        stack.clear();
        return true;
      },
      nullptr);
  EXPECT_EQ(value_of(abs(one(-1))), 7);
  EXPECT_EQ(*abs(one(-1).to(kFloat64)).data_ptr<double>(), 1);
  ops::abs_stub.set_boxed(kCpuBackend, nullptr, nullptr);
  EXPECT_EQ(value_of(abs(one(-1))), 1);
}

TEST(HostStub, CallsRaceWithLibrariesThatComeAndGo) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&] {
      const Tensor x = one(-1);
      while (!stop) {
        const float value = value_of(abs(x));
        EXPECT_TRUE(value == 1 || value == 11 || value == 21) << value;
      }
    });
  for (int round = 0; round < 200; ++round) {
    const StubRegistration first(ops::abs_stub, kCpuBackend, &ten_more);
    const StubRegistration second(ops::abs_stub, kCpuBackend, &twenty_more);
    EXPECT_EQ(value_of(abs(one(-1))), 21);
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

class HostStubOfALibrary : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!*TENON_TEST_PLUGINS) GTEST_SKIP() << "this build has no plug-ins to load";
  }
};

TEST_F(HostStubOfALibrary, GoesWhenTheLibraryIsClosed) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(value_of(abs(one(-1))), 1);
    void* handle = dlopen(plugin("stub_plugin").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(handle) << dlerror();
    EXPECT_EQ(value_of(abs(one(-1))), 101);
    EXPECT_EQ(dlclose(handle), 0);
    ASSERT_FALSE(dlopen(plugin("stub_plugin").c_str(), RTLD_NOW | RTLD_NOLOAD)) << "it is still mapped";
    EXPECT_EQ(value_of(abs(one(-1))), 1);
  }
}

TEST_F(HostStubOfALibrary, IsTakenBackAndFilledInAgain) {
  for (int round = 0; round < 2; ++round) {
    load_library(plugin("stub_plugin"));
    EXPECT_EQ(value_of(abs(one(-1))), 101);
    load_library(plugin("stub_plugin"));  // already there
    unload_library(plugin("stub_plugin"));
    EXPECT_EQ(value_of(abs(one(-1))), 1);
  }
  EXPECT_EQ(thrown_by([] { unload_library(plugin("stub_plugin")); }).kind, ErrorKind::Value);
}

}  // namespace
}  // namespace tenon
