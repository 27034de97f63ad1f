// Operators that a device does not have, compared with the host: values, strides, dtypes, and which tensor is
// returned. The device's memory cannot be read by the host, and its work runs only when somebody waits.
#include "tenon/ops/fallback/cpu_fallback.h"

#include <fmt/core.h>

#include <cstring>

#include "tenon/core/fallback_report.h"
#include "tenon/dispatch/library.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/matmul/functions.h"
#include "tenon/generated/random/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/sort/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/device_stubs.h"
#include "tests/ops/blind_device.h"
#include "tests/ops/testing.h"

namespace tenon {
namespace {

using testing::BlindDevice;
using testing::expect_error;

BlindDevice& blind() {
  static BlindDevice& device = [&]() -> BlindDevice& {
    BlindDevice& made = BlindDevice::make("blind", "Blind");
    set_cpu_fallback(made.backend(), {FallbackPolicy::Kind::All});
    return made;
  }();
  return device;
}

TensorOptions floats(Device device = kCPU) { return TensorOptions(device).dtype(kFloat32); }
/// 1, 2, ... on a device.
Tensor counted(IntArrayRef sizes, Device device, DType dtype = kFloat32) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  return arange(1, n + 1, TensorOptions().dtype(dtype)).reshape(sizes).to(device);
}

std::string bytes(const Tensor& t) {
  const Tensor host = t.to(kCPU).clone(MemoryFormat::Contiguous);
  return {static_cast<const char*>(host.data_ptr()), host.nbytes()};
}

void expect_same(const Tensor& got, const Tensor& want, Device device) {
  EXPECT_EQ(got.device(), device);
  EXPECT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_EQ(got.strides(), want.strides());
  EXPECT_EQ(bytes(got), bytes(want));
}

/// Runs `f` on the host and on the device, from the same place of the random stream, and compares the tensors
/// that it returns.
template <class F>
void expect_as_on_host(F&& f) {
  manual_seed(11);
  const std::vector<Tensor> want = f(kCPU);
  manual_seed(11);
  const std::vector<Tensor> got = f(blind().device());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same(got[i], want[i], blind().device());
  }
}

TEST(Fallback, OneResult) {
  expect_as_on_host([](Device d) {
    const Tensor x = counted({3, 4}, d), y = counted({4}, d);
    return std::vector<Tensor>{x + y,        exp(x.t()),    x.sum({0}),
                               mm(x, x.t()), softmax(x, 1), x.t().mul(2).contiguous()};
  });
}

TEST(Fallback, InPlaceWritesTheTensorItself) {
  expect_as_on_host([](Device d) {
    Tensor x = counted({3, 4}, d);
    const void* const address = x.data_ptr();
    const uint64_t version = x._version();
    EXPECT_TRUE(x.add_(x).is_same(x));
    EXPECT_TRUE(x.t().mul_(3).sub_(1).data_ptr() == address);
    EXPECT_EQ(x._version(), version + 3);
    x.select(1, 2).zero_();
    x.narrow(1, 1, 2).cumsum_(0);
    return std::vector<Tensor>{x};
  });
}

TEST(Fallback, OutOfAnyStridesIsWrittenAndResized) {
  expect_as_on_host([](Device d) {
    const Tensor x = counted({3, 4}, d), y = counted({3, 4}, d);
    Tensor empty_out = tenon::empty({0}, floats(d));
    EXPECT_TRUE(add_out(empty_out, x, y).is_same(empty_out));
    Tensor base = zeros({8, 6}, floats(d));
    Tensor strided = base.slice(0, 0, 8, 2).narrow(1, 1, 3).t();  // [3, 4]
    const void* const address = strided.data_ptr();
    EXPECT_TRUE(mul_out(strided, x, y).is_same(strided));
    EXPECT_EQ(strided.data_ptr(), address);
    Tensor wide = zeros({3, 4}, floats(d).dtype(kFloat64));
    exp_out(wide, x);
    Tensor product = tenon::empty({0}, floats(d));
    mm_out(product, x, y.t());
    Tensor values = tenon::empty({0}, floats(d)), indices = tenon::empty({0}, floats(d).dtype(kInt64));
    sort_out(values, indices, x, 1, true);
    return std::vector<Tensor>{empty_out, base, wide, product, values, indices};
  });
}

