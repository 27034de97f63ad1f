// Worked example 14: a freed block serves the next request without the device, empty_cache returns only what
// is free, and the figures that show it.
#include <gtest/gtest.h>

#include "tenon/core/storage.h"
#include "tests/core/cached_device.h"

namespace tenon {
namespace {

using testing::Cached;
using testing::kMiB;
using testing::SimulatedDevice;

TEST(Worked14, AFreedBlockIsReusedAndEmptyCacheReturnsOnlyWhatIsFree) {
  Cached cached;
  const Device device = SimulatedDevice::device();
  const auto figure = [&](const std::string& name) {
    for (const auto& [known, value] : named_memory_stats(cached.allocator.memory_stats(device))) {
      if (known == name) return std::get<int64_t>(value);
    }
    ADD_FAILURE() << name;
    return int64_t{-1};
  };
  const auto kept = [&] {
    return figure("reserved_bytes.all.current") - figure("allocated_bytes.all.current");
  };

  Address first = 0;
  {
    const Storage block = Storage::allocate(12 * kMiB, device);
    first = block.address();
    EXPECT_EQ(kept(), 0);
  }
  EXPECT_EQ(kept(), static_cast<int64_t>(12 * kMiB));
  const Storage block = Storage::allocate(12 * kMiB, device);
  EXPECT_EQ(block.address(), first);
  EXPECT_EQ(figure("num_device_alloc"), 1);

  (void)Storage::allocate(20 * kMiB, device);
  EXPECT_EQ(kept(), static_cast<int64_t>(20 * kMiB));
  EXPECT_EQ(cached.allocator.empty_cache(device), 20 * kMiB);
  EXPECT_EQ(kept(), 0);
  EXPECT_EQ(figure("allocated_bytes.all.current"), static_cast<int64_t>(12 * kMiB)) << "what is in use stays";
}

}  // namespace
}  // namespace tenon
