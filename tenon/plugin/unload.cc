// Unloading devices.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tenon/dispatch/dispatcher.h"
#include "tenon/plugin/load.h"
#include "tenon/plugin/registry.h"

namespace tenon {
namespace plugin {
namespace {

Loaded& find_loaded(std::string_view name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (Loaded* l : all.loaded) {
    if (l->device->device_name() == name) return *l;
  }
  throw_error(ErrorKind::Value,
              fmt::format("unload_device: no device that is called '{}' was loaded from a plug-in", name));
}

std::string counted(int64_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// Calls f(allocator) for the pinned memory of every device: it may have been used with any.
template <class F>
void each_pinned(F&& f) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const Loaded* l : all.loaded) {
    if (CachingAllocator* pinned = l->device->pinned()) f(*pinned);
  }
}

/// The events of a device that caches of memory keep, which have no other owner.
int64_t events_of_caches(const Loaded& loaded) {
  const Backend backend = loaded.device->backend();
  int64_t events = loaded.allocator->own_events(backend);
  each_pinned([&](const CachingAllocator& pinned) { events += pinned.own_events(backend); });
  return events;
}

/// "3 storages (of tensors, those saved for backward included), 1 stream"; empty where nothing lives.
std::string what_lives(const Loaded& loaded) {
  const PluginDevice& device = *loaded.device;
  int64_t pinned = 0;
  if (const Allocator* allocator = loaded.device->pinned_memory())
    pinned = allocator->memory_stats(kCPU).allocation.current;
  std::vector<std::string> lives;
  if (const int64_t n = loaded.allocator->live_storages())
    lives.push_back(counted(n, "storage") + " (of tensors, those saved for backward included)");
  if (const size_t n = count_streams(device.backend()))
    lives.push_back(counted(static_cast<int64_t>(n), "stream"));
  if (const int64_t n = device.live_events() - events_of_caches(loaded); n > 0)
    lives.push_back(counted(n, "event"));
  if (pinned > 0) lives.push_back(counted(pinned, "block") + " of pinned memory");
  return fmt::format("{}", fmt::join(lives, ", "));
}

/// Returns the memory and the events that the cache keeps. What a failed device has is lost.
void empty_cache_of(const Loaded& loaded) {
  if (loaded.device->has_failed()) return;
  for (int i = 0; i < loaded.device->device_count(); ++i)
    loaded.allocator->empty_cache(Device(loaded.device->backend(), static_cast<int8_t>(i)));
  if (Allocator* pinned = loaded.device->pinned_memory()) pinned->empty_cache(kCPU);
  loaded.allocator->drop_events(loaded.device->backend());
  each_pinned([&](CachingAllocator& pinned) {
    if (pinned.own_events(loaded.device->backend()) == 0) return;
    pinned.empty_cache(kCPU);  // waits for the events of freed blocks
    pinned.drop_events(loaded.device->backend());
  });
}

/// How often calls of other threads may come between.
constexpr int kAttempts = 100;

void unload(std::string_view name) {
  const WaitScope waiting;
  const std::lock_guard alone(loading());
  Loaded& loaded = find_loaded(name);
  PluginDevice& device = *loaded.device;
  const Backend backend = device.backend();
  const auto check_unused = [&] {
    const std::string lives = what_lives(loaded);
    TENON_CHECK(lives.empty(), Runtime,
                fmt::format("unload_device: '{}' is in use: {}; drop them first", name, lives));
  };
  try {
    // Other threads notice nothing of it until all that can be counted is gone and no call of theirs runs.
    int attempts = 0;
    do {
      check_unused();
      TENON_CHECK(++attempts <= kAttempts, Runtime,
                  fmt::format("unload_device: '{}' is in use: other threads call it; stop them first", name));
      device.begin_unloading();
      check_unused();
    } while (!device.refuse_others());
    empty_cache_of(loaded);
    // Meanwhile another thread may have been given what was in the cache. From here on it would have to ask
    // the device, which refuses.
    check_unused();
  } catch (...) {
    device.keep_loaded();
    throw;
  }
  loaded.registrations.clear();
  detach(backend);
  {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    std::erase(all.loaded, &loaded);
    all.unloaded.push_back(&loaded);
  }
  const bool ended = device.end(forget_streams(backend));
  // Kernels that others have registered for the device wait for the next of its name.
  release_device(backend, Dispatcher::singleton().has_registrations(backend));
  if (ended) loaded.library.reset();
  device.throw_unreported();
}

}  // namespace
}  // namespace plugin

void unload_device(std::string_view name) { plugin::unload(name); }

}  // namespace tenon
