// A simulated device with its caching allocator, for tests of both and of what they show.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "tenon/core/caching_allocator.h"
#include "tenon/core/error.h"
#include "tests/core/simulated_device.h"
#include "tests/core/testing.h"

namespace tenon::testing {

/// A device of 64 MiB and its allocator, which also serves the storages of its backend.
struct Cached {
  explicit Cached(const CacheOptions& options = {}, size_t limit = 64 * kMiB)
      : device(limit), allocator(SimulatedDevice::backend(), device, options) {
    set_allocator(SimulatedDevice::backend(), &allocator);
  }
  ~Cached() {
    EXPECT_EQ(device.failure, "");
    set_allocator(SimulatedDevice::backend(), nullptr);
  }

  static Stream stream(uint64_t id = 0) { return SimulatedDevice::stream(id); }
  Address allocate(size_t nbytes, uint64_t stream_id = 0) {
    return allocator.allocate(nbytes, stream(stream_id));
  }
  void free(Address address, uint64_t stream_id = 0) { allocator.deallocate(address, 1, stream(stream_id)); }
  void record(Address address, uint64_t user) {
    allocator.record_stream(address, SimulatedDevice::device(), stream(user));
  }
  /// Queues work on a stream that uses a block.
  void use(Address address, uint64_t stream_id) { device.use(stream_id, address, 1, 0, 0); }
  MemoryStats stats() const { return allocator.memory_stats(SimulatedDevice::device()); }
  size_t empty() { return allocator.empty_cache(SimulatedDevice::device()); }
  size_t takes() const { return device.takes; }

  SimulatedDevice device;
  CachingAllocator allocator;
};

inline std::string message_of(ErrorKind kind, const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    return e.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tenon::testing
