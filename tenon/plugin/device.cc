#include "tenon/plugin/device.h"

#include <fmt/core.h>

namespace tenon::plugin {
namespace {

int32_t index_of(Device device) { return std::max<int>(device.index, 0); }

}  // namespace

std::string text_of_current_exception() {
  try {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an object that is no std::exception";
  }
}

void raise(TenonStatus* status, const std::string& what) {
  if (status == TENON_DECLINED)
    throw_error(ErrorKind::Device, fmt::format("{}: it declined, which this function may not", what));
  const ErrorKind kind = status->kind;
  const std::string text = fmt::format("{}: {}", what, status->message);
  delete status;
  throw_error(kind, text);
}

namespace {

int count_devices(const TenonDeviceTable& table, void* self, const std::string& path) {
  int count = 0;
  try {
    count = table.device_count(self);
  } catch (...) {
    throw_error(ErrorKind::Device, fmt::format("load_device: '{}': device_count let an exception out: {}",
                                               path, text_of_current_exception()));
  }
  TENON_CHECK(count >= 1 && count <= 127, Device,
              fmt::format("load_device: '{}' has {} devices; expected 1 to 127", path, count));
  return count;
}

}  // namespace

PluginDevice::PluginDevice(Backend backend, std::string name, std::string path, const TenonPlugin& plugin,
                           const TenonDeviceTable& table)
    : backend_(backend),
      device_name_(std::move(name)),
      path_(std::move(path)),
      plugin_(plugin),
      table_(table),
      device_count_(count_devices(table, plugin.self, path_)) {
  const TenonDeviceProperties first = properties(0);
  if (first.granularity != 0) granularity_ = first.granularity;
  if (first.description) description_ = first.description;
  set_optional_memory();
}

std::string PluginDevice::text_of(std::string_view what, int32_t index) const {
  return fmt::format(": device {}:{}: {}", device_name_, index, what);
}

void PluginDevice::refuse(bool ends) const {
  const bool unloads = unloader_.load() == std::this_thread::get_id();
  State state = state_.load();
  if (!has_failed()) {
    if (state == State::Asked && !ends && !unloads && state_.compare_exchange_strong(state, State::Usable))
      return;
    if (state == State::Usable || state == State::Asked || (state == State::Unloading && (ends || unloads)) ||
        (state == State::Ending && unloads))
      return;
  }
  calls_.fetch_sub(1);
  throw_refusal(state);
}

void PluginDevice::throw_refusal(State state) const {
  std::string why;
  switch (state) {
    case State::Forked:
      why =
          "belongs to the process that loaded it and cannot be used in its child; start workers with "
          "'spawn', "
          "or load the device in each";
      break;
    case State::ShutDown:
      why = "has been shut down: the process is ending";
      break;
    case State::Unloaded:
      why = "has been unloaded";
      break;
    case State::Asked:
    case State::Unloading:
    case State::Ending:
      if (!has_failed()) {
        why = "is being unloaded";
        break;
      }
      [[fallthrough]];
    case State::Failed:
    case State::Usable: {
      const std::lock_guard lock(mutex_);
      why = fmt::format("has failed and can no longer be used: {}", failure_);
    }
  }
  throw_error(ErrorKind::Device, fmt::format(": device {} {}", device_name_, why));
}

void PluginDevice::fail(std::string_view what) const {
  const std::string text = text_of_current_exception();
  {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = fmt::format("{} let an exception out: {}", what, text);
  }
  failed_.store(true, std::memory_order_release);
  State usable = State::Usable;
  state_.compare_exchange_strong(usable, State::Failed);
  throw_error(ErrorKind::Device,
              fmt::format(": device {}: {} let an exception out, after which the device cannot be used: {}",
                          device_name_, what, text));
}

void PluginDevice::keep_unreported(const char* text) const noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (unreported_.empty()) unreported_ = text;
  } catch (const std::bad_alloc&) {
  }
}

void PluginDevice::throw_unreported() {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    text.swap(unreported_);
  }
  TENON_CHECK(text.empty(), Device,
              fmt::format("{} (reported late: it happened where nothing can be raised)", text));
}

