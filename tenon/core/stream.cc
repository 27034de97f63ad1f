#include "tenon/core/stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "tenon/core/capture.h"
#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"
#include "tenon/core/small_alloc.h"

namespace tenon {
namespace {

constinit std::atomic<DeviceRuntime*> g_runtimes[32] = {};

/// How often a backend's number was given back. What threads have made current of an earlier device of the
/// number does not count for the next.
constinit std::atomic<uint32_t> g_epochs[32] = {};
uint32_t epoch_of(Backend backend) noexcept { return g_epochs[backend].load(std::memory_order_relaxed); }

struct CurrentStream {
  Stream stream;
  uint32_t epoch;
};

/// What is current on a thread.
struct Current {
  int8_t index[32] = {};
  uint32_t epoch[32] = {};                        // of `index`
  std::vector<CurrentStream>* streams = nullptr;  // those that are not the default ones: few
};
thread_local constinit Current t_current TENON_FAST_TLS;

/// The thread's list of streams, which goes when the thread ends. Code that sets a stream after that (in the
/// destructor of another thread-local) makes a list that is never freed.
std::vector<CurrentStream>& thread_streams() {
  static thread_local const struct Owner {
    Owner() { t_current.streams = new std::vector<CurrentStream>; }
    ~Owner() { delete std::exchange(t_current.streams, nullptr); }
  } owner;
  (void)owner;
  if (!t_current.streams) t_current.streams = new std::vector<CurrentStream>;
  return *t_current.streams;
}

/// How many streams a device has at least before one that was released is handed out again: work that is
/// queued on one after the other is not put in order for want of streams. PyTorch's pools have as many.
constexpr size_t kPoolSize = 32;

/// Every stream that was created: they live as long as their device.
struct AllStreams {
  struct Entry {
    Stream stream;
    uint64_t released = 0;  // the number of its release; 0: in use
  };
  /// The stream of a device that was released first, if it has as many as it should.
  Entry* reusable(Device device) noexcept {
    size_t count = 0;
    Entry* first = nullptr;
    for (Entry& entry : streams) {
      if (entry.stream.device != device) continue;
      ++count;
      if (entry.released != 0 && (!first || entry.released < first->released) && !is_capturing(entry.stream))
        first = &entry;
    }
    return count >= kPoolSize ? first : nullptr;
  }

  std::mutex mutex;
  std::vector<Entry> streams;
  uint64_t releases = 0;
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
constinit std::atomic<const detail::WaitHooks*> detail::wait_hooks{nullptr};

void check_device_index(Device device, const char* what) {
  const DeviceRuntime* runtime = device_runtime(device.backend);
  TENON_CHECK(!runtime || device.index < runtime->device_count(), Device,
              fmt::format("{}: there is no device {}; backend {} has {}", what, to_string(device),
                          backend_name(device.backend), runtime->device_count()));
}

void DeviceRuntime::copy_bytes(Stream stream, Address, Place, Address, Place, size_t, uint32_t) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("device {} copies no bytes; its DeviceRuntime has no copy_bytes",
                          to_string(stream.device)));
}

double DeviceRuntime::elapsed(Device device, uint64_t, uint64_t) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("device {} measures no time between events", to_string(device)));
}

Allocator* pinned_allocator() noexcept {
  for (const auto& runtime : g_runtimes) {
    DeviceRuntime* const r = runtime.load(std::memory_order_acquire);
    if (Allocator* pinned = r ? r->pinned_memory() : nullptr) return pinned;
  }
  return nullptr;
}

bool is_pinned(const Allocator* allocator) noexcept {
  return allocator && std::any_of(std::begin(g_runtimes), std::end(g_runtimes), [&](const auto& runtime) {
           DeviceRuntime* const r = runtime.load(std::memory_order_acquire);
           return r && r->pinned_memory() == allocator;
         });
}

Device resolved(Device device) noexcept {
  if (device.index >= 0 || !device_runtime(device.backend)) return device;
  const Backend b = device.backend;
  return Device(b, t_current.epoch[b] == epoch_of(b) ? t_current.index[b] : int8_t{0});
}

bool same_device(Device a, Device b) noexcept {
  a = resolved(a);
  b = resolved(b);
  return a.backend == b.backend && std::max<int8_t>(a.index, 0) == std::max<int8_t>(b.index, 0);
}

