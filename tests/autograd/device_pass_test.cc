// Backward over several devices: which thread runs what, in which stream, in whose state; sums, errors,
// nested passes. The device runs its work only when somebody waits, so that no result depends on luck; where
// threads must meet, latches make them.
#include "tenon/autograd/device_pass.h"

#include <sys/wait.h>
#include <unistd.h>

#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/tensor_operators.h"
#include "tests/autograd/queued_device.h"
#include "tests/autograd/testing.h"
#include "tests/meeting.h"

namespace tenon {
namespace {

using namespace tenon::testing;
using autograd::NodeCall;
using autograd::run_backward;
using autograd::TensorMeta;
using std::this_thread::get_id;
using Threads = std::vector<std::thread::id>;

Device on(int index) { return QueuedDevice::device(index); }
Tensor leaf_on(Device device, const std::vector<double>& values) {
  return make({static_cast<int64_t>(values.size())}, values).to(device).requires_grad_();
}
/// The bytes of a float64 tensor, wherever it is.
std::vector<uint64_t> bits(const Tensor& t) {
  if (!t.defined()) return {};
  const Tensor host = t.detach().to(kCPU).contiguous();
  const auto* p = static_cast<const uint64_t*>(host.data_ptr());
  return {p, p + host.numel()};
}
void hook(const Tensor& t, std::function<void()> f) {
  autograd::register_hook(t, [f = std::move(f)](const Tensor&) {
    f();
    return Tensor();
  });
}

/// From the host over three devices and back: gradients meet in leaves and in between, two and more at a
/// time.
Tensor over_devices(const Tensor& x, const Tensor& w, Device first, Device second, Device third) {
  const Tensor a = x.to(first) * x.exp().to(first);
  const Tensor b = a.to(second).tanh() + w.to(second) * x.to(second);
  const Tensor c = (a.to(third) * 1.7 + b.to(third) * w.to(third)).sin() * a.to(third);
  return (c.to(kCPU) * w + b.to(kCPU).exp() + (a * a).to(kCPU) * x).sum();
}
const std::vector<double> kInputs{0.1, -0.7, 1.3, 0.01}, kWeights{1.1, 0.3, -0.4, 2.7};

std::vector<std::vector<uint64_t>> gradients_over(Device first, Device second, Device third) {
  const Tensor x = leaf({4}, kInputs), w = leaf({4}, kWeights);
  over_devices(x, w, first, second, third).backward();
  return {bits(x.grad()), bits(w.grad())};
}

TEST(DevicePass, GradientsHaveTheBitsOfTheHost) {
  const auto host = gradients_over(kCPU, kCPU, kCPU);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(gradients_over(on(0), on(1), on(0)), host);
    EXPECT_EQ(gradients_over(on(1), on(0), kCPU), host);
    EXPECT_EQ(gradients_over(on(0), on(0), on(0)), host);
  }
}

TEST(DevicePass, AGraphWithoutDevicesRunsOnTheCaller) {
  const Tensor x = leaf({1}, {2});
  Threads ran;
  const Tensor y = x * 3;
  hook(y, [&] { ran.push_back(get_id()); });
  hook(x, [&] { ran.push_back(get_id()); });
  (y * y).backward();
  EXPECT_EQ(ran, Threads(2, get_id()));
}

TEST(DevicePass, EachDeviceHasAWorkerAndTheHostsNodesRunOnTheCaller) {
  const Tensor x = leaf_on(on(0), {1, 2}), y = leaf_on(on(1), {3, 4}), h = leaf({2}, {5, 6});
  for (int i = 0; i < 2; ++i) {
    Threads first, second, host;
    const Tensor a = x * 2, b = a.exp(), c = y.tanh(), d = h * 3;
    hook(a, [&] { first.push_back(get_id()); });
    hook(b, [&] { first.push_back(get_id()); });
    hook(c, [&] { second.push_back(get_id()); });
    hook(d, [&] { host.push_back(get_id()); });
    (b.to(kCPU) + c.to(kCPU) + d).sum().backward();
    ASSERT_EQ(first.size() + second.size() + host.size(), 4u);
    EXPECT_EQ(first[0], first[1]);
    EXPECT_EQ(host[0], get_id());
    EXPECT_EQ((std::set{first[0], second[0], host[0]}.size()), 3u);
  }
}

TEST(DevicePass, DevicesRunAtTheSameTime) {
  Meeting meet;
  const Tensor x = leaf_on(on(0), {1}), y = leaf_on(on(1), {1});
  const Tensor a = x * 2, b = y * 3;
  hook(a, [&] { meet.wait(); });
  hook(b, [&] { meet.wait(); });
  (a.to(kCPU) + b.to(kCPU)).sum().backward();
  EXPECT_EQ(values(x.grad().to(kCPU)), std::vector<double>{2});
}

TEST(DevicePass, ANodeRunsInTheStreamOfItsForwardCallAndALeafInTheCallers) {
  const Stream a = Stream::create(on(0)), b = Stream::create(on(0)), caller = Stream::create(on(0));
  std::vector<Stream> seen;
  const auto note = [&] {
    seen.push_back(current_stream(on(0)));
    EXPECT_EQ(resolved(Device(on(0).backend)), on(0));
  };
  const DeviceGuard other(on(1));
  Tensor x, y, z;
  {
    const StreamGuard guard(a);
    x = leaf_on(on(0), {2});
    y = x * 3;
    a.synchronize();
  }
  {
    const StreamGuard guard(b);
    z = y * y;
    b.synchronize();
  }
  for (const Tensor& t : {z, y, x}) hook(t, note);
  {
    const StreamGuard guard(caller);
    z.backward();
    EXPECT_EQ(values(x.grad().to(kCPU)), std::vector<double>{36});
  }
  EXPECT_EQ(seen, (std::vector<Stream>{b, a, caller}));
}

/// Work on two streams of one device and one of another, with the order that a user must give the forward
/// pass.
struct Streams {
  Stream a = Stream::create(on(0)), b = Stream::create(on(0)), c = Stream::create(on(1));

