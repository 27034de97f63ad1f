#include <algorithm>
#include <cstring>

#include "planted.h"
#include "tenon/abi/program.h"

namespace planted {
namespace {

int32_t device_count(void*) { return kDevices; }
TenonStatus* properties(void* self, int32_t, TenonDeviceProperties* out) {
  static const TenonDType floats[] = {TENON_DTYPE_FLOAT32, TENON_DTYPE_FLOAT64};
  const Planted& d = of(self);
  TenonDeviceProperties p{};
  p.struct_size = sizeof p;
  p.granularity = 64;
  p.description = "a device with a planted fault";
  p.total_memory = kLimit;
  p.num_dtypes = d.has("claim") || d.has("float32 alone") ? 1 : d.has("typed kernels") ? 2 : 0;
  p.dtypes = p.num_dtypes ? floats : nullptr;
  p.dlpack_type = 12;  // kDLExtDev
  p.map_granularity = kGranule;
  if (d.has("float32 alone")) p.ops_printed = abi::kKnownOps;
  std::memcpy(out, &p, out->struct_size < sizeof p ? out->struct_size : sizeof p);
  return nullptr;
}
TenonStatus* raw_alloc(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    if (d.has("index of memory")) index = 0;
    const uint64_t size = (nbytes + 63) / 64 * 64;
    auto& blocks = d.free_blocks[index][size];
    if (blocks.empty() && std::max(d.used[index], d.taken[index]) + size > kLimit)
      throw abi::Error(d.has("out of memory") ? TENON_ERROR_RUNTIME : TENON_ERROR_OUT_OF_MEMORY,
                       "it is full");
    d.taken[index] += size;
    if (!blocks.empty()) {
      *out = blocks.front();
      blocks.pop_front();
      return;
    }
    *out = d.base + uint64_t(index) * kLimit + d.used[index];
    d.used[index] += size;
  });
}
TenonStatus* raw_free(void* self, int32_t, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    if (d.has("raw_free") || d.has("raw_free without figures")) return;
    const uint64_t index = (address - d.base) / kLimit, size = (nbytes + 63) / 64 * 64;
    d.free_blocks[index][size].push_back(address);
    d.taken[index] -= size;
  });
}
TenonStatus* memory_info(void* self, int32_t index, uint64_t* free_bytes, uint64_t* total_bytes) {
  return abi::guarded([&] {
    Planted& d = of(self);
    *free_bytes = kLimit - d.taken[d.has("index of figures") ? 0 : index];
    *total_bytes = kLimit;
    if (d.has("memory info")) std::swap(*free_bytes, *total_bytes);
  });
}
TenonStatus* copy(void* self, TenonStream stream, TenonAddress dst, TenonPlace dst_place, TenonAddress src,
                  TenonPlace src_place, uint64_t nbytes, uint32_t) {
  return abi::guarded([&] {
    Planted& d = of(self);
    char* to = dst_place == TENON_PLACE_HOST ? reinterpret_cast<char*>(dst) : d.at(dst);
    const uint64_t queue = d.queue_of(stream);
    if (d.has("half of a copy") && nbytes > 100000) nbytes /= 2;
    if (src_place == TENON_PLACE_HOST) {
      const char* from = reinterpret_cast<const char*>(src);
      d.give(queue, [to, bytes = std::vector<char>(from, from + nbytes)] {
        std::memcpy(to, bytes.data(), bytes.size());
      });
      return;
    }
    d.give(queue, [to, from = d.at(src), nbytes] { std::memmove(to, from, nbytes); });
    if (dst_place != TENON_PLACE_HOST) return;
    d.run(queue, d.given[queue] - 1);
    d.run(kAside);
    d.run(queue);
  });
}
TenonStatus* stream_new(void* self, int32_t, uint64_t* out) {
  *out = of(self).has("stream id") ? 7 : ++of(self).last_id;
  return nullptr;
}
TenonStatus* stream_free(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).run(of(self).queue_of(stream)); });
}
TenonStatus* stream_sync(void* self, TenonStream stream) {
  return abi::guarded([&] {
    of(self).run(of(self).queue_of(stream));
    of(self).run(kAside);
  });
}
TenonStatus* event_new(void* self, int32_t, uint64_t* out) {
  *out = ++of(self).last_id;
  return nullptr;
}
TenonStatus* event_free(void*, int32_t, uint64_t) { return nullptr; }
TenonStatus* event_record(void* self, int32_t, uint64_t event, TenonStream stream) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const uint64_t queue = d.queue_of(stream);
    d.give(queue, [&d, event] { d.times[event] = std::chrono::steady_clock::now(); });
    d.events[event] = {queue, d.has("event at once") ? 0 : d.given[queue]};
  });
}
TenonStatus* event_sync(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] {
    const auto [queue, count] = of(self).events[event];
    of(self).run(queue, count);
  });
}
TenonStatus* event_query(void* self, int32_t, uint64_t event, int32_t* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const auto [queue, count] = d.events[event];
    *out = d.has("query yes") || (d.done[queue] >= count && !d.has("query no"));
  });
}
TenonStatus* event_elapsed(void* self, int32_t, uint64_t begin, uint64_t end, double* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    *out = std::chrono::duration<double, std::milli>(d.times[end] - d.times[begin]).count();
    if (d.has("elapsed time")) *out = -*out;
    if (d.has("seconds")) *out /= 1000;
  });
}
TenonStatus* stream_wait_event(void* self, TenonStream stream, int32_t, uint64_t event) {
  return abi::guarded([&] {
    Planted& d = of(self);
    if (d.has("wait for event")) return;
    d.give(d.queue_of(stream), [&d, place = d.events[event]] { d.run(place.first, place.second); });
  });
}