Stream current_stream(Device device) noexcept {
  device = resolved(device);
  if (t_current.streams) {
    for (const auto& [stream, epoch] : *t_current.streams) {
      if (stream.device == device && epoch == epoch_of(device.backend)) return stream;
    }
  }
  return {device, 0};
}

void set_current_device(Device device) {
  if (device.index < 0 || runs_at_once(device)) return;
  runtime_of(device, "set_current_device");
  check_device_index(device, "set_current_device");
  t_current.index[device.backend] = device.index;
  t_current.epoch[device.backend] = epoch_of(device.backend);
}

void set_current_stream(Stream stream) {
  if (runs_at_once(stream.device)) return;
  stream.device = resolved(stream.device);
  if (stream.id == 0) {
    // The default stream is what is not in the list; nothing here throws, so that guards can restore it.
    if (t_current.streams)
      std::erase_if(*t_current.streams,
                    [&](const CurrentStream& s) { return s.stream.device == stream.device; });
    return;
  }
  runtime_of(stream.device, "set_current_stream");
  check_device_index(stream.device, "set_current_stream");
  const CurrentStream wanted{stream, epoch_of(stream.device.backend)};
  for (CurrentStream& s : thread_streams()) {
    if (s.stream.device == stream.device) {
      s = wanted;
      return;
    }
  }
  thread_streams().push_back(wanted);
}

CurrentDevices current_devices() {
  CurrentDevices current;
  for (Backend b = 0; b < current.index.size(); ++b)
    current.index[b] = t_current.epoch[b] == epoch_of(b) ? t_current.index[b] : int8_t{0};
  if (!t_current.streams) return current;
  for (const auto& [stream, epoch] : *t_current.streams) {
    if (epoch == epoch_of(stream.device.backend)) current.streams.push_back(stream);
  }
  return current;
}

void set_current_devices(const CurrentDevices& current) {
  for (Backend b = 0; b < current.index.size(); ++b) {
    t_current.index[b] = current.index[b];
    t_current.epoch[b] = epoch_of(b);
  }
  if (t_current.streams) t_current.streams->clear();
  for (const Stream stream : current.streams)
    thread_streams().push_back({stream, epoch_of(stream.device.backend)});
}

Stream Stream::create(Device device) {
  if (runs_at_once(device)) return {device, 0};
  DeviceRuntime& runtime = runtime_of(device, "Stream");
  device = resolved(device);
  check_device_index(device, "Stream");
  // A thread that unloads the device counts its streams, and must not come between.
  AllStreams& all = all_streams();
  const std::lock_guard lock(all.mutex);
  if (AllStreams::Entry* entry = all.reusable(device)) {
    entry->released = 0;
    return entry->stream;
  }
  const Stream stream{device, runtime.create_stream(device)};
  all.streams.push_back({stream});
  return stream;
}

void Stream::release() const noexcept {
  if (id == 0) return;
  AllStreams& all = all_streams();
  const std::lock_guard lock(all.mutex);
  for (AllStreams::Entry& entry : all.streams) {
    if (entry.stream == *this && entry.released == 0) entry.released = ++all.releases;
  }
}

void check_stream(Stream stream, const char* what) {
  if (stream.id == 0 || runs_at_once(stream.device)) return;
  AllStreams& all = all_streams();
  const std::lock_guard lock(all.mutex);
  const bool known = std::any_of(all.streams.begin(), all.streams.end(),
                                 [&](const AllStreams::Entry& entry) { return entry.stream == stream; });
  TENON_CHECK(known, Value,
              fmt::format("{}: device {} has no stream {}", what, to_string(stream.device), stream.id));
}

size_t count_streams(Backend backend) noexcept {
  AllStreams& all = all_streams();
  const std::lock_guard lock(all.mutex);
  return static_cast<size_t>(
      std::count_if(all.streams.begin(), all.streams.end(), [&](const AllStreams::Entry& entry) {
        return entry.stream.device.backend == backend && entry.released == 0;
      }));
}