TEST(Fallback, ListsSeveralOutputsAndNumbersAsTensors) {
  expect_as_on_host([](Device d) {
    const Tensor x = counted({3, 4}, d), y = counted({3, 4}, d).flip({1});
    const auto [values, places] = y.max(1);
    const auto [sorted, order] = sort(y, 0, true);
    const Tensor number = wrapped_scalar_tensor(2.5);
    const Tensor ints = counted({4}, d, kInt64), positions = counted({2}, d, kInt64);
    return std::vector<Tensor>{values,
                               places,
                               sorted,
                               order,
                               stack({x, y, x}, 1),
                               cat({x.t(), y.t()}, 1),
                               x * number,
                               ints * number,
                               ints * wrapped_scalar_tensor(2.5, d),
                               mul(ints, tensor(2.5)),
                               where(x > y, x, y),
                               tenon::index(x, {Tensor(), positions})};
  });
}

TEST(Fallback, OptionalTensorsMayBeAbsent) {
  expect_as_on_host([](Device d) {
    const Tensor x = counted({3, 4}, d), least = full({4}, 3, floats(d));
    return std::vector<Tensor>{x.clamp(least, Tensor()), x.clamp(Tensor(), least), x.clamp(least, least)};
  });
}

TEST(Fallback, RandomNumbersAreThoseOfTheSameStream) {
  expect_as_on_host([](Device d) {
    Tensor x = counted({5, 3}, d).t();
    x.uniform_();
    const Tensor y = randn({3, 5}, floats(d)), z = rand({4}, floats(d));
    Generator own(5);
    Tensor w = zeros({7}, floats(d));
    w.normal_(0, 1, own).exponential_(1, own);
    return std::vector<Tensor>{x,
                               y,
                               z,
                               w,
                               randint(10, {6}, TensorOptions(d)),
                               randperm(9, TensorOptions(d)),
                               bernoulli(full({20}, 0.5, floats(d))),
                               multinomial(counted({4}, d), 3),
                               multinomial(counted({2, 4}, d), 5, true),
                               dropout(y, 0.5, true),
                               randn({2}, floats(d))};
  });
}

TEST(Fallback, FactoriesMakeTensorsOnTheDevice) {
  expect_as_on_host([](Device d) {
    return std::vector<Tensor>{arange(7, floats(d)),
                               linspace(0, 1, 5, floats(d)),
                               eye(3, floats(d)),
                               ones({2, 2}, floats(d)),
                               tril_indices(3, 3, 0, TensorOptions(d)),
                               full({2}, 3, floats(d)),
                               zeros_like(counted({2, 2}, d).t())};
  });
}

TEST(Fallback, ComplexNumbersAndEmptyTensors) {
  expect_as_on_host([](Device d) {
    const Tensor x = complex(counted({3}, d), counted({3}, d).neg());
    const Tensor none = zeros({0, 3}, floats(d));
    return std::vector<Tensor>{x * x, x.abs(), exp(x), none + 1, none.sum({0}), cat({none, none}, 0)};
  });
}

// Operators of the test's own, which write as the host's would not.

/// x[i] = y[i] + 1 from the front to the back.
Tensor& shift(Tensor& x, const Tensor& y) {
  auto* to = static_cast<float*>(x.data_ptr());
  const auto* from = static_cast<const float*>(y.data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) to[i * x.strides()[0]] = from[i * y.strides()[0]] + 1;
  return x;
}
void count_up(TensorList xs, TensorList ys, Tensor& z) {
  for (const Tensor& x : xs) *static_cast<float*>(x.data_ptr()) += 1;
  for (const Tensor& y : ys) {
    if (y.defined() && z.defined()) *static_cast<float*>(z.data_ptr()) += *static_cast<float*>(y.data_ptr());
  }
}
Tensor& grow_out(const Tensor& x, Tensor& out) {
  out.resize_({x.numel() * 2, 2});
  out.fill_(x.numel());
  return out;
}
Tensor itself(const Tensor& x) { return x; }
bool same(const Tensor& x, TensorList list) {
  for (const Tensor& t : list) {
    if (!t.is_same(x)) return false;
  }
  return true;
}
Tensor expanded(const Tensor& x) { return x.expand({3, x.size(0)}).flip({1}); }
Tensor failing(Tensor& x) {
  x.fill_(9);
  throw_error(ErrorKind::Value, "failing: no");
}

struct Operators : ::testing::Test {
  Library def{Library::Kind::Def, "fb", "", SourceLocation::here()};
  Library cpu{Library::Kind::Impl, "fb", "CPU", SourceLocation::here()};

