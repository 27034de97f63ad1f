// A device whose kernel and stub let exceptions out, which those of kernel.h never do.
#include <stdexcept>

#define tenon_plugin_v1 right_plugin_v1
#include "tests/abi/frozen_v1/plugin.cc"
#undef tenon_plugin_v1

namespace {

char marker;

TenonStatus* throws(void*, void* data, const TenonCall*) {
  if (data) throw std::runtime_error("a kernel's own exception");
  throw 7;
}

TenonStatus* register_kernels(void*, TenonRegistrar* registrar) {
  return abi::guarded([&] {
    const TenonHost& host = abi::host();
    abi::check(
        host.register_kernel(registrar, "aten::floor", "PrivateUse1", &throws, &marker, __FILE__, __LINE__));
    abi::check(
        host.register_kernel(registrar, "aten::ceil", "PrivateUse1", &throws, nullptr, __FILE__, __LINE__));
    abi::check(host.register_stub(registrar, "abs", "(Tensor, Tensor) -> ()", &throws, &marker));
  });
}

}  // namespace

extern "C" TenonStatus* tenon_plugin_v1(const TenonHost* host, const TenonOptions* options,
                                        TenonPlugin* out) {
  TenonStatus* status = right_plugin_v1(host, options, out);
  if (!status) out->register_kernels = &register_kernels;
  return status;
}
