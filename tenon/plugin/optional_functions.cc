// What a plug-in may have besides what it must: times of events, capture, memory that is mapped, pinned
// memory, memory that is exchanged with other libraries.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tenon/plugin/device.h"

namespace tenon::plugin {
namespace {

int32_t index_of(Device device) { return std::max<int>(device.index, 0); }

/// Memory of the host that the devices of a plug-in reach by themselves.
class PinnedMemory final : public DeviceMemory {
 public:
  explicit PinnedMemory(const PluginDevice& device) noexcept : device_(device) {}
  Address allocate(Device, size_t nbytes) override {
    return reinterpret_cast<Address>(device_.take_host_memory(nbytes));
  }
  void free(Device, Address address, size_t nbytes) noexcept override {
    device_.give_host_memory(reinterpret_cast<void*>(address), nbytes);
  }
  void copy(Address to, Address from, size_t nbytes, Stream) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), nbytes);
  }
  std::string shortage(Device) const override { return device_.shortage_of(PluginDevice::kPinned); }

 private:
  const PluginDevice& device_;
};

}  // namespace

void PluginDevice::set_optional_memory() {
  // What is there of functions that go together is complete (load.cc).
  const size_t map_granularity = properties(0).map_granularity;
  TENON_CHECK(
      map_granularity == 0 || table_.map, Device,
      fmt::format("load_device: the properties in '{}' have a map_granularity, but its table lacks reserve, "
                  "map, unmap and unreserve",
                  path_));
  map_granularity_ = map_granularity;
  if (table_.host_alloc && table_.host_free) {
    host_memory_ = std::make_unique<PinnedMemory>(*this);
    pinned_ = std::make_unique<CachingAllocator>("pinned memory of " + device_name_, *host_memory_);
  }
}

uint64_t PluginDevice::create_timed_event(Device device) {
  if (!table_.event_new_timed) return create_event(device);
  return counted_event(device, table_.event_new_timed);
}

double PluginDevice::elapsed(Device device, uint64_t begin, uint64_t end) {
  if (!table_.event_elapsed) return DeviceRuntime::elapsed(device, begin, end);
  double milliseconds = 0;
  call("the time between events", index_of(device), table_.event_elapsed, index_of(device), begin, end,
       &milliseconds);
  return milliseconds;
}

bool PluginDevice::captures() const noexcept {
  return table_.capture_begin && table_.capture_end && table_.capture_launch && table_.capture_free;
}

void PluginDevice::begin_capture(Stream stream) {
  call("beginning a capture", index_of(stream.device), table_.capture_begin, abi_stream(stream));
}

uint64_t PluginDevice::end_capture(Stream stream, bool keep) {
  uint64_t id = 0;
  constexpr const char* kWhat = "ending a capture";
  call(kWhat, index_of(stream.device), table_.capture_end, abi_stream(stream), keep ? &id : nullptr);
  return keep ? given(id, kWhat, index_of(stream.device), "capture_end") : 0;
}

void PluginDevice::launch_capture(Stream stream, uint64_t capture) {
  call("replaying a capture", index_of(stream.device), table_.capture_launch, abi_stream(stream), capture);
}

void PluginDevice::destroy_capture(Device device, uint64_t capture) noexcept {
  call_noexcept("freeing a capture", index_of(device), table_.capture_free, index_of(device), capture);
}

bool PluginDevice::has_handles() const noexcept {
  return table_.memory_export && table_.memory_import && table_.memory_forget;
}

DeviceRuntime::Handle PluginDevice::export_memory(Device device, Address address) {
  if (!has_handles()) return DeviceRuntime::export_memory(device, address);
  void* memory = nullptr;
  uint64_t offset = 0;
  call("exporting memory", index_of(device), table_.memory_export, index_of(device), address, &memory,
       &offset);
  return {memory, offset};
}

Address PluginDevice::import_memory(Device device, Handle from, size_t nbytes) {
  if (!has_handles()) return DeviceRuntime::import_memory(device, from, nbytes);
  TenonAddress address = 0;
  call("importing memory", index_of(device), table_.memory_import, index_of(device), from.memory,
       static_cast<uint64_t>(from.offset), static_cast<uint64_t>(nbytes), &address);
  return address;
}

void PluginDevice::forget_memory(Device device, Address address) noexcept {
  if (has_handles())
    call_noexcept("forgetting memory", index_of(device), table_.memory_forget, index_of(device), address);
}

Address PluginDevice::reserve(Device device, size_t nbytes) {
  TenonAddress address = 0;
  call("reserving addresses", index_of(device), table_.reserve, index_of(device),
       static_cast<uint64_t>(nbytes), &address);
  return address;
}

bool PluginDevice::map(Device device, Address address, size_t nbytes) {
  constexpr const char* kWhat = "mapping memory";
  return has_memory(status_of(kWhat, table_.map, index_of(device), address, static_cast<uint64_t>(nbytes)),
                    kWhat, index_of(device));
}

void PluginDevice::unmap(Device device, Address address, size_t nbytes) noexcept {
  call_noexcept("unmapping memory", index_of(device), table_.unmap, index_of(device), address,
                static_cast<uint64_t>(nbytes));
}

void PluginDevice::unreserve(Device device, Address address, size_t nbytes) noexcept {
  call_noexcept("giving addresses back", index_of(device), table_.unreserve, index_of(device), address,
                static_cast<uint64_t>(nbytes));
}

void* PluginDevice::take_host_memory(size_t nbytes) const {
  constexpr const char* kWhat = "allocating pinned memory";
  void* address = nullptr;
  const bool there = has_memory(status_of(kWhat, table_.host_alloc, static_cast<uint64_t>(nbytes), &address),
                                kWhat, kPinned);
  return there ? given(address, kWhat, kPinned, "host_alloc") : nullptr;
}

void PluginDevice::give_host_memory(void* address, size_t nbytes) const noexcept {
  call_noexcept("freeing pinned memory", 0, table_.host_free, address, static_cast<uint64_t>(nbytes));
}

}  // namespace tenon::plugin