std::vector<Stream> forget_streams(Backend backend) {
  std::vector<Stream> forgotten;
  AllStreams& all = all_streams();
  const std::lock_guard lock(all.mutex);
  for (const AllStreams::Entry& entry : all.streams) {
    if (entry.stream.device.backend == backend) forgotten.push_back(entry.stream);
  }
  std::erase_if(all.streams,
                [&](const AllStreams::Entry& entry) { return entry.stream.device.backend == backend; });
  g_epochs[backend].fetch_add(1, std::memory_order_relaxed);
  return forgotten;
}

void synchronize_device(Device device) {
  if (runs_at_once(device)) return;
  device = resolved(device);
  refuse_captured(device, "synchronize");
  DeviceRuntime& runtime = runtime_of(device, "synchronize");
  check_device_index(device, "synchronize");
  std::vector<Stream> streams{{device, 0}};
  {
    AllStreams& all = all_streams();
    const std::lock_guard lock(all.mutex);
    for (const AllStreams::Entry& entry : all.streams) {
      if (entry.stream.device == device) streams.push_back(entry.stream);
    }
  }
  for (const Stream& s : streams) s.synchronize();
  runtime.throw_unreported();
}

void Stream::synchronize() const {
  if (runs_at_once(device)) return;
  refuse_captured(*this, "synchronize");
  runtime_of(device, "Stream").synchronize({resolved(device), id});
}

std::string to_string(Stream stream) {
  return stream.id == 0 ? to_string(stream.device)
                        : fmt::format("{}, stream {}", to_string(stream.device), stream.id);
}

Event::~Event() {
  if (id_ == 0) return;
  if (DeviceRuntime* runtime = device_runtime(device_.backend)) runtime->destroy_event(device_, id_);
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
  device_ = stream.device;
  captured_ = is_capturing(stream) ? stream.id : 0;
  if (captured_ != 0) return;  // within the capture its stream is in order
  if (id_ == 0)
    id_ = timed_ ? runtime.create_timed_event(stream.device) : runtime.create_event(stream.device);
  runtime.record(id_, stream);
}

void Event::refuse_if_captured(const char* what) const {
  if (captured_ == 0) return;
  const Stream stream{device_, captured_};
  refuse_captured(stream, what);
  throw_error(ErrorKind::Runtime,
              fmt::format("{}: the event was recorded while {} was captured, and marks nothing that has run",
                          what, to_string(stream)));
}

void Event::wait(Stream stream) const {
  stream.device = resolved(stream.device);
  TENON_CHECK(stream.device.backend == device_.backend, Device,
              fmt::format("Event: a stream of device {} cannot wait for an event of {}; synchronize() waits "
                          "for it on the host",
                          to_string(stream.device), to_string(device_)));
  if (captured_ != 0) {
    if (stream.device == device_ && stream.id == captured_ && is_capturing(stream)) return;
    refuse_if_captured("Event.wait");
  }
  if (id_ == 0) return;
  // Recorded work cannot wait for what is outside; what has run need not be waited for.
  if (is_capturing(stream)) {
    if (!query()) refuse_captured(stream, "Event.wait, for work outside of the capture");
    return;
  }
  runtime_of(device_, "Event").wait(stream, device_, id_);
}

bool Event::query() const {
  refuse_if_captured("Event.query");
  return id_ == 0 || runtime_of(device_, "Event").query(device_, id_);
}

void Event::synchronize() const {
  refuse_if_captured("Event.synchronize");
  if (id_ != 0) runtime_of(device_, "Event").synchronize(device_, id_);
}

double Event::elapsed_until(const Event& end) const {
  TENON_CHECK(timed_ && end.timed_, Runtime,
              "Event.elapsed_time: both events must be created with argument 'enable_timing=True'");
  TENON_CHECK(device_ == end.device_, Device,
              fmt::format("Event.elapsed_time: one event is of device {}, the other of {}",
                          to_string(device_), to_string(end.device_)));
  TENON_CHECK(id_ != 0 && end.id_ != 0, Runtime,
              "Event.elapsed_time: both events must be recorded before calculating elapsed time");
  TENON_CHECK(query() && end.query(), Runtime,
              "Event.elapsed_time: both events must be completed before calculating elapsed time");
  return runtime_of(device_, "Event").elapsed(device_, id_, end.id_);
}

}  // namespace tenon
