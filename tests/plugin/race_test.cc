// Devices that are used by several threads while they are loaded and unloaded; for ThreadSanitizer, too.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/core/storage.h"
#include "tenon/plugin/load.h"

namespace tenon {
namespace {

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