void PluginDevice::shut_down() noexcept {
  if (state_.exchange(State::ShutDown) != State::Usable || !table_.shutdown) return;
  try {
    table_.shutdown(plugin_.self);
  } catch (...) {
    // The process ends; no one is left to report to.
  }
}

void PluginDevice::begin_unloading() {
  unloader_.store(std::this_thread::get_id());
  State state = State::Usable;
  if (!state_.compare_exchange_strong(state, State::Asked)) {
    if (state != State::Failed) throw_refusal(state);
    state_.store(State::Asked);
  }
  while (calls_.load() != 0 && state_.load() == State::Asked) std::this_thread::yield();
}

bool PluginDevice::refuse_others() noexcept {
  State state = State::Asked;
  if (!state_.compare_exchange_strong(state, State::Unloading)) return false;
  while (calls_.load() != 0) std::this_thread::yield();
  return true;
}

void PluginDevice::keep_loaded() noexcept {
  unloader_.store({});
  State asked = State::Asked, unloading = State::Unloading, usable = State::Usable;
  state_.compare_exchange_strong(asked, State::Usable);
  state_.compare_exchange_strong(unloading, State::Usable);
  if (has_failed()) state_.compare_exchange_strong(usable, State::Failed);
}

bool PluginDevice::end(const std::vector<Stream>& streams) {
  state_.store(State::Ending);
  while (calls_.load() != 0) std::this_thread::yield();
  for (const Stream& s : streams)
    call_noexcept("freeing a stream", index_of(s.device), table_.stream_free, abi_stream(s));
  if (!has_failed()) {
    const char* what = "shutdown";
    try {
      if (table_.shutdown) table_.shutdown(plugin_.self);
      what = "close";
      if (plugin_.close) plugin_.close(plugin_.self);
    } catch (...) {
      const std::string text = text_of_current_exception();
      const std::lock_guard lock(mutex_);
      if (unreported_.empty())
        unreported_ = fmt::format("device {}: {} let an exception out: {}", device_name_, what, text);
      failed_.store(true);
    }
  }
  state_.store(State::Unloaded);
  return !has_failed();
}

TenonDeviceProperties PluginDevice::properties(int index) const {
  TenonDeviceProperties p{};
  p.struct_size = sizeof p;
  call("properties", index, table_.properties, index, &p);
  return p;
}

uint64_t PluginDevice::create_stream(Device device) {
  uint64_t id = 0;
  constexpr const char* kWhat = "a new stream";
  call(kWhat, index_of(device), table_.stream_new, index_of(device), &id);
  return given(id, kWhat, index_of(device), "stream_new");
}

void PluginDevice::synchronize(Stream stream) {
  const WaitScope waiting;
  call_to_wait("waiting for a stream", index_of(stream.device), table_.stream_sync, abi_stream(stream));
}

uint64_t PluginDevice::create_event(Device device) { return counted_event(device, table_.event_new); }

uint64_t PluginDevice::counted_event(Device device, TenonStatus* (*create)(void*, int32_t, uint64_t*)) {
  uint64_t id = 0;
  // Counted before it exists: the unloading thread looks once this call is over.
  live_events_.fetch_add(1, std::memory_order_acq_rel);
  try {
    constexpr const char* kWhat = "a new event";
    call(kWhat, index_of(device), create, index_of(device), &id);
    (void)given(id, kWhat, index_of(device), "event_new");
  } catch (...) {
    live_events_.fetch_sub(1, std::memory_order_acq_rel);
    throw;
  }
  return id;
}

void PluginDevice::destroy_event(Device device, uint64_t event) noexcept {
  call_noexcept("freeing an event", index_of(device), table_.event_free, index_of(device), event);
  live_events_.fetch_sub(1, std::memory_order_acq_rel);
}

void PluginDevice::record(uint64_t event, Stream stream) {
  call("recording an event", index_of(stream.device), table_.event_record, index_of(stream.device), event,
       abi_stream(stream));
}

