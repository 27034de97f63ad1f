#include "tenon/plugin/load.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>

#include "tenon/core/crash_note.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tenon/plugin/host.h"
#include "tenon/plugin/registry.h"
#include "tenon/plugin/status.h"

namespace tenon {
namespace plugin {
namespace {

void at_exit() {
  // Nothing is locked: a thread that holds the lock may never run again.
  for (Loaded* l : registry().loaded) l->device->shut_down();
}
void in_child() {
  for (Loaded* l : registry().loaded) l->device->note_fork();
}

/// `T` as the plug-in gave it; what it does not have is zero.
template <class T>
T completed(const T& given) {
  T whole{};
  std::memcpy(&whole, &given, std::min<size_t>(given.struct_size, sizeof whole));
  whole.struct_size = sizeof whole;
  return whole;
}

/// Throws unless the table has all that a device must have.
void check_required(const TenonDeviceTable& t, const std::string& path) {
  const std::pair<const char*, bool> required[] = {{"device_count", t.device_count},
                                                   {"properties", t.properties},
                                                   {"raw_alloc", t.raw_alloc},
                                                   {"raw_free", t.raw_free},
                                                   {"copy", t.copy},
                                                   {"stream_new", t.stream_new},
                                                   {"stream_free", t.stream_free},
                                                   {"stream_sync", t.stream_sync},
                                                   {"event_new", t.event_new},
                                                   {"event_free", t.event_free},
                                                   {"event_record", t.event_record},
                                                   {"event_sync", t.event_sync}};
  std::vector<std::string> missing;
  for (const auto& [name, there] : required) {
    if (!there) missing.emplace_back(name);
  }
  TENON_CHECK(missing.empty(), Device,
              fmt::format("load_device: '{}' lacks required functions: {}", path, fmt::join(missing, ", ")));
}

/// Throws for a table that has some functions of those that are of use together only.
void check_groups(const TenonDeviceTable& t, const std::string& path) {
  using Group = std::vector<std::pair<const char*, bool>>;
  const Group groups[] = {
      {{"host_alloc", t.host_alloc}, {"host_free", t.host_free}},
      {{"reserve", t.reserve}, {"map", t.map}, {"unmap", t.unmap}, {"unreserve", t.unreserve}},
      {{"capture_begin", t.capture_begin},
       {"capture_end", t.capture_end},
       {"capture_launch", t.capture_launch},
       {"capture_free", t.capture_free}},
      {{"memory_export", t.memory_export},
       {"memory_import", t.memory_import},
       {"memory_forget", t.memory_forget}}};
  for (const Group& group : groups) {
    std::vector<std::string> there, missing;
    for (const auto& [name, is_there] : group) (is_there ? there : missing).emplace_back(name);
    TENON_CHECK(there.empty() || missing.empty(), Device,
                fmt::format("load_device: '{}' has {}, but lacks {}: these functions go together", path,
                            fmt::join(there, ", "), fmt::join(missing, ", ")));
  }
}

/// Throws for a struct that a plug-in left without its size.
template <class T>
void check_size(const T& given, const char* name, const std::string& path) {
  TENON_CHECK(
      given.struct_size != 0, Device,
      fmt::format("load_device: '{}' leaves {}.struct_size 0, so nothing of it can be read; set it to "
                  "sizeof({})",
                  path, name, name));
}

/// The key of a device that is called otherwise than its plug-in proposes: from its name.
std::string key_from_name(std::string_view name) {
  std::string key;
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
    } else {
      key += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      upper = false;
    }
  }
  return key;
}

/// The plug-in's own instance, until a device owns it.
struct Instance {
  TenonPlugin plugin{};
  ~Instance() {
    try {
      if (plugin.close) plugin.close(plugin.self);
    } catch (...) {
      // Loading has failed already, and says why.
    }
  }
};

void open_instance(Instance& instance, TenonPluginV1 entry, const std::string& path,
                   const DeviceOptions& options) {
  std::vector<TenonOption> pairs;
  for (const auto& [name, value] : options) pairs.push_back({name.c_str(), value.c_str()});
  TenonOptions given{};
  given.struct_size = sizeof given;
  given.num_options = static_cast<uint32_t>(pairs.size());
  given.options = pairs.data();
  TenonPlugin plugin{};
  plugin.struct_size = sizeof plugin;
  TenonStatus* status = nullptr;
  try {
    status = entry(&host_table(), &given, &plugin);
  } catch (...) {
    throw_error(ErrorKind::Device, fmt::format("load_device: '{}': tenon_plugin_v1 let an exception out: {}",
                                               path, text_of_current_exception()));
  }
  if (status) raise(status, fmt::format("load_device: '{}'", path));
  check_size(plugin, "TenonPlugin", path);
  instance.plugin = completed(plugin);
  TENON_CHECK(
      plugin.needs_minor <= TENON_ABI_MINOR, Device,
      fmt::format("load_device: '{}' is built for Tenon's plug-in interface {}.{}, and this Tenon has {}.{}",
                  path, TENON_ABI_MAJOR, plugin.needs_minor, TENON_ABI_MAJOR, TENON_ABI_MINOR));
  TENON_CHECK(instance.plugin.name && instance.plugin.key && instance.plugin.table, Device,
              fmt::format("load_device: '{}' gives no name, key or table", path));
  check_size(*plugin.table, "TenonDeviceTable", path);
}

/// Undoes a registration of a device that did not come to its end.
class PendingDevice {
 public:
  PendingDevice(std::string_view name, std::string_view key, const std::string& owner)
      : backend_(register_device(name, key, owner)) {}
  ~PendingDevice() {
    if (kept_) return;
    detach(backend_);
    release_device(backend_);
  }
  PendingDevice(const PendingDevice&) = delete;
  PendingDevice& operator=(const PendingDevice&) = delete;
  Backend backend() const noexcept { return backend_; }
  void keep() noexcept { kept_ = true; }