  Operators() {
    (void)blind();
    def.def("shift(Tensor(a!) x, Tensor y) -> Tensor(a!)");
    def.def("count_up(Tensor(a!)[] xs, Tensor?[] ys, Tensor(b!)? z) -> ()");
    def.def("grow.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)");
    def.def("itself(Tensor x) -> Tensor");
    def.def("expanded(Tensor x) -> Tensor");
    def.def("same(Tensor x, Tensor[] list) -> bool");
    def.def("peek(Tensor(a) x) -> Tensor(a)");
    def.def("failing(Tensor(a!) x) -> Tensor");
    def.def("nowhere(Tensor x) -> Tensor");
    def.def("bytes_of(Tensor x, Storage s) -> int");
    cpu.impl("shift", &shift);
    cpu.impl("count_up", &count_up);
    cpu.impl("grow.out", &grow_out);
    cpu.impl("itself", &itself);
    cpu.impl("expanded", &expanded);
    cpu.impl("same", &same);
    cpu.impl("peek", &itself);
    cpu.impl("failing", &failing);
    cpu.impl(
        "bytes_of", +[](const Tensor&, const Storage& s) { return static_cast<int64_t>(s.nbytes()); });
  }
  template <class Sig>
  static auto op(const char* name, const char* overload = "") {
    return Dispatcher::singleton().find_schema_or_throw(std::string("fb::") + name, overload).typed<Sig>();
  }
};

TEST_F(Operators, OverlappingViewsShareOneCopy) {
  expect_as_on_host([](Device d) {
    Tensor base = counted({10}, d).flip({0}).clone(MemoryFormat::Contiguous);
    Tensor x = base.narrow(0, 1, 9);
    op<Tensor&(Tensor&, const Tensor&)>("shift").call(x, base.narrow(0, 0, 9));
    Tensor evens = base.slice(0, 0, 10, 2);
    op<Tensor&(Tensor&, const Tensor&)>("shift").call(evens, base.slice(0, 1, 10, 2).flip({0}));
    return std::vector<Tensor>{base};
  });
}

TEST_F(Operators, OneTensorPassedTwiceIsOneTensorThere) {
  expect_as_on_host([](Device d) {
    Tensor x = counted({4}, d);
    const Tensor y = x.detach();
    op<void(TensorList, TensorList, Tensor&)>("count_up").call({x, x, y}, {Tensor(), x}, x);
    return std::vector<Tensor>{x};
  });
}

TEST_F(Operators, OneTensorIsOneTensorOnTheHost) {
  const Tensor x = counted({4}, blind().device());
  const auto is_same = op<bool(const Tensor&, TensorList)>("same");
  EXPECT_TRUE(is_same.call(x, {x, x}));
  EXPECT_FALSE(is_same.call(x, {x, x.detach()}));
}

TEST_F(Operators, ListsAndOptionalTensorsAreWritten) {
  expect_as_on_host([](Device d) {
    Tensor x = counted({2}, d), y = counted({2, 2}, d).t(), z = counted({1}, d), none;
    op<void(TensorList, TensorList, Tensor&)>("count_up").call({x, y}, {y, Tensor()}, z);
    op<void(TensorList, TensorList, Tensor&)>("count_up").call({x}, {}, none);
    return std::vector<Tensor>{x, y, z};
  });
}

TEST_F(Operators, WhatIsResizedIsResizedThere) {
  expect_as_on_host([](Device d) {
    Tensor out = tenon::empty({0}, floats(d)), used = zeros({7}, floats(d));
    const auto grow = op<Tensor&(const Tensor&, Tensor&)>("grow", "out");
    EXPECT_TRUE(grow.call(counted({3}, d), out).is_same(out));
    EXPECT_TRUE(grow.call(counted({5}, d), used).is_same(used));
    return std::vector<Tensor>{out, used};
  });
}

TEST_F(Operators, AResultKeepsTheHostsStridesAndAnArgumentItsIdentity) {
  const Tensor x = counted({4}, blind().device());
  EXPECT_TRUE(op<Tensor(const Tensor&)>("itself").call(x).is_same(x));
  expect_as_on_host([](Device d) {
    return std::vector<Tensor>{op<Tensor(const Tensor&)>("expanded").call(counted({4}, d))};
  });
}

TEST_F(Operators, ViewsNeverFallBack) {
  expect_error(ErrorKind::NotImplemented,
               "Operator 'fb::peek' returns a view of its arguments, which copies on the host cannot give; "
               "device blind:0 needs a kernel of its own",
               [] { (void)op<Tensor(const Tensor&)>("peek").call(counted({2}, blind().device())); });
}

