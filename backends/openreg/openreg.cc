// The plug-in openreg: a simulated accelerator with memory of its own, streams and events, which shows what a
// device has to do and finds faults in what uses devices. Options: devices (2), memory (bytes each, 1 GiB),
// mode (thread, sync, lazy or random), seed (of random), missing (dtypes that no kernel computes in, such as
// float64,int16), kernels (some; network: also what trains a small classifier); fail, throw and throw_int
// (failures.h).
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "backend.h"
#include "network.h"
#include "pointwise.h"
#include "tenon/abi/kernel.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;

Backend& of(void* self) { return *static_cast<Backend*>(self); }

int32_t device_count(void* self) {
  of(self).failures.check(index_of("device_count"));
  return static_cast<int32_t>(of(self).memories.size());
}

TenonStatus* properties(void* self, int32_t index, TenonDeviceProperties* out) {
  return abi::guarded([&] {
    TenonDeviceProperties p{};
    p.struct_size = sizeof p;
    p.granularity = Memory::kGranularity;
    p.description = "openreg, a simulated accelerator";
    p.total_memory = of(self).memory(index).limit();
    p.ops_printed = known_operations();
    p.map_granularity = Memory::kMapGranularity;
    p.dlpack_type = 12;  // kDLExtDev
    std::memcpy(out, &p, out->struct_size < sizeof p ? out->struct_size : sizeof p);
  });
}

TenonStatus* raw_alloc(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] {
    Memory& memory = of(self).memory(index);
    *out = memory.allocate(nbytes);
    if (*out == 0)
      throw abi::Error(TENON_ERROR_OUT_OF_MEMORY, "of " + std::to_string(memory.limit()) + " bytes " +
                                                      std::to_string(memory.limit() - memory.used()) +
                                                      " are free");
  });
}

TenonStatus* raw_free(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] { of(self).memory(index).free(address, nbytes); });
}

TenonStatus* copy(void* self, TenonStream stream, TenonAddress dst, TenonPlace dst_place, TenonAddress src,
                  TenonPlace src_place, uint64_t nbytes, uint32_t flags) {
  return abi::guarded([&] {
    Backend& backend = of(self);
    Memory& memory = backend.memory(stream.device.index);
    const auto seen = [&](TenonAddress address, TenonPlace place) {
      return place == TENON_PLACE_HOST ? reinterpret_cast<char*>(address) : memory.seen_by_device(address);
    };
    char* const to = seen(dst, dst_place);
    const char* const from = seen(src, src_place);
    if (dst_place == src_place && dst < src + nbytes && src < dst + nbytes)
      throw abi::Error(TENON_ERROR_INTERNAL, "openreg: a copy between ranges that overlap");
    if (src_place == TENON_PLACE_HOST && !(flags & TENON_COPY_HOST_STAYS)) {
      // The caller's memory may be gone when the task runs.
      backend.queues.give(key_of(stream), [to, bytes = std::vector<char>(from, from + nbytes)] {
        std::memcpy(to, bytes.data(), bytes.size());
      });
      return;
    }
    backend.queues.give(key_of(stream), [to, from, nbytes] { std::memcpy(to, from, nbytes); });
    if (dst_place == TENON_PLACE_HOST && !(flags & TENON_COPY_HOST_STAYS))
      backend.queues.wait(key_of(stream));
  });
}

TenonStatus* stream_new(void* self, int32_t index, uint64_t* out) {
  return abi::guarded([&] { *out = of(self).queues.new_stream(index); });
}
TenonStatus* stream_free(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).queues.free_stream(key_of(stream)); });
}
TenonStatus* stream_sync(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).queues.wait(key_of(stream)); });
}

