// Stubs of pointwise operators: a device's own functions for operators that it need not have as expressions.
#include "tenon/iter/pointwise_stub.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/arithmetic/stubs.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/unary/stubs.h"
#include "tenon/schema/schema.h"
#include "tests/core/host_memory.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

/// A device in the host's memory that has nothing but what the tests put into stubs.
Backend stubby() {
  static const Backend backend = testing::host_memory_device("stubby", "Stubby");
  return backend;
}

Tensor on_stubby(std::initializer_list<float> values, IntArrayRef sizes) {
  const Tensor t = make_empty(sizes, kFloat32, Device(stubby()));
  std::copy(values.begin(), values.end(), static_cast<float*>(t.data_ptr()));
  return t;
}
float at(const Tensor& t, int64_t i) {
  int64_t offset = 0;
  for (int64_t d = t.dim() - 1; d >= 0; --d) {
    offset += i % t.size(d) * t.stride(d);
    i /= t.size(d);
  }
  return static_cast<const float*>(t.data_ptr())[offset];
}

TEST(PointwiseStubs, ATypedFunctionGetsIteratorAndNumbers) {
  const Tensor x = on_stubby({-1, 2, -3, 4}, {2, 2});
  testing::expect_error(ErrorKind::NotImplemented, "abs", [&] { (void)abs(x); });
  ops::abs_stub.set(
      stubby(), +[](const TensorIterator& iter) {
        iter.for_each([](char* const* at, const int64_t* strides, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            *reinterpret_cast<float*>(at[0] + i * strides[0]) =
                std::fabs(*reinterpret_cast<const float*>(at[1] + i * strides[1]));
        });
      });
  EXPECT_TRUE(ops::abs_stub.has_own(stubby()));
  EXPECT_EQ(at(abs(x), 2), 3);
  EXPECT_EQ(at(abs(x.t()), 1), 3);
  Tensor y = x.t();
  abs_(y);
  EXPECT_EQ(at(x, 2), 3);
  EXPECT_EQ(abs(on_stubby({}, {0, 3})).sizes(), (Dims{0, 3}));
  testing::expect_error(ErrorKind::NotImplemented, "neg", [&] { (void)neg(x); });

  static double alpha_seen = 0;
  ops::add_stub.set(
      stubby(), +[](const TensorIterator& iter, const Scalar& alpha) {
        alpha_seen = alpha.to_double();
        EXPECT_EQ(iter.ntensors(), 3);
      });
  EXPECT_EQ(add(x, on_stubby({1, 2}, {2}), 2.5).sizes(), (Dims{2, 2}));
  EXPECT_EQ(alpha_seen, 2.5);
  ops::abs_stub.set(stubby(), nullptr);
  ops::add_stub.set(stubby(), nullptr);
  testing::expect_error(ErrorKind::NotImplemented, "abs", [&] { (void)abs(x); });
}

TEST(PointwiseStubs, ABoxedFunctionGetsTensorsOfOneShapeAndMayDecline) {
  const Tensor x = on_stubby({1, 2, 3, 4}, {2, 2}), row = on_stubby({10, 20}, {2});
  int calls = 0;
  ops::add_stub.set_boxed(
      stubby(),
      [](void* data, Stream stream, Stack& stack) {
        EXPECT_EQ(stream.device.backend, stubby());
        if (++*static_cast<int*>(data) > 1) return false;
        EXPECT_EQ(stack.size(), 4u);
        Tensor out = stack.at<Tensor>(0);
        const Tensor a = stack.at<Tensor>(1), b = stack.at<Tensor>(2);
        EXPECT_EQ(b.sizes(), (Dims{2, 2}));
        EXPECT_EQ(b.strides(), (Dims{0, 1}));
        const auto alpha = static_cast<float>(stack.at<Scalar>(3).to_double());
        for (int64_t i = 0; i < 4; ++i) static_cast<float*>(out.data_ptr())[i] = at(a, i) + alpha * at(b, i);
        stack.clear();
        return true;
      },
      &calls);
  EXPECT_EQ(at(add(x, row, 2), 3), 44);
  testing::expect_error(ErrorKind::NotImplemented, "add", [&] { (void)add(x, row); });
  EXPECT_EQ(calls, 2);
  ops::add_stub.set_boxed(stubby(), nullptr, nullptr);
}

TEST(PointwiseStubs, EveryExpressionHasOneAndEverySignatureIsASchema) {
  std::set<std::string> names;
  for (const StubBase* stub : StubBase::all()) {
    EXPECT_TRUE(names.insert(std::string(stub->name())).second) << stub->name();
    if (stub->name() == "rows") continue;  // takes C++ functions only
    const auto schema = schema::parse_schema("stub::" + std::string(stub->name()) + stub->signature());
    EXPECT_FALSE(schema.arguments.empty()) << stub->name();
    EXPECT_TRUE(stub->accepts(stub->signature())) << stub->name();
    EXPECT_FALSE(stub->accepts("(Tensor self, Tensor self, str no) -> ()")) << stub->name();
  }
  for (const char* name :
       {"abs", "add", "mul_Scalar", "where_self", "clamp", "silu", "_sgd_step_", "sort", "fill"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_EQ(ops::add_stub.signature(), "(Tensor(a!) out, Tensor self, Tensor other, Scalar alpha) -> ()");
}

TEST(PointwiseStubs, TheHostAndDevicesWithExpressionsServeThem) {
  const auto have = ops::abs_stub.backends();
  EXPECT_NE(std::find(have.begin(), have.end(), kCpuBackend), have.end());
  EXPECT_FALSE(ops::abs_stub.has_own(kCpuBackend));
}

}  // namespace
}  // namespace tenon