  static void join(Stream from, Stream to) {
    Event done(from.device);
    done.record(from);
    done.wait(to);
  }
  /// As Tensor.record_stream in Python, of what was allocated for another stream.
  static void use(std::initializer_list<Tensor> tensors, Stream user) {
    for (const Tensor& t : tensors) autograd::note_use(t, user);
  }
  Tensor forward(const Tensor& x, const Tensor& w) const {
    Tensor y, z, v;
    join(current_stream(on(0)), a);
    join(current_stream(on(0)), b);
    {
      const StreamGuard guard(a);
      y = (x * w).exp();
      use({x, w}, a);
    }
    join(a, b);
    {
      const StreamGuard guard(b);
      z = y * x + w;
      use({x, y, w}, b);
    }
    join(b, a);
    {
      const StreamGuard guard(a);
      y = y * z;
      use({z}, a);
    }
    join(a, c);
    join(current_stream(on(1)), c);
    {
      const StreamGuard guard(c);
      // The copy reads in the thread's stream of the source.
      join(a, current_stream(on(0)));
      v = y.to(on(1)).tanh();
    }
    use({y, z}, current_stream(on(0)));
    use({v}, current_stream(on(1)));
    join(c, current_stream(on(1)));
    join(b, current_stream(on(0)));
    return v.to(kCPU).sum() + z.to(kCPU).sum();
  }
};

TEST(DevicePass, GradientsThatChangeStreamsAreOrdered) {
  const Streams streams;
  const auto gradients = [&](Device device) {
    const Tensor x = leaf_on(device, {0.2, -0.4}), w = leaf_on(device, {0.3, 0.9});
    const Tensor loss =
        device.is_cpu() ? [&] {
          const Tensor y = (x * w).exp(), z = y * x + w;
          return (y * z).tanh().sum() + z.sum();
        }()
                        : streams.forward(x, w);
    loss.backward();
    return std::vector{bits(x.grad()), bits(w.grad())};
  };
  const auto host = gradients(kCPU);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(gradients(on(0)), host);
}

TEST(DevicePass, WhatItReturnsAndKeepsIsForTheCallersStream) {
  const Stream a = Stream::create(on(0)), caller = Stream::create(on(0));
  const Tensor x = leaf_on(on(0), {2, 3});
  Tensor y, z;
  Streams::join(current_stream(on(0)), a);
  {
    const StreamGuard guard(a);
    y = x * 5;
    z = y * 2;  // whose node computes the gradient of y in this stream
  }
  Streams::use({x}, a);
  Streams::use({y, z}, caller);
  y.retain_grad();
  Streams::join(a, caller);
  const StreamGuard guard(caller);
  const Tensor one = full({2}, 1, TensorOptions(on(0)).dtype(kFloat64));
  for (int i = 0; i < 3; ++i) {
    const Tensor loss = z * z;
    std::vector<Tensor> grads = autograd::grad({&loss, 1}, {&y, 1}, {&one, 1}, true);
    const Tensor twice = grads[0] * 2;
    y.set_grad({});
    grads.clear();  // its memory must not be reused before the caller's stream has read it
    (z * z).backward(one, true);
    const Tensor kept = y.grad() * 1;
    y.set_grad({});
    if (i > 0) a.synchronize();  // without it, the caller's stream must wait for the other one
    EXPECT_EQ(values(twice.to(kCPU)), (std::vector<double>{160, 240}));
    EXPECT_EQ(values(kept.to(kCPU)), (std::vector<double>{80, 120}));
  }
}

TEST(DevicePass, PassesInDifferentStreamsAddToOneGradientInOrder) {
  const Stream a = Stream::create(on(0)), b = Stream::create(on(0));
  const Tensor x = leaf_on(on(0), {2});
  const Tensor y = x * x;
  Streams::join(current_stream(on(0)), a);
  Streams::join(current_stream(on(0)), b);
  for (const Stream& stream : {a, b, a}) {
    const StreamGuard guard(stream);
    y.backward({}, true);
  }
  const StreamGuard guard(a);
  EXPECT_EQ(values(x.grad().to(kCPU)), std::vector<double>{12});
}

TEST(DevicePass, WorkersTakeOverTheCallersState) {
  Tensor x = leaf_on(on(0), {2});
  const Stream mine = Stream::create(on(1));
  int packed = 0;
  const auto check = [&](bool grad) {
    const Tensor y = x * x;
    bool ran = false;
    hook(y, [&] {
      ran = true;
      EXPECT_EQ(thread_state.grad_enabled, grad);
      EXPECT_EQ(thread_state.trace_depth, 7);
      EXPECT_EQ(current_stream(on(1)), mine);
    });
    const StreamGuard stream(mine);
    const ThreadStateGuard<&ThreadState::trace_depth> depth(7);
    const autograd::SavedTensorHooksGuard hooks({[&](const Tensor& t) -> std::any { return ++packed, t; },
                                                 [](const std::any& t) { return std::any_cast<Tensor>(t); }});
    y.backward({}, {}, grad);
    EXPECT_TRUE(ran);
  };
  check(false);
  EXPECT_EQ(packed, 0);
  check(true);
  EXPECT_GT(packed, 0) << "nodes that the pass recorded save by the caller's hooks";
  x.set_grad({});
  bool ran = false;
  const Tensor y = x * 3;
  hook(y, [&] {
    ran = true;
    EXPECT_EQ(thread_state.trace_depth, 0);
    EXPECT_FALSE(autograd::detail::has_saved_tensor_hooks);
  });
  y.backward();
  EXPECT_TRUE(ran);
}

/// A node of a device, over one-element tensors.
class DeviceNode : public Node {
 public:
  DeviceNode(Device device, std::function<void(NodeCall&)> f, std::vector<Edge> edges = {})
      : f_(std::move(f)) {
    add_input(TensorMeta({1}, kFloat64, device));
    for (Edge& e : edges) add_edge(std::move(e));
  }
  std::string_view name() const noexcept override { return "DeviceNode"; }
  void apply(NodeCall& call) override { f_(call); }