TenonStatus* event_new(void* self, int32_t, uint64_t* out) {
  return abi::guarded([&] { *out = of(self).queues.new_event(false); });
}
TenonStatus* event_new_timed(void* self, int32_t, uint64_t* out) {
  return abi::guarded([&] { *out = of(self).queues.new_event(true); });
}
TenonStatus* event_elapsed(void* self, int32_t, uint64_t begin, uint64_t end, double* out) {
  return abi::guarded([&] { *out = of(self).queues.elapsed(begin, end); });
}
TenonStatus* event_free(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] { of(self).queues.free_event(event); });
}
TenonStatus* event_record(void* self, int32_t, uint64_t event, TenonStream stream) {
  return abi::guarded([&] { of(self).queues.record(event, key_of(stream)); });
}
TenonStatus* event_sync(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] { of(self).queues.wait(event); });
}
TenonStatus* event_query(void* self, int32_t, uint64_t event, int32_t* out) {
  return abi::guarded([&] { *out = of(self).queues.reached(event); });
}
TenonStatus* stream_wait_event(void* self, TenonStream stream, int32_t, uint64_t event) {
  return abi::guarded([&] { of(self).queues.wait_for(key_of(stream), event); });
}

TenonStatus* host_alloc(void*, uint64_t nbytes, void** out) {
  return abi::guarded([&] {
    constexpr uint64_t kPage = Memory::kGranularity;
    *out = std::aligned_alloc(kPage, (nbytes + kPage - 1) / kPage * kPage);
    if (!*out) throw std::bad_alloc();
  });
}
TenonStatus* host_free(void*, void* address, uint64_t) {
  std::free(address);
  return nullptr;
}

TenonStatus* reserve(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] { *out = of(self).memory(index).reserve(nbytes); });
}
TenonStatus* map(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] {
    if (!of(self).memory(index).map(address, nbytes))
      throw abi::Error(TENON_ERROR_OUT_OF_MEMORY, "no memory is left to map");
  });
}
TenonStatus* unmap(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] { of(self).memory(index).unmap(address, nbytes); });
}
TenonStatus* unreserve(void* self, int32_t index, TenonAddress address, uint64_t) {
  return abi::guarded([&] { of(self).memory(index).unreserve(address); });
}

TenonStatus* capture_begin(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).queues.begin_capture(key_of(stream)); });
}
TenonStatus* capture_end(void* self, TenonStream stream, uint64_t* out) {
  return abi::guarded([&] {
    std::vector<Task> tasks = of(self).queues.end_capture(key_of(stream));
    if (out) *out = of(self).captures.add(std::move(tasks));
  });
}
TenonStatus* capture_launch(void* self, TenonStream stream, uint64_t capture) {
  return abi::guarded([&] {
    const Captures::Work work = of(self).captures.get(capture);
    for (const Task& task : *work) of(self).queues.give(key_of(stream), [work, &task] { task(); });
  });
}
TenonStatus* capture_free(void* self, int32_t, uint64_t capture) {
  return abi::guarded([&] { of(self).captures.remove(capture); });
}

TenonStatus* memory_info(void* self, int32_t index, uint64_t* free_bytes, uint64_t* total_bytes) {
  return abi::guarded([&] {
    const Memory& memory = of(self).memory(index);
    *total_bytes = memory.limit();
    *free_bytes = memory.limit() - memory.used();
  });
}

void shutdown(void* self) {
  of(self).failures.check(index_of("shutdown"));
  of(self).queues.stop();
}
void close(void* self) {
  of(self).failures.check(index_of("close"));
  delete static_cast<Backend*>(self);
}

TenonStatus* register_kernels(void* self, TenonRegistrar* registrar) {
  of(self).failures.check(index_of("register_kernels"));
  if (TenonStatus* failed = abi::register_blocks(self, registrar)) return failed;
  return abi::guarded([&] {
    abi::Library library(registrar, "aten::", "PrivateUse1");
    if (of(self).network) register_network(library);
  });
}

