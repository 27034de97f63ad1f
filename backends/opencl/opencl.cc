// The plug-in opencl: any OpenCL 1.2 device. Pointwise operators run on it, what else there is on host
// copies. Options: platform, type, without (backend.h). docs/opencl.md says what it does and does not.
#include <cstring>

#include "backend.h"
#include "tenon/abi/kernel.h"

namespace opencl {
namespace {

namespace abi = tenon::abi;

Backend& of(void* self) { return *static_cast<Backend*>(self); }

constexpr TenonDType kAllButFloat64[] = {
    TENON_DTYPE_BOOL,  TENON_DTYPE_UINT8,   TENON_DTYPE_INT8,     TENON_DTYPE_INT16,   TENON_DTYPE_INT32,
    TENON_DTYPE_INT64, TENON_DTYPE_FLOAT16, TENON_DTYPE_BFLOAT16, TENON_DTYPE_FLOAT32, TENON_DTYPE_COMPLEX64};

int32_t device_count(void* self) { return static_cast<int32_t>(of(self).devices().size()); }

TenonStatus* properties(void* self, int32_t index, TenonDeviceProperties* out) {
  return abi::guarded([&] {
    TenonDeviceProperties p{};
    p.struct_size = sizeof p;
    p.description = of(self).description(index);
    p.total_memory = of(self).devices().at(static_cast<size_t>(index)).memory;
    p.ops_printed = abi::kPrintedOps;
    p.dlpack_type = 4;  // kDLOpenCL
    if (!of(self).abilities().f64) {
      p.dtypes = kAllButFloat64;
      p.num_dtypes = std::size(kAllButFloat64);
    }
    std::memcpy(out, &p, out->struct_size < sizeof p ? out->struct_size : sizeof p);
  });
}

TenonStatus* raw_alloc(void* self, int32_t index, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] { *out = of(self).allocate(index, nbytes); });
}
TenonStatus* raw_free(void* self, int32_t index, TenonAddress address, uint64_t nbytes) {
  return abi::guarded([&] { of(self).free(index, address, nbytes); });
}

TenonStatus* copy(void* self, TenonStream stream, TenonAddress dst, TenonPlace dst_place, TenonAddress src,
                  TenonPlace src_place, uint64_t nbytes, uint32_t flags) {
  return abi::guarded([&] {
    of(self).copy(stream, dst, dst_place, src, src_place, nbytes, (flags & TENON_COPY_HOST_STAYS) != 0);
  });
}

TenonStatus* host_alloc(void* self, uint64_t nbytes, void** out) {
  return abi::guarded([&] { *out = of(self).allocate_host(nbytes); });
}
TenonStatus* host_free(void* self, void* address, uint64_t) {
  return abi::guarded([&] { of(self).free_host(address); });
}

TenonStatus* stream_new(void* self, int32_t index, uint64_t* out) {
  return abi::guarded([&] { *out = of(self).new_stream(index); });
}
TenonStatus* stream_free(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).free_stream(stream); });
}
TenonStatus* stream_sync(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).wait(of(self).queue(stream)); });
}