TEST_F(Operators, AStorageOfTheDeviceHasNoCopy) {
  const Tensor x = counted({2}, blind().device());
  const auto bytes_of = op<int64_t(const Tensor&, const Storage&)>("bytes_of");
  EXPECT_EQ(bytes_of.call(x, ones({3}).storage()), 12);
  expect_error(ErrorKind::NotImplemented,
               "bytes_of: `s` is a storage of blind:0, of which there is no copy on the host",
               [&] { (void)bytes_of.call(x, x.storage()); });
}

TEST_F(Operators, AnErrorLeavesTheTensorsAsTheyWere) {
  Tensor x = counted({2}, blind().device());
  const uint64_t version = x._version();
  expect_error(ErrorKind::Value, "failing: no", [&] { (void)op<Tensor(Tensor&)>("failing").call(x); });
  EXPECT_EQ(x._version(), version);
  testing::expect_values(x.to(kCPU), {1, 2});
}

TEST_F(Operators, WhatTheHostLacksTooNamesTheDevice) {
  expect_error(ErrorKind::NotImplemented, "Operator 'fb::nowhere' is not implemented for device blind",
               [] { (void)op<Tensor(const Tensor&)>("nowhere").call(counted({2}, blind().device())); });
}

TEST(Fallback, ResultsAreOnTheDeviceOfTheOperandsAndWorkOfItsStream) {
  const Device second = blind().device(1);
  const Tensor x = counted({3}, second);
  EXPECT_EQ(x.neg().device(), second) << "device 0 is current";
  const Stream own = Stream::create(second);
  current_stream(second).synchronize();
  const StreamGuard guard(own);
  const Tensor y = x.add(x);
  EXPECT_EQ(y.storage()->stream(), own);
  testing::expect_values(y.to(kCPU), {2, 4, 6});
  EXPECT_EQ(arange(3, floats(second)).device(), second);
}

// What it costs, and what is told.

TEST(Fallback, WaitsOnceForAnyNumberOfTensors) {
  const Device d = blind().device();
  Tensor x = counted({3, 3}, d), y = counted({3, 3}, d), z = counted({3, 3}, d);
  const auto waits = [&](auto&& f) {
    blind().waits = 0;
    f();
    return blind().waits;
  };
  EXPECT_EQ(waits([&] { (void)x.add(y); }), 1);
  EXPECT_EQ(waits([&] { (void)addmm(z, x, y); }), 1);
  EXPECT_EQ(waits([&] { (void)stack({x, y, z.t(), x}, 0); }), 0) << "copies of bytes";
  EXPECT_EQ(waits([&] { (void)where(x > 2, y, z); }), 2) << "two operators";
  EXPECT_EQ(waits([&] { x.mul_(y); }), 1);
  EXPECT_EQ(waits([&] { (void)arange(5, floats(d)); }), 0) << "nothing is read";
  EXPECT_EQ(waits([&] { (void)sort(x.t(), 0, true); }), 1);
}

TEST(Fallback, AFreshOutIsNotRead) {
  const Device d = blind().device();
  const Tensor x = counted({4}, d);
  Tensor out = zeros({4}, floats(d));
  reset_fallbacks();
  exp_out(out, x);
  const auto all = fallbacks();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].nbytes, 32) << "16 bytes there, 16 back";
}

std::vector<std::string> g_log;

TEST(Fallback, IsCountedAndLogged) {
  const Tensor x = counted({4}, blind().device());
  reset_fallbacks();
  EXPECT_TRUE(fallbacks().empty());
  set_fallback_sink(+[](const FallbackReport& r) {
    g_log.push_back(fmt::format("{} on {}: {}", r.name, to_string(r.device), r.nbytes));
  });
  (void)x.add(x);
  EXPECT_TRUE(g_log.empty()) << "not switched on";
  set_log_fallbacks(true);
  (void)x.add(x);
  (void)x.abs();
  set_log_fallbacks(false);
  set_fallback_sink(nullptr);
  EXPECT_EQ(g_log, (std::vector<std::string>{"aten::add.Tensor on blind:0: 32", "aten::abs on blind:0: 32"}));
  const auto all = fallbacks();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "aten::abs");
  EXPECT_EQ(all[0].backend, blind().backend());
  EXPECT_EQ(all[1].name, "aten::add.Tensor");
  EXPECT_EQ(all[1].calls, 2);
  EXPECT_EQ(all[1].nbytes, 64);
}