 private:
  std::function<void(NodeCall&)> f_;
};
Edge node(Device device, std::function<void(NodeCall&)> f, std::vector<Edge> edges = {}) {
  return {IntrusivePtr<Node>::adopt(new DeviceNode(device, std::move(f), std::move(edges))), 0};
}
Tensor one_on(Device device) { return full({1}, 1, TensorOptions(device).dtype(kFloat64)); }
void run(const Edge& root, Device device) {
  const Tensor g = one_on(device);
  run_backward({&root, 1}, {&g, 1}, {}, {.retain_graph = true});
}

TEST(DevicePass, AnErrorDropsTheOtherDevicesQueueAndIsThrownToTheCaller) {
  bool fail = true;
  std::latch started(1), failed(1);
  std::mutex mutex;
  std::vector<std::string> ran;
  const auto note = [&](const char* name) {
    const std::lock_guard lock(mutex);
    ran.push_back(name);
  };
  const Edge lower = node(on(1), [&](NodeCall&) { note("lower"); });
  const Edge upper = node(on(1), [&](NodeCall&) {
    note("upper");
    if (!fail) return;
    started.count_down();
    failed.wait();
  });
  const auto failing = [&](NodeCall& call) {
    if (!fail) return;
    started.wait();
    // Freed when the error has ended the pass.
    call.out[0] = Tensor(TensorImpl::make(
        Storage::from_foreign(
            0, 8, kCPU, [](void* latch) noexcept { static_cast<std::latch*>(latch)->count_down(); }, &failed),
        kFloat64, {1}));
    throw_error(ErrorKind::Index, "planted");
  };
  const Edge after = node(kCPU, [&](NodeCall&) { note("after"); });
  const Edge fails = node(on(0), failing, {after});
  const Edge root = node(kCPU,
                         [](NodeCall& call) {
                           for (size_t i = 0; i < 3; ++i) call.out[i] = one_on(on(i == 0 ? 0 : 1));
                         },
                         {fails, upper, lower});
  try {
    run(root, kCPU);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Index);
    EXPECT_STREQ(e.what(), "planted");
  }
  EXPECT_EQ(ran, std::vector<std::string>{"upper"});
  fail = false;
  ran.clear();
  run(root, kCPU);
  std::ranges::sort(ran);
  EXPECT_EQ(ran, (std::vector<std::string>{"after", "lower", "upper"}));
}

