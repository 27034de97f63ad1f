// Streams, events and freed memory of openreg, whose work runs late where its mode says so: scenarios S2 and
// S7 to S10. For ThreadSanitizer, too; tests/devices has the same from Python.
#include "tenon/core/stream.h"

#include <latch>
#include <optional>
#include <thread>

#include "tenon/core/allocator.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/tensor_operators.h"
#include "tests/plugin/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

TEST(OpenRegMemory, ADroppedTensorThatAnotherStreamUsesWaits) {
  for (const bool recorded : {true, false}) {
    const OpenReg lazy("lazyreg", {{"mode", "lazy"}, {"devices", "1"}});
    const Stream stream = lazy.stream(0);
    Tensor x = filled(lazy[0], 1000, 1), other = filled(lazy[0], 10, 0), y;
    synchronize_device(lazy[0]);
    {
      const StreamGuard guard(stream);
      for (int i = 0; i < 20; ++i) other.add_(1);  // each question about an event runs a task
      y = x * 1;
    }
    if (recorded) allocator_for(lazy[0]).record_stream(x.storage().address(), x.device(), stream);
    const Address address = x.impl()->address();
    x = Tensor();
    const Tensor z = filled(lazy[0], 1000, 7);
    EXPECT_EQ(z.impl()->address() != address, recorded);
    current_stream(lazy[0]).synchronize();
    stream.synchronize();
    EXPECT_EQ(values(y)[999], recorded ? 1 : 7) << "without record_stream the fault shows";
  }
}

TEST(OpenRegStreams, EventsBetweenDevicesAndBackends) {
  const OpenReg first("eventreg", {{"mode", "thread"}}), lazy("lazyreg", {{"mode", "lazy"}});
  const Stream here = first.stream(0), there = first.stream(1);
  Event event(first[0]);
  expect_error([&] { event.record(there); }, ErrorKind::Device, "cannot be recorded on a stream of");
  Tensor x, y;
  {
    const StreamGuard guard(here);
    x = filled(first[0], 1000, 2) * 3;
  }
  event.record(here);
  event.wait(there);  // of another device of the backend
  {
    const StreamGuard guard(there);
    y = x.to(first[1]);
  }
  there.synchronize();
  EXPECT_EQ(values(y), std::vector<double>(1000, 6));
  expect_error([&] { event.wait(current_stream(lazy[0])); }, ErrorKind::Device, "eventreg");
  expect_error([&] { event.wait(current_stream(lazy[0])); }, ErrorKind::Device, "lazyreg");
  event.synchronize();
  Event timed(first[0], true), plain(first[0]);
  timed.record(here);
  plain.record(here);
  here.synchronize();
  expect_error([&] { timed.elapsed_until(plain); }, ErrorKind::Runtime, "");
}

TEST(OpenRegStreams, AnEventDroppedWhilePendingIsWaitedFor) {
  for (const char* mode : {"thread", "lazy", "random"}) {
    const OpenReg device("eventreg", {{"mode", mode}, {"devices", "1"}});
    const Stream a = device.stream(0), b = device.stream(0);
    for (int i = 0; i < 20; ++i) {
      Tensor x, y;
      {
        const StreamGuard guard(a);
        x = filled(device[0], 500, i) + 1;
        Event event(device[0]);
        event.record(a);
        event.wait(b);
      }
      {
        const StreamGuard guard(b);
        y = x * 2;
        b.synchronize();
        EXPECT_EQ(values(y)[499], 2 * (i + 1)) << mode;
      }
    }
  }
}

TEST(OpenRegStreams, WhatIsCurrentBelongsToTheThread) {
  const OpenReg device("currentreg", {{"mode", "thread"}, {"devices", "2"}});
  std::latch ready(4);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      const int index = number % 2;
      const Stream stream = device.stream(index);
      set_current_stream(stream);
      set_current_device(device[index]);
      ready.arrive_and_wait();
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(resolved(Device(stream.device.backend)), device[index]);
        EXPECT_EQ(current_stream(Device(stream.device.backend)), stream);
        const Tensor x = full({64}, number, TensorOptions(Device(stream.device.backend)).dtype(kFloat32));
        EXPECT_EQ(x.device(), device[index]);
        EXPECT_EQ(values(x + i), std::vector<double>(64, number + i));
        const DeviceGuard other(device[1 - index]);
        EXPECT_EQ(current_stream(Device(stream.device.backend)).id, 0u);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(resolved(Device(device[0].backend)).index, 0);
  for (const int index : {2, 100})
    expect_error([&] { set_current_device(device[index]); }, ErrorKind::Device, "there is no device");
}

TEST(OpenRegStreams, AHundredOperatorsWaitForNothingAndReadingWaitsOnce) {
  for (const char* mode : {"thread", "lazy", "random"}) {
    const OpenReg device("waitreg", {{"mode", mode}, {"devices", "1"}});
    const auto waits =
        Dispatcher::singleton().find_schema_or_throw_full("openreg::waits").typed<int64_t(const Tensor&)>();
    std::vector<double> numbers(64);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i) / 16 - 2;
    Tensor host = on(kCPU, numbers), x = host.to(device[0]);
    synchronize_device(device[0]);
    const int64_t before = waits.call(x);
    for (int i = 0; i < 25; ++i) {
      for (Tensor* t : {&x, &host}) *t = (*t * 1.01).tanh() + t->abs().sqrt();
    }
    EXPECT_EQ(waits.call(x), before) << mode;
    EXPECT_EQ(values(x), values(host)) << mode;
    EXPECT_EQ(waits.call(x), before + 1) << mode;
  }
}

TEST(OpenRegStreams, AWrongOrderOfStreamsShows) {
  const auto copied = [](const OpenReg& device, bool waits) {
    const Stream a = device.stream(0), b = device.stream(0);
    Tensor x, y = filled(device[0], 100, 0);
    {
      const StreamGuard guard(a);
      x = filled(device[0], 100, 0);
      a.synchronize();
      for (int i = 0; i < 4; ++i) x.add_(0.25);
    }
    current_stream(device[0]).synchronize();
    Event event(device[0]);
    event.record(a);
    if (waits) event.wait(b);
    {
      const StreamGuard guard(b);
      y.copy_(x);
    }
    b.synchronize();
    const double seen = values(y)[0];
    a.synchronize();
    return seen;
  };
  {
    const OpenReg lazy("orderreg", {{"mode", "lazy"}, {"devices", "1"}});
    EXPECT_EQ(copied(lazy, true), 1);
    EXPECT_EQ(copied(lazy, false), 0);
  }
  int wrong = 0;
  for (int seed = 0; seed < 12; ++seed) {
    const OpenReg random("orderreg", {{"mode", "random"}, {"seed", std::to_string(seed)}, {"devices", "1"}});
    EXPECT_EQ(copied(random, true), 1) << seed;
    wrong += copied(random, false) != 1;
  }
  EXPECT_GT(wrong, 0) << "some of the orders show it";
}

}  // namespace
}  // namespace tenon
