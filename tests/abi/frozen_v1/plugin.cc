// A device as it was written for version 1 of the interface: memory of malloc, work that is done when a call
// returns, one operator of its own, a kernel of Tenon's, and two stubs. It stays as it is.
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "tenon/abi/kernel.h"

namespace {

namespace abi = tenon::abi;

int32_t device_count(void*) { return 2; }

TenonStatus* properties(void*, int32_t, TenonDeviceProperties* out) {
  TenonDeviceProperties p{};
  p.struct_size = sizeof p;
  p.granularity = 64;
  p.description = "a device of version 1";
  std::memcpy(out, &p, out->struct_size < sizeof p ? out->struct_size : sizeof p);
  return nullptr;
}

TenonStatus* raw_alloc(void*, int32_t, uint64_t nbytes, TenonAddress* out) {
  return abi::guarded([&] {
    void* block = std::aligned_alloc(64, (nbytes + 63) / 64 * 64);
    if (!block) throw std::bad_alloc();
    *out = reinterpret_cast<TenonAddress>(block);
  });
}
TenonStatus* raw_free(void*, int32_t, TenonAddress address, uint64_t) {
  std::free(reinterpret_cast<void*>(address));
  return nullptr;
}
TenonStatus* copy(void*, TenonStream, TenonAddress dst, TenonPlace, TenonAddress src, TenonPlace,
                  uint64_t nbytes, uint32_t) {
  std::memmove(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), nbytes);
  return nullptr;
}
TenonStatus* new_id(void*, int32_t, uint64_t* out) {
  *out = 1;
  return nullptr;
}
TenonStatus* of_stream(void*, TenonStream) { return nullptr; }
TenonStatus* of_event(void*, int32_t, uint64_t) { return nullptr; }
TenonStatus* record(void*, int32_t, uint64_t, TenonStream) { return nullptr; }

/// Calls f(result, operand) for each element of two contiguous float32 tensors.
template <class F>
void each(abi::Call& call, const abi::Tensor& out, const abi::Tensor& self, F f) {
  const TenonTensorView x = self.view(), y = out.view();
  if (x.dtype != TENON_DTYPE_FLOAT32 || !(x.flags & y.flags & TENON_TENSOR_CONTIGUOUS)) call.decline();
  for (int64_t i = 0; i < x.numel; ++i)
    f(reinterpret_cast<float*>(y.address)[i], reinterpret_cast<const float*>(x.address)[i]);
}

abi::Tensor cube(abi::Call& call, const abi::Tensor& self) {
  abi::Tensor result = abi::empty_like(self);
  each(call, result, self, [](float& y, float x) { y = x * x * x; });
  return result;
}
abi::Tensor floor_of(abi::Call& call, const abi::Tensor& self) {
  abi::Tensor result = abi::empty_like(self);
  each(call, result, self, [](float& y, float x) { y = std::floor(x); });
  return result;
}
void abs_of(abi::Call& call, const abi::Tensor& out, const abi::Tensor& self) {
  each(call, out, self, [](float& y, float x) { y = std::fabs(x); });
}
void fill(abi::Call& call, const abi::Tensor& self, const TenonScalar& value) {
  if (value.kind != 2) call.decline();
  each(call, self, self, [&](float& y, float) { y = static_cast<float>(value.value.d); });
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
    t.stream_new = &new_id;
    t.stream_free = &of_stream;
    t.stream_sync = &of_stream;
    t.event_new = &new_id;
    t.event_free = &of_event;
    t.event_record = &record;
    t.event_sync = &of_event;
    return t;
  }();
  return filled;
}

}  // namespace

TENON_LIBRARY(frozen, m) { m.def("cube(Tensor self) -> Tensor"); }
TENON_LIBRARY_IMPL(frozen, PrivateUse1, m) { m.impl("cube", &cube); }
TENON_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("floor", &floor_of);
  m.stub("fill", &fill);
}
REGISTER_PRIVATEUSE1_DISPATCH(abs_stub, &abs_of)

extern "C" TenonStatus* tenon_plugin_v1(const TenonHost* host, const TenonOptions* options,
                                        TenonPlugin* out) {
  abi::set_host(host);
  return abi::guarded([&] {
    abi::Options(options).finish();
    TenonPlugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.built_minor = TENON_ABI_MINOR;
    plugin.name = "frozen";
    plugin.key = "Frozen";
    plugin.table = &table();
    plugin.register_kernels = &abi::register_blocks;
    std::memcpy(out, &plugin, out->struct_size < sizeof plugin ? out->struct_size : sizeof plugin);
  });
}
