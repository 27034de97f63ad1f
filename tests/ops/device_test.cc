// What a device must bring, and what it gets for it: a simulated one in host memory, without kernels of its
// own.
#include <atomic>
#include <cstring>
#include <thread>

#include "backends/cpu/pointwise/interpreter.h"
#include "backends/cpu/rows/run_rows.h"
#include "tenon/dispatch/library.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/optimizer/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/reduction/stubs.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/device_stubs.h"
#include "tests/core/host_memory.h"
#include "tests/ops/launch_evaluator.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

Backend gizmo() {
  static const Backend backend = [] {
    const Backend b = testing::host_memory_device("gizmo", "Gizmo");
    ops::fill_stub.set(
        b, +[](const Tensor& dst, const Scalar& value) {
          for (int64_t i = 0; i < dst.numel(); ++i)
            static_cast<float*>(dst.data_ptr())[i] = static_cast<float>(value.to_double());
        });
    return b;
  }();
  return backend;
}

Tensor on_gizmo(std::initializer_list<float> values) {
  const Tensor t = make_empty({static_cast<int64_t>(values.size())}, kFloat32, Device(gizmo()));
  std::copy(values.begin(), values.end(), static_cast<float*>(t.data_ptr()));
  return t;
}
float at(const Tensor& t, int64_t i) { return static_cast<const float*>(t.data_ptr())[i]; }

ErrorKind kind_thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return ErrorKind::Internal;
}

int fell_back = 0;
void fall_back(const OperatorHandle& op, DispatchKeySet, Stack& stack) {
  ++fell_back;
  stack.drop(op.schema().arguments.size());
  if (!op.schema().returns.empty()) stack.push(on_gizmo({-1}));
}

TEST(Device, ViewsAndFactoriesNeedNothingOfIt) {
  const Tensor t = full({2, 3}, 7, TensorOptions(Device(gizmo())).dtype(kFloat32));
  EXPECT_EQ(t.device(), Device(gizmo(), 0));
  EXPECT_EQ(at(t, 5), 7);
  EXPECT_EQ(t.transpose(0, 1).strides(), (Dims{1, 3}));
  EXPECT_EQ(t.flip({0}).data_ptr(), static_cast<float*>(t.data_ptr()) + 3);
}

TEST(Device, IsTheSameWithoutItsIndex) {
  const Tensor t = on_gizmo({1, 2});
  ASSERT_EQ(t.device(), Device(gizmo(), 0));
  EXPECT_TRUE(t.to(Device(gizmo())).is_same(t));
  EXPECT_TRUE(t.to(TensorOptions(Device("gizmo:0"))).is_same(t));
}

bool arrives_later = false;

TEST(Device, IsToldThatACopyMayArriveLater) {
  ops::copy_stub.set(
      gizmo(), +[](const Tensor& dst, const Tensor& src, bool non_blocking) {
        arrives_later = non_blocking;
        std::memcpy(dst.data_ptr(), src.data_ptr(), src.nbytes());
      });
  const Tensor t = on_gizmo({1, 2});
  for (const bool later : {true, false}) {
    EXPECT_EQ(at(t.to(kCPU, kFloat32, later), 1), 2);
    EXPECT_EQ(arrives_later, later);
    Tensor host = zeros({2});
    host.copy_(t, !later);
    EXPECT_EQ(at(host, 0), 1);
    EXPECT_EQ(arrives_later, !later);
  }
  ops::copy_stub.set_boxed(gizmo(), nullptr, nullptr);
  EXPECT_FALSE(ops::copy_stub.has(gizmo()));
}

TEST(Device, WithoutItsFunctionsOperatorsSaySo) {
  const Tensor t = on_gizmo({1, 2});
  EXPECT_EQ(kind_thrown([&] { (void)add(t, t); }), ErrorKind::NotImplemented);
  EXPECT_EQ(kind_thrown([&] { (void)sum(t); }), ErrorKind::NotImplemented);
  EXPECT_EQ(kind_thrown([&] { (void)t.clone(); }), ErrorKind::NotImplemented);
}

TEST(Device, AFallbackServesWhatTheDeviceLacksAndNothingElse) {
  const Tensor t = on_gizmo({1, 2});
  Library fallback(Library::Kind::Impl, "_", "Gizmo", SourceLocation::here());
  fallback.fallback(CppFunction::make_from_boxed_function<&fall_back>());
  fell_back = 0;
  (void)add(t, t);
  (void)sum(t);
  (void)t.index_select(0, tensor({0}));
  EXPECT_EQ(fell_back, 3);
  EXPECT_EQ(t.view({2, 1}).dim(), 2);
  Tensor filled = t.detach();
  filled.fill_(3);
  EXPECT_EQ(at(t, 1), 3);
  EXPECT_EQ(fell_back, 3) << "views and filled stubs are its own";

  // A boxed function for a structured operator's stub, as a plug-in without our C++ types would bring.
  ops::reduce_stub.set_boxed(
      gizmo(),
      [](void*, Stream, Stack& stack) {
        const Tensor self = stack.at<Tensor>(0);
        const Tensor out = stack.at<Tensor>(5);
        float total = 0;
        for (int64_t i = 0; i < self.numel(); ++i) total += at(self, i);
        *static_cast<float*>(out.data_ptr()) = total;
        stack.clear();
        return true;
      },
      nullptr);
  EXPECT_EQ(at(sum(t), 0), 6);
  EXPECT_EQ(fell_back, 3);
}