TenonStatus* event_new(void* self, int32_t index, uint64_t* out) {
  return abi::guarded([&] { *out = of(self).new_event(index, false); });
}
TenonStatus* event_new_timed(void* self, int32_t index, uint64_t* out) {
  return abi::guarded([&] { *out = of(self).new_event(index, true); });
}
TenonStatus* event_elapsed(void* self, int32_t, uint64_t begin, uint64_t end, double* out) {
  return abi::guarded([&] { *out = Mark::milliseconds(of(self).mark(begin), of(self).mark(end)); });
}
TenonStatus* event_free(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] { of(self).free_event(event); });
}
TenonStatus* event_record(void* self, int32_t, uint64_t event, TenonStream stream) {
  return abi::guarded([&] { of(self).mark(event).record(of(self).queue(stream)); });
}
TenonStatus* event_sync(void* self, int32_t, uint64_t event) {
  return abi::guarded([&] {
    const Event marked = of(self).mark(event).get();
    const cl_event list[] = {marked.get()};
    if (marked) check(clWaitForEvents(1, list), "clWaitForEvents");
  });
}
TenonStatus* event_query(void* self, int32_t, uint64_t event, int32_t* out) {
  return abi::guarded([&] {
    const Event marked = of(self).mark(event).get();
    cl_int status = CL_COMPLETE;
    if (marked)
      check(clGetEventInfo(marked.get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
            "clGetEventInfo");
    *out = status <= CL_COMPLETE;  // below it are errors
  });
}
TenonStatus* stream_wait_event(void* self, TenonStream stream, int32_t, uint64_t event) {
  return abi::guarded([&] {
    const Event marked = of(self).mark(event).get();
    const cl_event list[] = {marked.get()};
    if (marked)
      check(clEnqueueBarrierWithWaitList(of(self).queue(stream), 1, list, nullptr),
            "clEnqueueBarrierWithWaitList");
  });
}

TenonStatus* pointwise(void* self, const TenonLaunch* launch) {
  return abi::guarded([&] {
    if (!of(self).launch(*launch)) throw abi::Declined();
  });
}

TenonStatus* capture_begin(void* self, TenonStream stream) {
  return abi::guarded([&] { of(self).begin_capture(stream); });
}
TenonStatus* capture_end(void* self, TenonStream stream, uint64_t* out) {
  return abi::guarded([&] {
    const uint64_t capture = of(self).end_capture(stream, out != nullptr);
    if (out) *out = capture;
  });
}
TenonStatus* capture_launch(void* self, TenonStream stream, uint64_t capture) {
  return abi::guarded([&] { of(self).launch_capture(stream, capture); });
}
TenonStatus* capture_free(void* self, int32_t, uint64_t capture) {
  return abi::guarded([&] { of(self).free_capture(capture); });
}

TenonStatus* memory_info(void* self, int32_t index, uint64_t* free_bytes, uint64_t* total_bytes) {
  return abi::guarded([&] {
    *total_bytes = of(self).devices().at(static_cast<size_t>(index)).memory;
    *free_bytes = *total_bytes - of(self).used(index);
  });
}

TenonStatus* memory_export(void* self, int32_t, TenonAddress address, void** handle, uint64_t* offset) {
  return abi::guarded([&] {
    *handle = of(self).buffer(address);
    *offset = abi::offset_of(address);
  });
}
TenonStatus* memory_import(void* self, int32_t, void* handle, uint64_t offset, uint64_t nbytes,
                           TenonAddress* out) {
  return abi::guarded([&] { *out = of(self).import(static_cast<cl_mem>(handle), offset, nbytes); });
}
TenonStatus* memory_forget(void* self, int32_t, TenonAddress address) {
  return abi::guarded([&] { of(self).forget(address); });
}

void shutdown(void* self) { of(self).finish(); }
void close(void* self) { delete &of(self); }

// Operators of the plug-in's own; the tensor says which device is meant, and is not looked at.
void warm_up_begin(abi::Call& call, const abi::Tensor&) { call.self<Backend>().kernels().collect(); }
int64_t warm_up_end(abi::Call& call, const abi::Tensor&) {
  return static_cast<int64_t>(call.self<Backend>().kernels().compile_collected());
}
int64_t num_launches(abi::Call& call, const abi::Tensor&) {
  return static_cast<int64_t>(call.self<Backend>().kernels().num_launches());
}
int64_t num_waits(abi::Call& call, const abi::Tensor&) {
  return static_cast<int64_t>(call.self<Backend>().num_waits());
}
int64_t num_programs(abi::Call& call, const abi::Tensor&) {
  return static_cast<int64_t>(call.self<Backend>().kernels().num_programs());
}

const TenonDeviceTable& table() {
  static const TenonDeviceTable filled = [] {
    TenonDeviceTable t{};
    t.struct_size = sizeof t;
    t.device_count = &device_count;
    t.properties = &properties;
    t.raw_alloc = &raw_alloc;
    t.raw_free = &raw_free;
    t.copy = &copy;
    t.stream_new = &stream_new;
    t.stream_free = &stream_free;
    t.stream_sync = &stream_sync;
    t.event_new = &event_new;
    t.event_free = &event_free;
    t.event_record = &event_record;
    t.event_sync = &event_sync;
    t.event_query = &event_query;
    t.stream_wait_event = &stream_wait_event;
    t.pointwise = &pointwise;
    t.host_alloc = &host_alloc;
    t.host_free = &host_free;
    t.memory_info = &memory_info;
    t.shutdown = &shutdown;
    t.event_new_timed = &event_new_timed;
    t.event_elapsed = &event_elapsed;
    t.capture_begin = &capture_begin;
    t.capture_end = &capture_end;
    t.capture_launch = &capture_launch;
    t.capture_free = &capture_free;
    t.memory_export = &memory_export;
    t.memory_import = &memory_import;
    t.memory_forget = &memory_forget;
    return t;
  }();
  return filled;
}

}  // namespace
}  // namespace opencl

TENON_LIBRARY(opencl, m) {
  m.def("warm_up_begin(Tensor on) -> ()");
  m.def("warm_up_end(Tensor on) -> int");
  m.def("num_launches(Tensor on) -> int");
  m.def("num_waits(Tensor on) -> int");
  m.def("num_programs(Tensor on) -> int");
}
TENON_LIBRARY_IMPL(opencl, PrivateUse1, m) {
  m.impl("warm_up_begin", &opencl::warm_up_begin);
  m.impl("warm_up_end", &opencl::warm_up_end);
  m.impl("num_launches", &opencl::num_launches);
  m.impl("num_waits", &opencl::num_waits);
  m.impl("num_programs", &opencl::num_programs);
}

extern "C" [[gnu::visibility("default")]] TenonStatus* tenon_plugin_v1(const TenonHost* host,
                                                                       const TenonOptions* options,
                                                                       TenonPlugin* out) {
  tenon::abi::set_host(host);
  return tenon::abi::guarded([&] {
    TenonPlugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.needs_minor = 0;
    plugin.built_minor = TENON_ABI_MINOR;
    plugin.self = new opencl::Backend(options);
    plugin.name = "opencl";
    plugin.key = "OpenCL";
    plugin.table = &opencl::table();
    plugin.register_kernels = &tenon::abi::register_blocks;
    plugin.close = &opencl::close;
    std::memcpy(out, &plugin, out->struct_size < sizeof plugin ? out->struct_size : sizeof plugin);
  });
}