TEST(Fallback, GradientsFallBackAsTheirOperatorsDo) {
  expect_as_on_host([](Device d) {
    Tensor x = counted({3, 4}, d).requires_grad_();
    Tensor w = counted({4, 2}, d).requires_grad_();
    const Tensor loss = relu(mm(x, w) - 50).pow(2).sum();
    loss.backward();
    return std::vector<Tensor>{x.grad(), w.grad()};
  });
}

// Tensors of several devices.

TEST(Fallback, TensorsOfSeveralDevicesAreRefusedByName) {
  const Device d = blind().device(), second = blind().device(1);
  Tensor x = counted({2, 2}, d), host = counted({2, 2}, kCPU), other = counted({2, 2}, second);
  expect_error(ErrorKind::Device,
               "add: `other` is on cpu, expected the same device as `self`, blind:0; move one with .to()",
               [&] { (void)x.add(host); });
  expect_error(ErrorKind::Device, "add: `self` is on cpu, expected the same device as `other`, blind:0",
               [&] { (void)host.add(x); });
  expect_error(ErrorKind::Device, "mm: `mat2` is on blind:1, expected the same device as `self`, blind:0",
               [&] { (void)mm(x, other); });
  expect_error(ErrorKind::Device,
               "stack: `tensors[1]` is on blind:1, expected the same device as `tensors[0]`, blind:0", [&] {
                 (void)stack({x, other}, 0);
               });
  expect_error(ErrorKind::Device, "exp: `out` is on cpu, expected the same device as `self`",
               [&] { exp_out(host, x); });
  expect_error(ErrorKind::Device, "add_: `other` is on blind:1", [&] { x.add_(other); });
  // Numbers of the host are at home everywhere, and so are positions.
  testing::expect_values(x.add(tensor(1.0f)).to(kCPU), {2, 3, 4, 5});
  testing::expect_values(x.index({tensor({1}, TensorOptions().dtype(kInt64))}).to(kCPU), {3, 4});
  x.index_put_({tensor({0}, TensorOptions().dtype(kInt64))}, zeros({2}));
  testing::expect_values(x.to(kCPU), {0, 0, 3, 4});
}

// Policies.

BlindDevice& choosy() {
  static BlindDevice& device = BlindDevice::make("choosy", "Choosy", 1);
  return device;
}

struct Policies : ::testing::Test {
  Device d = choosy().device();
  Tensor x = counted({3}, d);
  static void set(FallbackPolicy p) { set_cpu_fallback(choosy().backend(), std::move(p)); }
  ~Policies() override { remove_cpu_fallback(choosy().backend()); }
};

// The device of tests/ops/queue_device_test.cc has one, where that has run in this process.
std::string kernels_of_abs() {
  return fmt::format("kernels exist for: CPU, {}Meta", find_backend("lazy") ? "Lazy, " : "");
}

TEST_F(Policies, ABlockedOperatorIsNotImplementedAndSaysWhoHasIt) {
  set({.kind = FallbackPolicy::Kind::All, .blocked = {"aten::abs", "sub.Tensor"}});
  testing::expect_values(x.neg().to(kCPU), {-1, -2, -3});
  expect_error(ErrorKind::NotImplemented,
               "Operator 'aten::abs' is not implemented for device choosy; " + kernels_of_abs() +
                   " (see `tenon table aten::abs`)",
               [&] { (void)x.abs(); });
  expect_error(ErrorKind::NotImplemented, "Operator 'aten::abs.out' is not implemented for device choosy",
               [&] {
                 Tensor out = zeros({3}, floats(d));
                 abs_out(out, x);
               });
  expect_error(ErrorKind::NotImplemented, "Operator 'aten::sub.Tensor' is not implemented for device choosy",
               [&] { (void)x.sub(x); });
  EXPECT_EQ(Dispatcher::singleton()
                .computed_cell(Dispatcher::singleton().find_schema_or_throw("aten::abs"),
                               DispatchKey(Functionality::Dense, choosy().backend()))
                .source,
            CellSource::Missing);
  set({FallbackPolicy::Kind::All});
  testing::expect_values(x.neg().abs().to(kCPU), {1, 2, 3});
}

TEST_F(Policies, OnlyWhatIsListedFallsBack) {
  set({.kind = FallbackPolicy::Kind::Listed, .listed = {"aten::sub.Tensor", "aten::sum"}});
  testing::expect_values(x.sub(x).to(kCPU), {0, 0, 0});
  testing::expect_values(x.sum().to(kCPU), {6});
  expect_error(ErrorKind::NotImplemented, "Operator 'aten::add.Tensor' is not implemented for device choosy",
               [&] { (void)x.add(x); });
}