TEST(DevicePass, AnErrorOfTheCallerWaitsForWhatWorkersRun) {
  std::latch started(1), thrown(1);
  bool finished = false;
  const Edge slow = node(on(0), [&](NodeCall&) {
    started.count_down();
    thrown.wait();
    finished = true;
  });
  const Edge fails =
      node(kCPU,
           [&](NodeCall& call) {
             started.wait();
             call.out[0] = Tensor(TensorImpl::make(
                 Storage::from_foreign(
                     0, 8, kCPU, [](void* latch) noexcept { static_cast<std::latch*>(latch)->count_down(); },
                     &thrown),
                 kFloat64, {1}));
             throw std::runtime_error("planted on the host");
           },
           {node(kCPU, [](NodeCall&) {})});
  const Edge root = node(kCPU,
                         [](NodeCall& call) {
                           call.out[0] = one_on(on(0));
                           call.out[1] = one_on(kCPU);
                         },
                         {slow, fails});
  EXPECT_THROW(run(root, kCPU), std::runtime_error);
  EXPECT_TRUE(finished);
}

TEST(DevicePass, NestedPassesFromTwoDevicesAtOnceAndOneLock) {
  const Tensor inner = leaf_on(on(0), {3});
  const auto nested = [&] {
    const AutoGradMode record(true);
    const Tensor there = (inner * 2).to(on(1));
    (there * there).sum().backward();
  };
  std::mutex mutex;
  Meeting meet;
  const auto in_hook = [&] {
    meet.wait();
    const std::lock_guard lock(mutex);
    nested();
  };
  const Tensor x = leaf_on(on(0), {1}), y = leaf_on(on(1), {1});
  const Tensor a = x * 2, b = y * 3;
  hook(a, in_hook);
  hook(b, in_hook);
  for (int i = 0; i < 5; ++i) (a.to(kCPU) + b.to(kCPU)).sum().backward({}, true);
  EXPECT_EQ(values(inner.grad().to(kCPU)), std::vector<double>{5 * 2 * 24.0});
  EXPECT_EQ(values(y.grad().to(kCPU)), std::vector<double>{15});
}

TEST(DevicePass, NestedPassesFromTwoDevicesAtOnceRunBesideEachOther) {
  const Tensor inner = leaf_on(on(0), {3}), other = leaf_on(on(1), {4});
  Meeting meet;
  // Each nested pass waits, on a thread for each of the devices, for the other one.
  const auto nested = [&] {
    const AutoGradMode record(true);
    const Tensor a = inner * 2, b = other * 2;
    hook(a, [&] { meet.wait(); });
    hook(b, [&] { meet.wait(); });
    (a.to(kCPU) + b.to(kCPU)).sum().backward();
  };
  const Tensor x = leaf_on(on(0), {1}), y = leaf_on(on(1), {1});
  const Tensor a = x * 2, b = y * 3;
  hook(a, nested);
  hook(b, nested);
  (a.to(kCPU) + b.to(kCPU)).sum().backward();
  EXPECT_EQ(values(inner.grad().to(kCPU)), std::vector<double>{4});
  EXPECT_EQ(values(other.grad().to(kCPU)), std::vector<double>{4});
}

