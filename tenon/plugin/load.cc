#include "tenon/plugin/load.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <pthread.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>

#include "tenon/core/caching_allocator.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/ops/fallback/cpu_fallback.h"
#include "tenon/plugin/host.h"
#include "tenon/plugin/registrar.h"

namespace tenon {
namespace plugin {
namespace {

struct CloseLibrary {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};
using LibraryHandle = std::unique_ptr<void, CloseLibrary>;

/// A device and what came with it.
struct Loaded {
  LibraryHandle library;
  std::unique_ptr<PluginDevice> device;
  std::unique_ptr<CachingAllocator> allocator;
  Registrations registrations;
};

/// All that were loaded, never destroyed: tensors may outlive static destruction.
struct Registry {
  std::mutex mutex;
  std::vector<Loaded*> loaded;
};
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

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
    if (plugin.close) plugin.close(plugin.self);
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
    throw_error(ErrorKind::Device,
                fmt::format("load_device: '{}': tenon_plugin_v1 let an exception out", path));
  }
  if (status) raise(status, fmt::format("load_device: '{}'", path));
  instance.plugin = completed(plugin);
  TENON_CHECK(
      plugin.needs_minor <= TENON_ABI_MINOR, Device,
      fmt::format("load_device: '{}' is built for Tenon's plug-in interface {}.{}, and this Tenon has {}.{}",
                  path, TENON_ABI_MAJOR, plugin.needs_minor, TENON_ABI_MAJOR, TENON_ABI_MINOR));
  TENON_CHECK(instance.plugin.name && instance.plugin.key && instance.plugin.table, Device,
              fmt::format("load_device: '{}' gives no name, key or table", path));
}

/// Undoes a registration of a device that did not come to its end.
class PendingDevice {
 public:
  PendingDevice(std::string_view name, std::string_view key, const std::string& owner)
      : backend_(register_device(name, key, owner)) {}
  ~PendingDevice() {
    if (kept_) return;
    set_pointwise_device(backend_, nullptr, nullptr);
    remove_cpu_fallback(backend_);
    set_device_runtime(backend_, nullptr);
    set_allocator(backend_, nullptr);
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

/// Held while a device is loaded: plug-ins are opened one at a time.
std::recursive_mutex& loading() {
  static auto& mutex = *new std::recursive_mutex;
  return mutex;
}

/// What of a device's missing operators runs on host copies.
FallbackPolicy fallback_policy(const TenonRegistrar& wanted) {
  FallbackPolicy policy{wanted.falls_back ? FallbackPolicy::Kind::All : FallbackPolicy::Kind::Listed};
  for (const auto& [op, on] : wanted.fallbacks) (on ? policy.listed : policy.blocked).push_back(op);
  return policy;
}

Device load(const std::string& path, std::string_view wanted_name, const DeviceOptions& options) {
  const std::lock_guard alone(loading());
  auto loaded = std::make_unique<Loaded>();
  loaded->library.reset(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  TENON_CHECK(loaded->library, Device, fmt::format("load_device: {}", dlerror()));
  const auto entry = reinterpret_cast<TenonPluginV1>(dlsym(loaded->library.get(), "tenon_plugin_v1"));
  TENON_CHECK(
      entry, Device,
      fmt::format(
          "load_device: '{}' does not export tenon_plugin_v1: it is no device, or one for another major "
          "version of the interface",
          path));
  Instance instance;
  open_instance(instance, entry, path, options);
  const TenonPlugin& plugin = instance.plugin;
  const TenonDeviceTable table = completed(*plugin.table);
  check_required(table, path);

  const std::string name(wanted_name.empty() ? plugin.name : wanted_name);
  PendingDevice pending(name, name == plugin.name ? plugin.key : key_from_name(name), path);
  loaded->device = std::make_unique<PluginDevice>(pending.backend(), name, path, plugin, table);
  TENON_CHECK(loaded->device->device_count() >= 1, Device,
              fmt::format("load_device: '{}' has {} devices", path, loaded->device->device_count()));
  TenonRegistrar wanted;
  if (plugin.register_kernels) loaded->device->call("registering kernels", plugin.register_kernels, &wanted);
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
  if (all.loaded.empty()) {
    std::atexit(&at_exit);
    pthread_atfork(nullptr, nullptr, &in_child);
  }
  all.loaded.push_back(loaded.release());
  return Device(pending.backend());
}

/// The folders in which devices are looked for by name.
std::vector<std::string> search_folders() {
  std::vector<std::string> folders;
  const char* listed = std::getenv("TENON_PLUGIN_PATH");
  std::string_view rest = listed ? listed : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&search_folders), &own) && own.dli_fname)
    folders.push_back((std::filesystem::path(own.dli_fname).parent_path() / "tenon" / "plugins").string());
  return folders;
}

/// The file of a device that is looked for by its name; empty where there is none.
std::string file_of(std::string_view name) {
  const auto in_names = [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; };
  if (name.empty() || !std::ranges::all_of(name, in_names)) return {};
  for (const std::string& folder : search_folders()) {
    // A relative folder would depend on where the program happens to run.
    if (!folder.starts_with('/')) continue;
    for (const std::string& file :
         {fmt::format("{}/libtenon_{}.so", folder, name), fmt::format("{}/{}.so", folder, name)}) {
      if (std::filesystem::exists(file)) return file;
    }
  }
  return {};
}

void load_missing(std::string_view name) {
  const std::string file = file_of(name);
  if (file.empty()) return;
  const std::lock_guard alone(loading());
  if (!find_backend(name)) load(file, name, {});  // another thread may have been first
}
const bool g_loads_missing =
    (detail::load_missing_device.store(&load_missing, std::memory_order_release), true);

}  // namespace
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
    const char* description = l->device->properties(0).description;
    list.push_back(
        {l->device->backend(), l->device->device_name(), l->device->path(), description ? description : ""});
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
                        .dtypes = {},
                        .pointwise = l->device->has_pointwise(),
                        .ops_printed = p.ops_printed};
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
