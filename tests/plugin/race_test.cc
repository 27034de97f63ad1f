// Devices that are used by several threads while they are loaded and unloaded; for ThreadSanitizer, too.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/core/storage.h"
#include "tenon/dispatch/library.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/ops/tensor_operators.h"
#include "tests/plugin/testing.h"

namespace tenon {
namespace {

using namespace tenon::testing;

/// Whatever can be done with a device that may go at any moment: it works, or is refused.
void use(const char* name, int i) {
  try {
    const auto backend = find_backend(name);
    if (!backend) return;
    const Device device(*backend, static_cast<int8_t>(i % 2));
    Storage storage = Storage::allocate(static_cast<size_t>(i % 3) << 12, device);
    if (i % 5 == 0) storage.resize(1 << 14);
    if (i % 4 == 0) synchronize_device(device);
    if (i % 7 == 0) {
      Event event(device);
      event.record(current_stream(device));
      event.synchronize();
    }
    if (i % 11 == 0) (void)device_memory_info(device);
  } catch (const Error& e) {
    EXPECT_TRUE(e.kind() == ErrorKind::Device || e.kind() == ErrorKind::OutOfMemory) << e.what();
  }
}

TEST(UnloadDevice, RacesWithUse) {
  std::atomic<bool> stop{false}, pause{false};
  std::vector<std::thread> users;
  for (int t = 0; t < 3; ++t)
    users.emplace_back([&, t] {
      for (int i = t; !stop; ++i) {
        if (pause)
          std::this_thread::yield();
        else
          use("racing", i);
      }
    });
  int refused = 0;
  for (int round = 0; round < 10; ++round) {
    load_device(TENON_OPENREG, "racing", {{"mode", round % 2 ? "thread" : "sync"}, {"memory", "1048576"}});
    // Most attempts find a call of others; the last ones meet those that were under way.
    int attempts = 0;
    for (bool gone = false; !gone;) {
      pause = ++attempts > 20;
      try {
        unload_device("racing");
        gone = true;
      } catch (const Error& e) {
        ASSERT_EQ(e.kind(), ErrorKind::Runtime) << e.what();
        ++refused;
        std::this_thread::yield();
      }
    }
    EXPECT_FALSE(find_backend("racing"));
    pause = false;
  }
  stop = true;
  for (std::thread& user : users) user.join();
  RecordProperty("refused", refused);
}

/// What calls of operators may meet while their device and its kernels come and go.
bool may_happen(const Error& e) {
  return e.kind() == ErrorKind::Device || e.kind() == ErrorKind::OutOfMemory ||
         e.kind() == ErrorKind::NotImplemented;
}

/// Operators on a device that may go at any moment: a result is right, or the call is refused.
void compute(const char* name, int i) {
  try {
    const auto backend = find_backend(name);
    if (!backend) return;
    const Device device(*backend, static_cast<int8_t>(i % 2));
    const Tensor x = filled(device, 8 + i % 3, i % 100), y = x.abs() + 1;
    EXPECT_EQ(values(y)[7], i % 100 + 1);
    const Tensor twice = Dispatcher::singleton()
                             .find_schema_or_throw_full("raceops::twice")
                             .typed<Tensor(const Tensor&)>()
                             .call(y);
    EXPECT_EQ(values(twice)[7], 2 * (i % 100 + 1));
  } catch (const Error& e) {
    EXPECT_TRUE(may_happen(e)) << e.what();
  }
}

Tensor twice(const Tensor& x) { return x + x; }

/// Scenario S19: a real device is loaded, used and unloaded while threads allocate and free its memory, call
/// its operators, its own kernels and stubs among them, and register and remove kernels for its key.
TEST(UnloadDevice, RacesWithCallsAndRegistrations) {
  Library declared(Library::Kind::Def, "raceops", "", SourceLocation::here());
  declared.def("twice(Tensor x) -> Tensor");
  Library on_host(Library::Kind::Impl, "raceops", "CPU", SourceLocation::here());
  on_host.impl("twice", &twice);
  std::atomic<bool> stop{false}, pause{false};
  std::vector<std::thread> users;
  const auto start = [&](auto f) {
    users.emplace_back([&stop, &pause, f] {
      for (int i = 0; !stop; ++i) {
        if (pause)
          std::this_thread::yield();
        else
          f(i);
      }
    });
  };
  start([](int i) { compute("busy", i); });
  start([](int i) { compute("busy", i + 50); });
  start([](int i) { use("busy", i); });
  start([](int) {
    Library kernels(Library::Kind::Impl, "raceops", "Busy", SourceLocation::here());
    kernels.impl("twice", &twice);
    Library others(Library::Kind::Impl, "aten", "Busy", SourceLocation::here());
    others.impl(
        "neg", +[](const Tensor& x) { return x * -1; });
  });
  for (int round = 0; round < 8; ++round) {
    const char* const modes[] = {"thread", "sync", "lazy", "random"};
    load_device(TENON_OPENREG, "busy", {{"mode", modes[round % 4]}, {"memory", "4194304"}});
    int attempts = 0;
    for (bool gone = false; !gone;) {
      pause = ++attempts > 20;
      try {
        unload_device("busy");
        gone = true;
      } catch (const Error& e) {
        ASSERT_EQ(e.kind(), ErrorKind::Runtime) << e.what();
        std::this_thread::yield();
      }
    }
    pause = false;
  }
  stop = true;
  for (std::thread& user : users) user.join();
  load_device(TENON_OPENREG, "busy", {});
  EXPECT_EQ(values(filled(find_device("busy"), 4, -3).abs()), std::vector<double>(4, 3));
  unload_device("busy");
}

TEST(LoadDevice, InSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      const std::string name = "racer" + std::to_string(t);
      for (int round = 0; round < 5; ++round) {
        const Device device = load_device(TENON_OPENREG, name, {{"devices", "1"}, {"memory", "1048576"}});
        EXPECT_EQ(backend_name(device.backend), name);
        (void)Storage::allocate(100, device);
        unload_device(name);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tenon