const TenonDeviceTable& table() {
  static const TenonDeviceTable filled = [] {
    TenonDeviceTable t{};
    t.struct_size = sizeof t;
    t.device_count = &device_count;
    t.properties = &MayFail<index_of("properties"), &properties>::call<Backend>;
    t.raw_alloc = &MayFail<index_of("raw_alloc"), &raw_alloc>::call<Backend>;
    t.raw_free = &MayFail<index_of("raw_free"), &raw_free>::call<Backend>;
    t.copy = &MayFail<index_of("copy"), &copy>::call<Backend>;
    t.stream_new = &MayFail<index_of("stream_new"), &stream_new>::call<Backend>;
    t.stream_free = &MayFail<index_of("stream_free"), &stream_free>::call<Backend>;
    t.stream_sync = &MayFail<index_of("stream_sync"), &stream_sync>::call<Backend>;
    t.event_new = &MayFail<index_of("event_new"), &event_new>::call<Backend>;
    t.event_free = &MayFail<index_of("event_free"), &event_free>::call<Backend>;
    t.event_record = &MayFail<index_of("event_record"), &event_record>::call<Backend>;
    t.event_sync = &MayFail<index_of("event_sync"), &event_sync>::call<Backend>;
    t.event_query = &MayFail<index_of("event_query"), &event_query>::call<Backend>;
    t.stream_wait_event = &MayFail<index_of("stream_wait_event"), &stream_wait_event>::call<Backend>;
    t.pointwise = &MayFail<index_of("pointwise"), &pointwise>::call<Backend>;
    t.memory_info = &MayFail<index_of("memory_info"), &memory_info>::call<Backend>;
    t.shutdown = &shutdown;
    t.event_elapsed = &MayFail<index_of("event_elapsed"), &event_elapsed>::call<Backend>;
    t.event_new_timed = &MayFail<index_of("event_new_timed"), &event_new_timed>::call<Backend>;
    t.host_alloc = &MayFail<index_of("host_alloc"), &host_alloc>::call<Backend>;
    t.host_free = &MayFail<index_of("host_free"), &host_free>::call<Backend>;
    t.reserve = &MayFail<index_of("reserve"), &reserve>::call<Backend>;
    t.map = &MayFail<index_of("map"), &map>::call<Backend>;
    t.unmap = &MayFail<index_of("unmap"), &unmap>::call<Backend>;
    t.unreserve = &MayFail<index_of("unreserve"), &unreserve>::call<Backend>;
    t.capture_begin = &MayFail<index_of("capture_begin"), &capture_begin>::call<Backend>;
    t.capture_end = &MayFail<index_of("capture_end"), &capture_end>::call<Backend>;
    t.capture_launch = &MayFail<index_of("capture_launch"), &capture_launch>::call<Backend>;
    t.capture_free = &MayFail<index_of("capture_free"), &capture_free>::call<Backend>;
    return t;
  }();
  return filled;
}

}  // namespace
}  // namespace openreg

extern "C" [[gnu::visibility("default")]] TenonStatus* tenon_plugin_v1(const TenonHost* host,
                                                                       const TenonOptions* options,
                                                                       TenonPlugin* out) {
  tenon::abi::set_host(host);
  std::unique_ptr<openreg::Backend> backend;
  if (TenonStatus* status =
          tenon::abi::guarded([&] { backend = std::make_unique<openreg::Backend>(options); }))
    return status;
  backend->failures.check(openreg::index_of("open"));
  TenonPlugin plugin{};
  plugin.struct_size = sizeof plugin;
  plugin.needs_minor = 2;  // factories.cc asks for the default dtype
  plugin.built_minor = TENON_ABI_MINOR;
  plugin.self = backend.release();
  plugin.name = "openreg";
  plugin.key = "OpenReg";
  plugin.table = &openreg::table();
  plugin.register_kernels = &openreg::register_kernels;
  plugin.close = &openreg::close;
  std::memcpy(out, &plugin, out->struct_size < sizeof plugin ? out->struct_size : sizeof plugin);
  return nullptr;
}
