#include "tenon/plugin/device.h"

#include <fmt/core.h>

namespace tenon::plugin {
namespace {

int32_t index_of(Device device) { return std::max<int>(device.index, 0); }

}  // namespace

void raise(TenonStatus* status, const std::string& what) {
  if (status == TENON_DECLINED)
    throw_error(ErrorKind::Device, fmt::format("{}: it declined, which this function may not", what));
  const ErrorKind kind = status->kind;
  const std::string text = fmt::format("{}: {}", what, status->message);
  delete status;
  throw_error(kind, text);
}

PluginDevice::PluginDevice(Backend backend, std::string name, std::string path, const TenonPlugin& plugin,
                           const TenonDeviceTable& table)
    : backend_(backend),
      device_name_(std::move(name)),
      path_(std::move(path)),
      plugin_(plugin),
      table_(table),
      device_count_(table.device_count(plugin.self)) {
  if (const uint64_t given = properties(0).granularity) granularity_ = given;
}

std::string PluginDevice::text_of(const char* what) const {
  return fmt::format("device {}: {}", device_name_, what);
}

void PluginDevice::refuse() const {
  switch (state_.load(std::memory_order_relaxed)) {
    case State::Failed:
      throw_error(ErrorKind::Device, fmt::format("device {} has failed: a function of its plug-in let an "
                                                 "exception out; it can no longer be used",
                                                 device_name_));
    case State::Forked:
      throw_error(ErrorKind::Device, fmt::format("device {} belongs to the process that loaded it and cannot "
                                                 "be used in its child; start workers "
                                                 "with 'spawn', or load the device in each",
                                                 device_name_));
    case State::ShutDown:
      throw_error(ErrorKind::Device,
                  fmt::format("device {} has been shut down: the process is ending", device_name_));
    case State::Usable:
      break;
  }
  throw_error(ErrorKind::Internal, "a device in use was refused");
}

void PluginDevice::fail(const char* what) const {
  state_.store(State::Failed, std::memory_order_relaxed);
  std::string text = "an object that is no std::exception";
  try {
    throw;
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
  }
  throw_error(ErrorKind::Device,
              fmt::format("device {}: {} let an exception out, after which the device cannot be used: {}",
                          device_name_, what, text));
}

void PluginDevice::shut_down() noexcept {
  if (state_.exchange(State::ShutDown) != State::Usable || !table_.shutdown) return;
  try {
    table_.shutdown(plugin_.self);
  } catch (...) {
    // The process ends; nobody is left to tell.
  }
}

TenonDeviceProperties PluginDevice::properties(int index) const {
  TenonDeviceProperties p{};
  p.struct_size = sizeof p;
  call("properties", table_.properties, index, &p);
  return p;
}

uint64_t PluginDevice::create_stream(Device device) {
  uint64_t id = 0;
  call("a new stream", table_.stream_new, index_of(device), &id);
  return id;
}

void PluginDevice::synchronize(Stream stream) {
  call("waiting for a stream", table_.stream_sync, abi_stream(stream));
}

uint64_t PluginDevice::create_event(Device device) {
  uint64_t id = 0;
  call("a new event", table_.event_new, index_of(device), &id);
  return id;
}

void PluginDevice::destroy_event(Device device, uint64_t event) noexcept {
  try {
    call("freeing an event", table_.event_free, index_of(device), event);
  } catch (const std::exception&) {
    // A device that failed keeps its events.
  }
}

void PluginDevice::record(uint64_t event, Stream stream) {
  call("recording an event", table_.event_record, index_of(stream.device), event, abi_stream(stream));
}

void PluginDevice::wait(Stream stream, Device device, uint64_t event) {
  if (!table_.stream_wait_event) return synchronize(device, event);
  call("a wait of a stream for an event", table_.stream_wait_event, abi_stream(stream), index_of(device),
       event);
}

bool PluginDevice::query(Device device, uint64_t event) {
  if (!table_.event_query) {
    synchronize(device, event);
    return true;
  }
  int32_t reached = 0;
  call("a question about an event", table_.event_query, index_of(device), event, &reached);
  return reached != 0;
}

void PluginDevice::synchronize(Device device, uint64_t event) {
  call("waiting for an event", table_.event_sync, index_of(device), event);
}

void PluginDevice::copy_bytes(Stream stream, Address to, Place to_place, Address from, Place from_place,
                              size_t nbytes, uint32_t flags) {
  static_assert(static_cast<int>(Place::Host) == TENON_PLACE_HOST && kCopyHostStays == TENON_COPY_HOST_STAYS);
  call("a copy", table_.copy, abi_stream(stream), to, static_cast<TenonPlace>(to_place), from,
       static_cast<TenonPlace>(from_place), static_cast<uint64_t>(nbytes), flags);
}

Address PluginDevice::allocate(Device device, size_t nbytes) {
  TenonAddress address = 0;
  constexpr const char* kWhat = "allocating memory";
  TenonStatus* const status =
      status_of(kWhat, table_.raw_alloc, index_of(device), static_cast<uint64_t>(nbytes), &address);
  if (!status) return address;
  if (status == TENON_DECLINED || status->kind != ErrorKind::OutOfMemory) raise(status, text_of(kWhat));
  delete status;
  return 0;
}

void PluginDevice::free(Device device, Address address, size_t nbytes) noexcept {
  try {
    call("freeing memory", table_.raw_free, index_of(device), address, static_cast<uint64_t>(nbytes));
  } catch (const std::exception&) {
    // Of a device that failed, or whose process ends, the memory is lost.
  }
}

void PluginDevice::copy(Address to, Address from, size_t nbytes, Stream stream) {
  copy_bytes(stream, to, Place::Device, from, Place::Device, nbytes, 0);
}

bool PluginDevice::run_pointwise(void* device, const TenonLaunch& launch) {
  const auto& self = *static_cast<const PluginDevice*>(device);
  TenonStatus* const status = self.status_of(launch.name, self.table_.pointwise, &launch);
  if (status == TENON_DECLINED) return false;
  if (status) raise(status, launch.name);
  return true;
}

DeviceMemory::Info PluginDevice::info(Device device) const {
  Info info{properties(index_of(device)).total_memory, 0};
  if (table_.memory_info) call("memory_info", table_.memory_info, index_of(device), &info.free, &info.total);
  return info;
}

}  // namespace tenon::plugin
