#include "tenon/core/stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"
#include "tenon/core/small_alloc.h"

namespace tenon {
namespace {

constinit std::atomic<DeviceRuntime*> g_runtimes[32] = {};

/// What is current on a thread.
struct Current {
  int8_t index[32] = {};
  std::vector<Stream>* streams = nullptr;  // those that are not the default ones, of which there are few
};
thread_local constinit Current t_current TENON_FAST_TLS;

/// The thread's list of streams, which goes when the thread ends. Whoever sets a stream after that (in the
/// destructor of another thread-local) makes a list that nobody frees.
std::vector<Stream>& thread_streams() {
  static thread_local const struct Owner {
    Owner() { t_current.streams = new std::vector<Stream>; }
    ~Owner() { delete std::exchange(t_current.streams, nullptr); }
  } owner;
  (void)owner;
  if (!t_current.streams) t_current.streams = new std::vector<Stream>;
  return *t_current.streams;
}

/// Every stream that was created: they live as long as the process.
struct AllStreams {
  std::mutex mutex;
  std::vector<Stream> streams;
};
AllStreams& all_streams() {
  static AllStreams& all = *new AllStreams;
  return all;
}

/// The runtime of a device that is not the host; throws where it has none.
DeviceRuntime& runtime_of(Device device, const char* what) {
  DeviceRuntime* runtime = device_runtime(device.backend);
  TENON_CHECK(runtime, Device,
              fmt::format("{}: device {} has no streams; its library sets no DeviceRuntime", what,
                          to_string(device)));
  return *runtime;
}

void check_index(Device device, const DeviceRuntime& runtime, const char* what) {
  TENON_CHECK(device.index < runtime.device_count(), Device,
              fmt::format("{}: there is no device {}; backend {} has {}", what, to_string(device),
                          backend_name(device.backend), runtime.device_count()));
}

/// Whether work is done when the call returns: the host's, and meta's, which has none.
bool runs_at_once(Device device) noexcept { return device.is_cpu() || device.is_meta(); }

}  // namespace

DeviceRuntime* device_runtime(Backend backend) noexcept {
  return g_runtimes[backend].load(std::memory_order_acquire);
}

void set_device_runtime(Backend backend, DeviceRuntime* runtime) noexcept {
  g_runtimes[backend].store(runtime, std::memory_order_release);
  if (const auto f = detail::runtime_was_set.load(std::memory_order_acquire)) f();
}

constinit std::atomic<void (*)()> detail::runtime_was_set{nullptr};

void DeviceRuntime::copy_bytes(Stream stream, Address, Place, Address, Place, size_t, uint32_t) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("device {} copies no bytes; its DeviceRuntime has no copy_bytes",
                          to_string(stream.device)));
}

Device resolved(Device device) noexcept {
  if (device.index >= 0 || !device_runtime(device.backend)) return device;
  return Device(device.backend, t_current.index[device.backend]);
}

bool same_device(Device a, Device b) noexcept {
  a = resolved(a);
  b = resolved(b);
  return a.backend == b.backend && std::max<int8_t>(a.index, 0) == std::max<int8_t>(b.index, 0);
}

Stream current_stream(Device device) noexcept {
  device = resolved(device);
  if (t_current.streams) {
    for (const Stream& s : *t_current.streams) {
      if (s.device == device) return s;
    }
  }
  return {device, 0};
}

void set_current_device(Device device) {
  if (device.index < 0 || runs_at_once(device)) return;
  check_index(device, runtime_of(device, "set_current_device"), "set_current_device");
  t_current.index[device.backend] = device.index;
}

void set_current_stream(Stream stream) {
  if (runs_at_once(stream.device)) return;
  stream.device = resolved(stream.device);
  if (stream.id == 0) {
    // The default stream is what is not in the list; nothing here throws, so that guards can restore it.
    if (t_current.streams)
      std::erase_if(*t_current.streams, [&](Stream s) { return s.device == stream.device; });
    return;
  }
  check_index(stream.device, runtime_of(stream.device, "set_current_stream"), "set_current_stream");
  for (Stream& s : thread_streams()) {
    if (s.device == stream.device) {
      s = stream;
      return;
    }
  }
  thread_streams().push_back(stream);
}

Stream Stream::create(Device device) {
  if (runs_at_once(device)) return {device, 0};
  DeviceRuntime& runtime = runtime_of(device, "Stream");
  device = resolved(device);
  check_index(device, runtime, "Stream");
  const Stream stream{device, runtime.create_stream(device)};
  AllStreams& all = all_streams();
  const std::lock_guard lock(all.mutex);
  all.streams.push_back(stream);
  return stream;
}

void synchronize_device(Device device) {
  if (runs_at_once(device)) return;
  device = resolved(device);
  check_index(device, runtime_of(device, "synchronize"), "synchronize");
  std::vector<Stream> streams{{device, 0}};
  {
    AllStreams& all = all_streams();
    const std::lock_guard lock(all.mutex);
    for (const Stream& s : all.streams) {
      if (s.device == device) streams.push_back(s);
    }
  }
  for (const Stream& s : streams) s.synchronize();
}

void Stream::synchronize() const {
  if (runs_at_once(device)) return;
  runtime_of(device, "Stream").synchronize({resolved(device), id});
}

std::string to_string(Stream stream) {
  return stream.id == 0 ? to_string(stream.device)
                        : fmt::format("{}, stream {}", to_string(stream.device), stream.id);
}

Event::~Event() {
  if (id_ != 0) device_runtime(device_.backend)->destroy_event(device_, id_);
}

void Event::record(Stream stream) {
  stream.device = resolved(stream.device);
  TENON_CHECK(
      stream.device.backend == device_.backend && (device_.index < 0 || device_.index == stream.device.index),
      Device,
      fmt::format("Event: an event of device {} cannot be recorded on a stream of {}", to_string(device_),
                  to_string(stream.device)));
  if (runs_at_once(device_)) return;
  DeviceRuntime& runtime = runtime_of(stream.device, "Event");
  if (id_ == 0) {
    id_ = runtime.create_event(stream.device);
    device_ = stream.device;
  }
  runtime.record(id_, stream);
}

void Event::wait(Stream stream) const {
  stream.device = resolved(stream.device);
  TENON_CHECK(stream.device.backend == device_.backend, Device,
              fmt::format("Event: a stream of device {} cannot wait for an event of {}; synchronize() waits "
                          "for it on the host",
                          to_string(stream.device), to_string(device_)));
  if (id_ != 0) runtime_of(device_, "Event").wait(stream, device_, id_);
}

bool Event::query() const { return id_ == 0 || runtime_of(device_, "Event").query(device_, id_); }

void Event::synchronize() const {
  if (id_ != 0) runtime_of(device_, "Event").synchronize(device_, id_);
}

}  // namespace tenon