 private:
  Backend backend_;
  bool kept_ = false;
};

/// What of a device's missing operators runs on host copies.
FallbackPolicy fallback_policy(const TenonRegistrar& wanted) {
  FallbackPolicy policy{wanted.falls_back ? FallbackPolicy::Kind::All : FallbackPolicy::Kind::Listed};
  for (const auto& [op, on] : wanted.fallbacks) (on ? policy.listed : policy.blocked).push_back(op);
  return policy;
}

Device load(const std::string& path, std::string_view wanted_name, const DeviceOptions& options) {
  TENON_CHECK(path.find('\0') == std::string::npos, Value,
              fmt::format("load_device: '{}' and a NUL behind it is no path", path.c_str()));
  std::error_code unreadable;
  // Opening a pipe would wait for a writer.
  if (std::filesystem::exists(path, unreadable) && !std::filesystem::is_regular_file(path, unreadable))
    throw FileError(fmt::format("load_device: '{}' is no file", path));
  check_library_file(path);
  const WaitScope waiting;
  const std::lock_guard alone(loading());
  auto loaded = std::make_unique<Loaded>();
  CrashNote note("load_device", path, "what its library runs when it is opened");
  loaded->library.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!loaded->library) throw FileError(fmt::format("load_device: {}", dlerror()));
  const auto entry = reinterpret_cast<TenonPluginV1>(dlsym(loaded->library.get(), "tenon_plugin_v1"));
  TENON_CHECK(
      entry, Device,
      fmt::format(
          "load_device: '{}' does not export tenon_plugin_v1: it is no device, or one for another major "
          "version of the interface",
          path));
  Instance instance;
  note.set_step("tenon_plugin_v1");
  open_instance(instance, entry, path, options);
  const TenonPlugin& plugin = instance.plugin;
  const TenonDeviceTable table = completed(*plugin.table);
  check_required(table, path);
  check_groups(table, path);