TEST(Device, WithAFunctionForRowsReducesByIt) {
  ops::reduce_stub.set_boxed(gizmo(), nullptr, nullptr);
  const Tensor t = on_gizmo({1, 5, 3});
  EXPECT_EQ(kind_thrown([&] { (void)mean(t); }), ErrorKind::NotImplemented);
  ops::rows_stub.set(gizmo(), &cpu::run_rows);
  EXPECT_EQ(at(mean(t), 0), 3);
  EXPECT_EQ(at(amax(t, IntArrayRef{0}, true), 0), 5);
  EXPECT_EQ(static_cast<const int64_t*>(argmax(t).data_ptr())[0], 1);
  ops::rows_stub.set(gizmo(), nullptr);
}

bool run_launch(void* data, const TenonLaunch& launch) {
  ++*static_cast<int*>(data);
  testing::take_slot(launch);
  abi::run(launch);
  return true;
}

TEST(Device, RunsEveryPointwiseOperatorFromOneFunction) {
  int launches = 0;
  set_pointwise_device(gizmo(), &run_launch, &launches);
  const Tensor t = on_gizmo({1, 2, 3});
  const Tensor sum = add(t, t.flip({0}), 10);
  EXPECT_EQ(at(sum, 0), 31);
  EXPECT_EQ(at(sum, 2), 13);
  EXPECT_FLOAT_EQ(at(silu(t), 1), 2 / (1 + std::exp(-2.0f)));
  EXPECT_FLOAT_EQ(at(mul(t, tensor(0.5)), 2), 1.5f) << "a host number beside the device's tensor";
  EXPECT_EQ(launches, 3);
  (void)add(on_gizmo({}), on_gizmo({}));
  EXPECT_EQ(launches, 3) << "no elements, nothing to launch";
  set_pointwise_device(gizmo(), nullptr, nullptr);
  EXPECT_EQ(kind_thrown([&] { (void)add(t, t); }), ErrorKind::NotImplemented);
}

TEST(Device, IsAskedForWhatACallHas) {
  int launches = 0;
  set_pointwise_device(gizmo(), &run_launch, &launches);
  const Tensor t = on_gizmo({1, 2, 3});
  EXPECT_EQ(at(t.clamp(Scalar(2)), 0), 2);
  EXPECT_EQ(at(t.clamp(std::nullopt, Scalar(2)), 2), 2);
  EXPECT_EQ(at(t.clamp(on_gizmo({0, 3, 0}), Tensor()), 1), 3);
  EXPECT_EQ(launches, 3);
  Tensor p = on_gizmo({1, 2, 3}), average = on_gizmo({0, 4, 0});
  _sgd_step_(p, t, average, 0.5, 1, -1, false);
  EXPECT_EQ(launches, 4) << "an update writes two tensors at once";
  EXPECT_EQ(at(average, 1), 4);
  EXPECT_EQ(at(p, 1), -2);
  set_pointwise_device(gizmo(), nullptr, nullptr);
}

TEST(Device, KeepsWhatItMadeOfAnExpressionInAPlaceOfItsOwn) {
  int launches = 0;
  set_pointwise_device(gizmo(), &run_launch, &launches);
  const Tensor t = on_gizmo({1, 2, 3}), u = on_gizmo({4});
  const int before = testing::MadeOfProgram::count;
  (void)mul(t, t);
  const int first = testing::MadeOfProgram::count;
  EXPECT_EQ(first, before + 1);
  EXPECT_EQ(at(mul(u, t), 2), 12);
  EXPECT_EQ(testing::MadeOfProgram::count, first) << "other shapes, the same expression";
  (void)mul(ones({2}), ones({2}));
  EXPECT_EQ(testing::MadeOfProgram::count, first) << "the host has a place of its own";
  EXPECT_EQ(at(sub(t, t), 1), 0);
  EXPECT_EQ(testing::MadeOfProgram::count, first + 1);
  // Who comes in the device's place does not find what it never made.
  set_pointwise_device(gizmo(), &run_launch, &launches);
  EXPECT_EQ(at(mul(t, t), 2), 9);
  EXPECT_EQ(testing::MadeOfProgram::count, first + 2);
  set_pointwise_device(gizmo(), nullptr, nullptr);
}

TEST(Device, ThreadsThatMeetAtAFirstLaunchShareItsPlace) {
  std::atomic<void**> seen{nullptr};
  set_pointwise_device(
      gizmo(),
      [](void* data, const TenonLaunch& launch) {
        void** others = nullptr;
        const bool first =
            static_cast<std::atomic<void**>*>(data)->compare_exchange_strong(others, launch.slot);
        EXPECT_TRUE(first || others == launch.slot);
        return true;
      },
      &seen);
  const Tensor t = on_gizmo({1, 2, 3});
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { (void)relu(t); });
  for (std::thread& thread : threads) thread.join();
  set_pointwise_device(gizmo(), nullptr, nullptr);
}

TEST(Device, AFactoryOfAnotherLayoutLooksForThatLayoutsKernel) {
  try {
    (void)empty({2}, TensorOptions().layout(Layout::Sparse));
    ADD_FAILURE() << "there is no sparse kernel";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotImplemented);
    EXPECT_NE(std::string(e.what()).find("SparseCPU"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tenon
