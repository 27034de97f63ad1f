// empty and empty_strided as kernels of openreg's own, which show what a factory's options mean. A device
// without them gets Tenon's, which do the same.
#include "tenon/abi/factory.h"

namespace openreg {
namespace {

namespace abi = tenon::abi;

/// Throws unless the memory that is asked for is a device's: in strides, and not the host's.
void check_memory(std::optional<abi::Layout> layout, std::optional<bool> pin_memory) {
  if (abi::layout_or_default(layout) != abi::Layout::Strided)
    throw abi::Error(TENON_ERROR_NOT_IMPLEMENTED, "Non strided layout not supported");
  if (abi::pinned_memory_or_default(pin_memory))
    throw abi::Error(TENON_ERROR_RUNTIME, "Pin memory can only be on CPU");
}

abi::Tensor empty(abi::Call& call, const abi::IntList& size, std::optional<TenonDType> dtype,
                  std::optional<abi::Layout> layout, std::optional<TenonDevice> device,
                  std::optional<bool> pin_memory, std::optional<abi::MemoryFormat> memory_format) {
  check_memory(layout, pin_memory);
  const abi::Allocator allocator = abi::get_allocator(abi::device_or_default(device, call));
  return abi::empty_generic(size, allocator, abi::dtype_or_default(dtype), memory_format);
}

abi::Tensor empty_strided(abi::Call& call, const abi::IntList& size, const abi::IntList& stride,
                          std::optional<TenonDType> dtype, std::optional<abi::Layout> layout,
                          std::optional<TenonDevice> device, std::optional<bool> pin_memory) {
  check_memory(layout, pin_memory);
  const abi::Allocator allocator = abi::get_allocator(abi::device_or_default(device, call));
  return abi::empty_strided_generic(size, stride, allocator, abi::dtype_or_default(dtype));
}

}  // namespace
}  // namespace openreg

TENON_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &openreg::empty);
  m.impl("empty_strided", &openreg::empty_strided);
}