  note.set_step("device_count, properties or register_kernels");
  const std::string name(wanted_name.empty() ? plugin.name : wanted_name);
  PendingDevice pending(name, name == plugin.name ? plugin.key : key_from_name(name), path);
  loaded->device = std::make_unique<PluginDevice>(pending.backend(), name, path, plugin, table);
  TenonRegistrar wanted;
  if (plugin.register_kernels)
    loaded->device->call("registering kernels", 0, plugin.register_kernels, &wanted);
  set_device_runtime(pending.backend(), loaded->device.get());
  loaded->allocator = std::make_unique<CachingAllocator>(pending.backend(), *loaded->device);
  set_allocator(pending.backend(), loaded->allocator.get());
  set_cpu_fallback(pending.backend(), fallback_policy(wanted));
  if (loaded->device->has_pointwise())
    set_pointwise_device(pending.backend(), &PluginDevice::run_pointwise, loaded->device.get());
  loaded->registrations.commit(wanted, *loaded->device);
  pending.keep();
  instance.plugin.close = nullptr;

  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  static std::once_flag watched;
  std::call_once(watched, [] { pthread_atfork(nullptr, nullptr, &in_child); });
  // Exit handlers run last first: what the plug-in's driver registered while it was loaded runs after this.
  std::atexit(&at_exit);
  all.loaded.push_back(loaded.release());
  return Device(pending.backend());
}

void load_missing(std::string_view name) {
  const std::string file = file_of(name);
  if (file.empty()) return;
  const WaitScope waiting;
  const std::lock_guard alone(loading());
  if (!find_backend(name)) load(file, name, {});  // another thread may have been first
}
// A second copy of the library finds the first one's entry, which it leaves: it may be closed again.
void (*g_nobody)(std::string_view) = nullptr;
const bool g_loads_missing = detail::load_missing_device.compare_exchange_strong(g_nobody, &load_missing);

}  // namespace

Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

std::recursive_mutex& loading() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

void detach(Backend backend) noexcept {
  set_pointwise_device(backend, nullptr, nullptr);
  remove_cpu_fallback(backend);
  set_device_runtime(backend, nullptr);
  set_allocator(backend, nullptr);
}

}  // namespace plugin

Device load_device(const std::string& path, std::string_view name, const DeviceOptions& options) {
  return plugin::load(path, name, options);
}

Device find_device(std::string_view name) {
  if (!find_backend(name)) plugin::load_missing(name);
  if (const auto backend = find_backend(name)) return Device(*backend);
  throw_error(
      ErrorKind::Value,
      fmt::format("find_device: no device '{}' is loaded, and there is no libtenon_{}.so or {}.so in {}",
                  name, name, name, fmt::join(plugin::search_folders(), ", ")));
}

std::vector<LoadedDevice> loaded_devices() {
  plugin::Registry& all = plugin::registry();
  const std::lock_guard lock(all.mutex);
  std::vector<LoadedDevice> list;
  for (const plugin::Loaded* l : all.loaded) {
    list.push_back(
        {l->device->backend(), l->device->device_name(), l->device->path(), l->device->description()});
  }
  return list;
}

DeviceClaims device_claims(Device device) {
  plugin::Registry& all = plugin::registry();
  const std::lock_guard lock(all.mutex);
  for (const plugin::Loaded* l : all.loaded) {
    if (l->device->backend() != device.backend) continue;
    const TenonDeviceProperties p = l->device->properties(device.index);
    DeviceClaims claims{.description = p.description ? p.description : "",
                        .total_memory = p.total_memory,
                        .granularity = l->device->granularity(),
                        .map_granularity = l->device->map_granularity(),
                        .dtypes = {},
                        .pointwise = l->device->has_pointwise(),
                        .ops_printed = p.ops_printed,
                        .dlpack_type = p.dlpack_type};
    for (uint64_t i = 0; p.dtypes && i < p.num_dtypes; ++i)
      claims.dtypes.push_back(static_cast<DType>(p.dtypes[i]));
    return claims;
  }
  throw_error(ErrorKind::Device,
              fmt::format("get_device_properties: {} is no device of a plug-in", to_string(device)));
}

std::pair<uint64_t, uint64_t> device_memory_info(Device device) {
  plugin::Registry& all = plugin::registry();
  const std::lock_guard lock(all.mutex);
  for (const plugin::Loaded* l : all.loaded) {
    if (l->device->backend() != device.backend) continue;
    const DeviceMemory::Info info = l->device->info(device);
    return {info.free, info.total};
  }
  throw_error(ErrorKind::Device,
              fmt::format("mem_get_info: {} is no device of a plug-in", to_string(device)));
}

}  // namespace tenon