void PluginDevice::wait(Stream stream, Device device, uint64_t event) {
  if (!table_.stream_wait_event) return synchronize(device, event);
  call("a wait of a stream for an event", index_of(stream.device), table_.stream_wait_event,
       abi_stream(stream), index_of(device), event);
}

bool PluginDevice::query(Device device, uint64_t event) {
  if (!table_.event_query) {
    synchronize(device, event);
    return true;
  }
  int32_t reached = 0;
  call_to_wait("a question about an event", index_of(device), table_.event_query, index_of(device), event,
               &reached);
  return reached != 0;
}

void PluginDevice::synchronize(Device device, uint64_t event) {
  const WaitScope waiting;
  call_to_wait("waiting for an event", index_of(device), table_.event_sync, index_of(device), event);
}

void PluginDevice::copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place,
                              size_t nbytes, uint32_t flags) {
  static_assert(static_cast<int>(Place::Host) == TENON_PLACE_HOST && kCopyHostStays == TENON_COPY_HOST_STAYS);
  const auto copy = [&] {
    call("a copy", index_of(stream.device), table_.copy, abi_stream(stream), to,
         static_cast<TenonPlace>(to_place), from, static_cast<TenonPlace>(from_place),
         static_cast<uint64_t>(nbytes), flags);
  };
  // It may wait for the stream where host memory is not to be used after it.
  if ((to_place == Place::Host || from_place == Place::Host) && !(flags & kCopyHostStays)) {
    const WaitScope waiting;
    copy();
  } else {
    copy();
  }
}

Address PluginDevice::allocate(Device device, size_t nbytes) {
  TenonAddress address = 0;
  constexpr const char* kWhat = "allocating memory";
  TenonStatus* const status =
      status_of(kWhat, table_.raw_alloc, index_of(device), static_cast<uint64_t>(nbytes), &address);
  if (!has_memory(status, kWhat, index_of(device))) return 0;
  return given(address, kWhat, index_of(device), "raw_alloc");
}

bool PluginDevice::has_memory(TenonStatus* status, const char* what, int32_t index) const {
  if (!status) return true;
  if (status == TENON_DECLINED || status->kind != ErrorKind::OutOfMemory)
    raise(status, text_of(what, std::max(index, 0)));
  const std::unique_ptr<TenonStatus> owned(status);
  const std::lock_guard lock(mutex_);
  shortages_[index] = std::move(owned->message);
  return false;
}

std::string PluginDevice::shortage_of(int32_t index) const {
  const std::lock_guard lock(mutex_);
  const auto found = shortages_.find(index);
  return found == shortages_.end() ? std::string() : found->second;
}

void PluginDevice::throw_nothing_given(const char* what, int32_t index, const char* function) const {
  throw_error(ErrorKind::Device, fmt::format("{}: {} succeeded, but gave 0, which stands for none",
                                             text_of(what, std::max(index, 0)), function));
}

void PluginDevice::free(Device device, Address address, size_t nbytes) noexcept {
  call_noexcept("freeing memory", index_of(device), table_.raw_free, index_of(device), address,
                static_cast<uint64_t>(nbytes));
}

void PluginDevice::copy(Address to, Address from, size_t nbytes, Stream stream) {
  copy_bytes(stream, to, Place::Device, from, Place::Device, nbytes, 0);
}

bool PluginDevice::run_pointwise(void* device, const TenonLaunch& launch) {
  const auto& self = *static_cast<const PluginDevice*>(device);
  TenonStatus* const status = self.status_of(launch.name, self.table_.pointwise, &launch);
  if (status == TENON_DECLINED) return false;
  if (status)
    raise(status,
          fmt::format("{}: device {}:{}", launch.name, self.device_name_, launch.stream.device.index));
  return true;
}

DeviceMemory::Info PluginDevice::info(Device device) const {
  Info info{properties(index_of(device)).total_memory, 0};
  if (table_.memory_info)
    call("memory_info", index_of(device), table_.memory_info, index_of(device), &info.free, &info.total);
  return info;
}

}  // namespace tenon::plugin
