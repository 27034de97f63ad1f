#include "tenon/core/caching_allocator.h"

#include <fmt/core.h>

#include <cstdlib>
#include <optional>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"

namespace tenon {
namespace {

/// The value of an environment variable as a number from 0 to `most`; nothing if it is not set.
std::optional<uint64_t> number_from_environment(const char* name, uint64_t most) {
  const char* text = std::getenv(name);
  if (!text || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const uint64_t value = std::strtoull(text, &end, 0);
  TENON_CHECK(*end == '\0' && *text != '-' && value <= most, Value,
              fmt::format("{}={}: expected a number from 0 to {}", name, text, most));
  return value;
}

}  // namespace

CacheOptions cache_options_from_environment() {
  CacheOptions options;
  options.expandable = number_from_environment("TENON_EXPANDABLE_SEGMENTS", 1).value_or(0) == 1;
  if (const auto most = number_from_environment("TENON_MAX_SPLIT_SIZE_MB", uint64_t{1} << 26))
    options.max_split_size = static_cast<size_t>(*most) << 20;
  if (const auto fill = number_from_environment("TENON_MEMORY_FILL", 255))
    options.fill = static_cast<int>(*fill);
  return options;
}

CachingAllocator::CachingAllocator(Backend backend, DeviceMemory& memory, const CacheOptions& options)
    : name_(backend_name(backend)), memory_(memory) {
  const DeviceRuntime* runtime = device_runtime(backend);
  TENON_CHECK(runtime, Device,
              fmt::format("CachingAllocator: device {} has no streams; set its DeviceRuntime first", name_));
  for (int index = 0; index < runtime->device_count(); ++index) {
    const Device device(backend, static_cast<int8_t>(index));
    caches_.push_back(std::make_unique<DeviceCache>(fmt::format("{} allocator", to_string(device)), device,
                                                    memory, options));
  }
}

CachingAllocator::CachingAllocator(std::string name, DeviceMemory& memory, const CacheOptions& options)
    : name_(std::move(name)), memory_(memory) {
  caches_.push_back(std::make_unique<DeviceCache>(fmt::format("{} allocator", name_), kCPU, memory, options));
}

void CachingAllocator::throw_no_device(Device device) const {
  throw_error(ErrorKind::Device, fmt::format("{} allocator: there is no device {}; backend {} has {}", name_,
                                             to_string(device), name_, caches_.size()));
}

void CachingAllocator::copy(Address to, Address from, size_t nbytes, Stream stream) {
  memory_.copy(to, from, nbytes, stream);
}

int64_t CachingAllocator::live_storages() const {
  int64_t live = empty_.load(std::memory_order_relaxed);
  for (const auto& cache : caches_) live += cache->stats().allocation.current;
  return live;
}

int64_t CachingAllocator::own_events(Backend backend) const {
  size_t events = 0;
  for (const auto& cache : caches_) events += cache->events(backend);
  return static_cast<int64_t>(events);
}

void CachingAllocator::drop_events(Backend backend) noexcept {
  for (const auto& cache : caches_) cache->drop_events(backend);
}

}  // namespace tenon
