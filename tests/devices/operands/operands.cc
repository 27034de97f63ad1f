// The device of plain.c, twice, with kernels that tell what they were called with.
#include "tenon/abi/kernel.h"

#define tenon_plugin_v1 plain_plugin_v1
#include "../plain/plain.c"
#undef tenon_plugin_v1

namespace abi = tenon::abi;

namespace {

int64_t number_of(TenonStream stream) { return 1000 * stream.device.index + static_cast<int64_t>(stream.id); }

float* memory_of(const abi::Tensor& t) { return reinterpret_cast<float*>(t.view().address); }

/// Its elements are the number of the call's stream. The result's device is left to Tenon.
abi::Tensor mm(abi::Call& call, const abi::Tensor& self, const abi::Tensor& mat2) {
  const TenonTensorView x = self.view(), y = mat2.view();
  if (x.dtype == TENON_DTYPE_FLOAT64) throw abi::Error(TENON_ERROR_VALUE, "not in float64");
  abi::Tensor result = abi::empty({x.sizes[0], y.sizes[1]}, x.dtype, {x.device.backend, -1});
  for (int64_t i = 0; i < result.view().numel; ++i)
    memory_of(result)[i] = static_cast<float>(number_of(call.stream()));
  return result;
}

/// Reads its second argument where a device's tensor is.
abi::Tensor add(abi::Call& call, const abi::Tensor& self, const abi::Tensor& other, const TenonScalar&) {
  const TenonTensorView x = self.view(), y = other.view();
  if (y.device.backend != x.device.backend || y.device.index != x.device.index)
    throw abi::Error(TENON_ERROR_INTERNAL, "a tensor of another device");
  if (y.ndim != 0) call.decline();
  abi::Tensor result = abi::empty_like(self);
  const double number = y.dtype == TENON_DTYPE_FLOAT64 ? *reinterpret_cast<const double*>(y.address)
                                                       : static_cast<double>(*memory_of(other));
  for (int64_t i = 0; i < x.numel; ++i)
    memory_of(result)[i] = memory_of(self)[i] + static_cast<float>(number);
  return result;
}

int64_t stream_of(abi::Call& call, const abi::Tensor&) { return number_of(call.stream()); }
int64_t stream_for(abi::Call& call, int64_t, const std::optional<TenonDevice>&) {
  return number_of(call.stream());
}
/// Whether a tensor is on the host: of operators of its own a device gets whatever is passed.
bool on_host(const abi::Tensor&, const abi::Tensor& other) { return other.view().device.backend == 0; }

/// For float32 alone; the host has nothing for the rest.
abi::Tensor picky(abi::Call& call, const abi::Tensor& self, const abi::Tensor& other) {
  if (self.view().dtype != TENON_DTYPE_FLOAT32 || other.view().dtype != TENON_DTYPE_FLOAT32) call.decline();
  return abi::empty_like(self);
}

TenonStatus* id_of_stream(void*, int32_t, uint64_t* out) {
  static uint64_t last;
  *out = ++last;
  return nullptr;
}

}  // namespace

TENON_LIBRARY(operands, m) {
  m.def("stream_of(Tensor self) -> int");
  m.def("stream_for(int n, *, Device? device=None) -> int");
  m.def("on_host(Tensor self, Tensor other) -> bool");
  m.def("picky(Tensor self, Tensor other) -> Tensor");
}
TENON_LIBRARY_IMPL(operands, PrivateUse1, m) {
  m.impl("stream_of", &stream_of);
  m.impl("stream_for", &stream_for);
  m.impl("on_host", &on_host);
  m.impl("picky", &picky);
}
TENON_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("mm", &mm);
  m.impl("add.Tensor", &add);
}

extern "C" [[gnu::visibility("default")]] TenonStatus* tenon_plugin_v1(const TenonHost* given,
                                                                       const TenonOptions* options,
                                                                       TenonPlugin* out) {
  static TenonDeviceTable two;
  abi::set_host(given);
  if (TenonStatus* status = plain_plugin_v1(given, options, out)) return status;
  two = *out->table;
  two.device_count = [](void*) { return 2; };
  two.stream_new = &id_of_stream;
  out->table = &two;
  out->register_kernels = &abi::register_blocks;
  return nullptr;
}