TEST_F(Policies, NeverIsTheErrorOfABlockList) {
  set({FallbackPolicy::Kind::Never});
  expect_error(ErrorKind::NotImplemented,
               "Operator 'aten::abs' is not implemented for device choosy; " + kernels_of_abs(),
               [&] { (void)x.abs(); });
  remove_cpu_fallback(choosy().backend());
  expect_error(ErrorKind::NotImplemented, "not implemented for device choosy", [&] { (void)x.abs(); });
}

TEST(Fallback, IsNotForTheHost) {
  expect_error(ErrorKind::Value, "set_cpu_fallback: cpu does not fall back",
               [] { set_cpu_fallback(kCpuBackend, {FallbackPolicy::Kind::All}); });
}

TEST_F(Policies, OneOperatorMayHaveTheFallbackAsItsKernel) {
  Library impl(Library::Kind::Impl, "aten", "Choosy", SourceLocation::here());
  impl.impl("sub.Tensor", CppFunction::make_from_boxed_function<&cpu_fallback>());
  testing::expect_values(x.sub(x).to(kCPU), {0, 0, 0});
  expect_error(ErrorKind::NotImplemented, "not implemented for device choosy", [&] { (void)x.add(x); });
}

// A device that has a stub or runs expressions, and declines some calls.

TEST_F(Policies, AStubThatDeclinesACallRunsOnTheHost) {
  ops::reduce_stub.set_boxed(
      choosy().backend(),
      [](void*, Stream, Stack& stack) {
        if (stack.at<Tensor>(0).dtype() != kFloat32) return false;
        stack.clear();
        return true;
      },
      nullptr);
  const Tensor doubles = counted({2, 3}, d, kFloat64);
  const char* const declined = "Stub 'reduce': device choosy:0 declines this call, and may not fall back";
  expect_error(ErrorKind::NotImplemented, declined, [&] { (void)doubles.sum(); });
  set({FallbackPolicy::Kind::All});
  reset_fallbacks();
  testing::expect_values(doubles.t().sum().to(kCPU), {21});
  (void)x.sum();
  const auto all = fallbacks();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "stub reduce");
  set({.kind = FallbackPolicy::Kind::All, .blocked = {"reduce"}});
  expect_error(ErrorKind::NotImplemented, declined, [&] { (void)doubles.sum(); });
  ops::reduce_stub.set_boxed(choosy().backend(), nullptr, nullptr);
}

TEST_F(Policies, AnExpressionThatIsDeclinedRunsOnTheHost) {
  int asked = 0;
  set_pointwise_device(
      choosy().backend(),
      [](void* data, const TenonLaunch&) {
        ++*static_cast<int*>(data);
        return false;
      },
      &asked);
  expect_error(ErrorKind::NotImplemented, "add: device choosy:0 declines these dtypes, and may not fall back",
               [&] { (void)x.add(x); });
  set({FallbackPolicy::Kind::All});
  reset_fallbacks();
  asked = 0;
  Tensor base = counted({4, 4}, d);
  testing::expect_values(x.add(x).to(kCPU), {2, 4, 6});
  EXPECT_EQ(asked, 1);
  base.slice(1, 0, 4, 2).add_(base.slice(1, 1, 4, 2), 2);  // columns between columns
  testing::expect_values(base.to(kCPU).select(0, 1), {17, 6, 23, 8});
  Tensor out = zeros({2}, floats(d).dtype(kFloat64));
  mul_out(out, x.narrow(0, 0, 2), tensor(0.5f));
  testing::expect_values(out.to(kCPU), {0.5, 1});
  const Tensor z = complex(x, x);
  testing::expect_values((z * z).abs().to(kCPU), {2, 8, 18}, 1e-6);
  int64_t expressions = 0;
  for (const FallbackCount& c : fallbacks()) expressions += c.name.starts_with("expression ") ? c.calls : 0;
  EXPECT_GE(expressions, 5);
  set({.kind = FallbackPolicy::Kind::All, .blocked = {"aten::mul"}});
  expect_error(ErrorKind::NotImplemented, "mul: device choosy:0 declines these dtypes, and may not fall back",
               [&] { (void)x.mul(x); });
  set_pointwise_device(choosy().backend(), nullptr, nullptr);
}

}  // namespace
}  // namespace tenon