TEST(DevicePass, ANestedPassRunsTheNodesOfItsOwnDeviceItself) {
  const Tensor x = leaf_on(on(0), {1}), inner = leaf_on(on(0), {1});
  Threads outer_thread, inner_thread;
  const Tensor y = x * 2;
  hook(y, [&] {
    outer_thread.push_back(get_id());
    const AutoGradMode record(true);
    const Tensor z = inner * 2;
    hook(z, [&] { inner_thread.push_back(get_id()); });
    z.sum().backward();
  });
  y.sum().backward();
  EXPECT_EQ(inner_thread, outer_thread);
  EXPECT_NE(outer_thread, Threads{get_id()});
}

TEST(DevicePass, AWorkerEntersNodesThatWaitForItsPass) {
  // The node of the host starts a pass on the device, which starts one that comes back to that node.
  int depth = 0;
  std::vector<int> depths;
  Edge host, device;
  host = node(kCPU, [&](NodeCall&) {
    depths.push_back(++depth);
    if (depth < 3) run(device, on(1));
    --depth;
  });
  device = node(on(1), [&](NodeCall&) { run(host, kCPU); });
  run(host, kCPU);
  EXPECT_EQ(depths, (std::vector<int>{1, 2, 3}));
}

TEST(DevicePass, PassesNestedTooDeeplyAreRefused) {
  Edge edges[2];
  for (int i = 0; i < 2; ++i)
    edges[i] = node(on(i), [&edges, i](NodeCall&) { run(edges[1 - i], on(1 - i)); });
  EXPECT_EQ(
      error_of([&] { run(edges[0], on(0)); }),
      "backward: 100 passes over several devices were started each from within another, which is as many "
      "as there may be");
  run(node(on(0), [](NodeCall&) {}), on(0));
}

TEST(DevicePass, ThreadsMayWalkOneGraphOverDevices) {
  const Tensor x = leaf_on(on(0), {1}), w = leaf_on(on(1), {2});
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = (y.to(on(1)) * w).to(on(0)) * 0.5;
  const Tensor loss = y.to(kCPU).sum();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) loss.backward({}, true);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(values(x.grad().to(kCPU)), std::vector<double>{40});
  EXPECT_EQ(values(w.grad().to(kCPU)), std::vector<double>{40 * 10 / 2.0});
}

#ifndef __SANITIZE_THREAD__  // which knows no child of a process with threads
TEST(DevicePass, AChildThatAWorkerForksEndsWithItsThread) {
  const Tensor x = leaf_on(on(0), {1});
  const Tensor y = x * 2;
  pid_t child = -1;
  hook(y, [&] { child = fork(); });
  y.backward();
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

TEST(DevicePass, ManyGradientsOfOneTensorAreSummedInOrder) {
  const auto gradient = [](Device first, Device second) {
    const Tensor x = leaf({1}, {0.1});
    Tensor total = x * 0;
    for (int i = 0; i < 60; ++i) {
      const Tensor there = x.to(i % 3 == 0 ? first : i % 3 == 1 ? second : kCPU);
      total = total + (there * (1.0 / (i + 3))).exp().to(kCPU);
    }
    total.backward();
    return bits(x.grad());
  };
  const auto host = gradient(kCPU, kCPU);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(gradient(on(0), on(1)), host);
}

TEST(DevicePass, OfWhatIsNotAskedForNothingRuns) {
  const Tensor x = leaf_on(on(0), {1}), y = leaf_on(on(1), {2});
  const Tensor a = x * 3, b = y * 5;
  hook(b, [] { ADD_FAILURE() << "the gradient of x alone was asked for"; });
  const Tensor loss = (a.to(kCPU) * b.to(kCPU)).sum();
  const auto grads = autograd::grad({&loss, 1}, {&x, 1});
  EXPECT_EQ(grads[0].device(), on(0));
  EXPECT_EQ(values(grads[0].to(kCPU)), std::vector<double>{30});
  EXPECT_FALSE(x.grad().defined());
}

TEST(DevicePass, SecondDerivativesOverDevices) {
  const Tensor x = leaf_on(on(0), {2});
  const Tensor y = (x * x).to(on(1)) * x.to(on(1));
  const auto first = autograd::grad({&y, 1}, {&x, 1}, {}, {}, true);
  const auto second = autograd::grad({&first[0], 1}, {&x, 1});
  EXPECT_EQ(values(first[0].to(kCPU)), std::vector<double>{12});
  EXPECT_EQ(values(second[0].to(kCPU)), std::vector<double>{12});
}

}  // namespace
}  // namespace tenon
