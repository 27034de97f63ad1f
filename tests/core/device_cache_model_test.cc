// DeviceCache against its model, and what the model must find: the cache with one planted fault after the
// other. TENON_ALLOCATOR_SEEDS and TENON_ALLOCATOR_FIRST_SEED choose other seeds than the usual ones.
#include "tests/core/device_cache_model.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tenon/core/device_cache_impl.h"
#include "tests/counts.h"

namespace tenon {
namespace {

using testing::DeviceCacheModel;

constexpr int kSteps = 2000;
// Sanitizers take ten times as long.
#ifdef TENON_EXACT_ALLOCATIONS
constexpr int kSeeds = 30;
#else
constexpr int kSeeds = 300;
#endif

struct Planted {
  static inline CacheFault fault = CacheFault::None;
  static bool planted(CacheFault f) noexcept { return f == fault; }
};

TEST(DeviceCacheModel, HoldsForEverySeed) {
  const int first = testing::count_of("TENON_ALLOCATOR_FIRST_SEED", 0);
  const int seeds = testing::count_of("TENON_ALLOCATOR_SEEDS", kSeeds);
  for (int seed = first; seed < first + seeds; ++seed) {
    DeviceCacheModel<DeviceCache> model(static_cast<uint64_t>(seed));
    const std::string failure = model.run(kSteps);
    if (failure.empty()) continue;
    // Every rule is checked after every step, so no shorter prefix of these steps fails.
    DeviceCacheModel<DeviceCache> again(static_cast<uint64_t>(seed));
    again.keeps_log = true;
    again.run(model.step_reached());
    const size_t shown = std::min<size_t>(again.log().size(), 60);
    FAIL() << "seed " << seed << ", " << failure << "\nThe steps before:\n"
           << fmt::format("{}", fmt::join(again.log().end() - static_cast<ptrdiff_t>(shown),
                                          again.log().end(), "\n"));
  }
}

TEST(DeviceCacheModel, ReachesWhatItIsToCheck) {
  int64_t refusals = 0, retries = 0, waits = 0, oversize = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    DeviceCacheModel<DeviceCache> model(seed);
    model.run(kSteps);
    const MemoryStats stats = model.stats();
    refusals += stats.num_ooms;
    retries += stats.num_alloc_retries;
    waits += stats.num_sync_all_streams;
    oversize += stats.oversize_allocations.allocated;
  }
  for (const int64_t count : {refusals, retries, waits, oversize}) EXPECT_GT(count, 50);
}

struct PlantedFault {
  const char* name;
  CacheFault fault;
};
void PrintTo(const PlantedFault& planted, std::ostream* out) { *out << planted.name; }

class DeviceCacheFault : public ::testing::TestWithParam<PlantedFault> {};

TEST_P(DeviceCacheFault, IsFoundByTheModel) {
  Planted::fault = GetParam().fault;
  std::string found;
  for (uint64_t seed = 0; seed < 40 && found.empty(); ++seed) {
    DeviceCacheModel<BasicDeviceCache<Planted>> model(seed);
    found = model.run(kSteps);
    if (!found.empty()) found = fmt::format("seed {}, {}", seed, found);
  }
  Planted::fault = CacheFault::None;
  EXPECT_FALSE(found.empty());
  RecordProperty("found", found);
  if (std::getenv("TENON_ALLOCATOR_VERBOSE")) fmt::print("{}: {}\n", GetParam().name, found);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceCacheFault,
                         ::testing::Values(PlantedFault{"NoEvent", CacheFault::NoEvent},
                                           PlantedFault{"FirstStreamOnly", CacheFault::FirstStreamOnly},
                                           PlantedFault{"FreeingStream", CacheFault::FreeingStream},
                                           PlantedFault{"OtherStreamsPool", CacheFault::OtherStreamsPool},
                                           PlantedFault{"NoMerge", CacheFault::NoMerge},
                                           PlantedFault{"LostSplit", CacheFault::LostSplit},
                                           PlantedFault{"ForgottenRest", CacheFault::ForgottenRest},
                                           PlantedFault{"UncountedSplit", CacheFault::UncountedSplit},
                                           PlantedFault{"ReturnsUnwaited", CacheFault::ReturnsUnwaited},
                                           PlantedFault{"ReturnsAwaiting", CacheFault::ReturnsAwaiting},
                                           PlantedFault{"NoSearchAfterWait", CacheFault::NoSearchAfterWait},
                                           PlantedFault{"WaitsInCapture", CacheFault::WaitsInCapture},
                                           PlantedFault{"ReturnsCaptured", CacheFault::ReturnsCaptured},
                                           PlantedFault{"UnmapsTooMuch", CacheFault::UnmapsTooMuch},
                                           PlantedFault{"KeepsRange", CacheFault::KeepsRange}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tenon