TenonStatus* reserve(void* self, int32_t, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    const auto range = [&] {
      return mmap(nullptr, nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    };
    *out = reinterpret_cast<uint64_t>(range());
    d.ranges[*out] = {nbytes, static_cast<char*>(range())};
  });
}
TenonStatus* map(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    if (d.taken[index] + nbytes > kLimit) throw abi::Error(TENON_ERROR_OUT_OF_MEMORY, "it is full");
    d.taken[index] += nbytes;
    mprotect(d.at(address), nbytes, PROT_READ | PROT_WRITE);
  });
}
TenonStatus* unmap(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    if (d.has("unmap")) return;
    d.taken[index] -= nbytes;
    const bool too_much = d.has("unmap too much");
    mmap(d.at(address), nbytes + (too_much ? kGranule : 0), too_much ? PROT_READ | PROT_WRITE : PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  });
}
TenonStatus* unreserve(void* self, int32_t, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    munmap(d.at(address), nbytes);
    munmap(reinterpret_cast<void*>(address), nbytes);
    d.ranges.erase(address);
  });
}

TenonStatus* capture_begin(void* self, TenonStream stream) {
  return abi::guarded([&] {
    Planted& d = of(self);
    const std::lock_guard<std::mutex> lock(d.mutex);
    if (!d.has("capture begin")) d.captured[d.queue_of(stream)].clear();
  });
}
TenonStatus* capture_end(void* self, TenonStream stream, uint64_t* out) {
  return abi::guarded([&] {
    Planted& d = of(self);
    Tasks tasks;
    {
      const std::lock_guard<std::mutex> lock(d.mutex);
      const auto recording = d.captured.extract(d.queue_of(stream));
      if (recording) tasks = std::move(recording.mapped());
    }
    if (out) d.graphs[*out = ++d.last_id] = std::make_shared<Tasks>(std::move(tasks));
    if (!out && d.has("capture end"))
      for (Task& task : tasks) d.give(d.queue_of(stream), std::move(task));
  });
}
TenonStatus* capture_launch(void* self, TenonStream stream, uint64_t capture) {
  return abi::guarded([&] {
    Planted& d = of(self);
    if (d.has("capture launch")) return;
    const std::weak_ptr<Tasks> graph =
        d.graphs.at(d.has("last capture") ? d.graphs.rbegin()->first : capture);
    const std::shared_ptr<Tasks> held = d.has("capture free") ? nullptr : graph.lock();
    d.give(d.queue_of(stream), [graph, held] {
      if (const auto tasks = graph.lock())
        for (const Task& task : *tasks) task();
    });
  });
}
TenonStatus* capture_free(void* self, int32_t, uint64_t capture) {
  of(self).graphs.erase(capture);
  return nullptr;
}

TenonStatus* memory_export(void* self, int32_t, TenonAddress address, void** handle, uint64_t* offset) {
  *handle = reinterpret_cast<void*>(of(self).base);
  *offset = address - of(self).base;
  return nullptr;
}
TenonStatus* memory_import(void* self, int32_t, void* handle, uint64_t offset, uint64_t, TenonAddress* out) {
  if (of(self).has("import")) offset = offset / 64 * 64;
  *out = reinterpret_cast<uint64_t>(handle) + offset;
  return nullptr;
}
TenonStatus* memory_forget(void*, int32_t, TenonAddress) { return nullptr; }

}  // namespace

void fill_table(const Planted& device, TenonDeviceTable& t) {
  t.struct_size = sizeof t;
  t.device_count = &device_count;
  t.properties = &properties;
  t.raw_alloc = &raw_alloc;
  t.raw_free = &raw_free;
  t.copy = &copy;
  t.stream_new = &stream_new;
  t.stream_free = &stream_free;
  t.stream_sync = &stream_sync;
  t.event_new = t.event_new_timed = &event_new;
  t.event_free = &event_free;
  t.event_record = &event_record;
  t.event_sync = &event_sync;
  t.event_query = &event_query;
  t.event_elapsed = &event_elapsed;
  t.stream_wait_event = &stream_wait_event;
  if (!device.has("raw_free without figures")) t.memory_info = &memory_info;
  t.reserve = &reserve;
  t.map = &map;
  t.unmap = &unmap;
  t.unreserve = &unreserve;
  t.capture_begin = &capture_begin;
  t.capture_end = &capture_end;
  t.capture_launch = &capture_launch;
  t.capture_free = &capture_free;
  t.memory_export = &memory_export;
  t.memory_import = &memory_import;
  t.memory_forget = &memory_forget;
}

}  // namespace planted
