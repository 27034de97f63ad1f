// Backward over two copies of openreg and the host: scenarios S20 to S22. For ThreadSanitizer, too;
// tests/autograd/device_pass_test.cc looks into the pass itself.
#include <bit>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "tenon/autograd/autograd.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/tensor_operators.h"
#include "tests/meeting.h"
#include "tests/plugin/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

Tensor leaf_on(Device device, const std::vector<double>& numbers) {
  return on(device, numbers).requires_grad_();
}
std::vector<uint64_t> bits(const Tensor& t) {
  std::vector<uint64_t> all;
  for (const double value : values(t)) all.push_back(std::bit_cast<uint64_t>(value));
  return all;
}
void hook(const Tensor& t, std::function<void()> f) {
  autograd::register_hook(t, [f = std::move(f)](const Tensor&) {
    f();
    return Tensor();
  });
}

/// What a hook throws: a type of the program's own, with a value.
struct Planted : std::runtime_error {
  explicit Planted(int number) : std::runtime_error("planted"), number(number) {}
  int number;
};

TEST(OpenRegBackward, AnExceptionOfAHookArrivesWithItsTypeAndTheNextPassWorks) {
  const OpenReg device("hookreg", {{"mode", "thread"}, {"devices", "2"}});
  const Tensor x = leaf_on(device[0], {1, 2}), y = leaf_on(device[1], {3, 4});
  const Tensor a = x * 2, b = y * 3;
  bool fail = true;
  std::set<std::thread::id> threads;
  hook(a, [&] {
    threads.insert(std::this_thread::get_id());
    if (fail) throw Planted(17);
  });
  const Tensor loss = (a.to(kCPU) + b.to(kCPU)).sum();
  for (int round = 0; round < 5; ++round) {
    try {
      loss.backward({}, true);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Planted& planted) {
      EXPECT_EQ(planted.number, 17);
    }
    EXPECT_FALSE(x.grad().defined());
  }
  fail = false;
  Tensor(y).set_grad({});
  loss.backward({}, true);
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 2}));
  EXPECT_EQ(values(y.grad()), (std::vector<double>{3, 3}));
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u) << "hooks of a device run on its worker";
}

TEST(OpenRegBackward, NestedPassesFromHooksOnTwoDevicesAtOnceAndOneLock) {
  const OpenReg device("nestreg", {{"mode", "thread"}, {"devices", "2"}}),
      copy("nestcopy", {{"mode", "lazy"}, {"devices", "1"}});
  for (const Device second : {device[1], copy[0]}) {
    const Tensor inner = leaf_on(device[0], {3});
    std::mutex mutex;
    Meeting meet;
    const auto in_hook = [&] {
      meet.wait();
      const std::lock_guard lock(mutex);
      const AutoGradMode record(true);
      const Tensor there = (inner * 2).to(second);
      (there * there).sum().backward();
    };
    const Tensor x = leaf_on(device[0], {1}), y = leaf_on(second, {1});
    const Tensor a = x * 2, b = y * 3;
    hook(a, in_hook);
    hook(b, in_hook);
    for (int i = 0; i < 5; ++i) (a.to(kCPU) + b.to(kCPU)).sum().backward({}, true);
    EXPECT_EQ(values(inner.grad()), std::vector<double>{5 * 2 * 24.0});
    EXPECT_EQ(values(y.grad()), std::vector<double>{15});
  }
}

/// From the host over three devices and back: gradients meet in leaves and in between.
Tensor over(const Tensor& x, const Tensor& w, Device first, Device second, Device third) {
  const Tensor a = x.to(first) * x.exp().to(first);
  const Tensor b = a.to(second).tanh() + w.to(second) * x.to(second);
  const Tensor c = (a.to(third) * 1.7 + b.to(third) * w.to(third)).sin() * a.to(third);
  return (c.to(kCPU) * w + b.to(kCPU).exp() + (a * a).to(kCPU) * x).sum();
}
std::vector<std::vector<uint64_t>> gradients(Device first, Device second, Device third) {
  const Tensor x = leaf_on(kCPU, {0.1, -0.7, 1.3, 0.01}), w = leaf_on(kCPU, {1.1, 0.3, -0.4, 2.7});
  over(x, w, first, second, third).backward();
  return {bits(x.grad()), bits(w.grad())};
}

TEST(OpenRegBackward, AGraphOverTheHostTwoDevicesAndACopyHasTheHostsBits) {
  const auto host = gradients(kCPU, kCPU, kCPU);
  for (const char* mode : {"thread", "lazy", "random"}) {
    const OpenReg device("graphreg", {{"mode", mode}, {"devices", "2"}}),
        copy("graphcopy", {{"mode", "thread"}, {"devices", "1"}});
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(gradients(device[0], device[1], copy[0]), host) << mode;
      EXPECT_EQ(gradients(copy[0], kCPU, device[1]), host) << mode;
    }
  }
}

}  // namespace
}  // namespace tenon
