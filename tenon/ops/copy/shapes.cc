// Shapes of copies, and checks of filling in place.
#include <fmt/core.h>

#include "tenon/core/device_runtime.h"
#include "tenon/core/tensor.h"
#include "tenon/generated/copy/shapes.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/memory_format.h"

namespace tenon::ops::shape {

namespace {

bool has_pinned_memory(Device device) {
  DeviceRuntime* const runtime = device_runtime(device.backend);
  return runtime && runtime->pinned_memory();
}

}  // namespace

void clone(OutputSpecs& out, HeaderRef self, std::optional<MemoryFormat> memory_format) {
  set_in_format(out, self, self.dtype(), memory_format.value_or(MemoryFormat::Preserve), "clone");
}

void to_copy(OutputSpecs& out, HeaderRef self, std::optional<DType> dtype, std::optional<Layout> layout,
             std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
             std::optional<MemoryFormat> memory_format) {
  const Device target = device.value_or(self.device());
  // A copy to the host need not wait if it goes to pinned memory.
  const bool pins = non_blocking && target.is_cpu() && has_pinned_memory(self.device());
  check_memory(out, layout, pin_memory.value_or(false) || pins, target, "to");
  warn_of_dropped_parts(self.dtype(), dtype.value_or(self.dtype()));
  set_in_format(out, self, dtype.value_or(self.dtype()), memory_format.value_or(MemoryFormat::Preserve),
                "to");
}

void pin_memory(OutputSpecs& out, HeaderRef self, std::optional<Device>) {
  check_memory(out, {}, true, self.device(), "pin_memory");
  set_in_format(out, self, self.dtype(), MemoryFormat::Preserve, "pin_memory");
}

void copy_(OutputSpecs&, HeaderRef self, HeaderRef src, bool) {
  TENON_CHECK(self.defined() && src.defined(), Type, "copy_: `self` and `src` must be tensors, not None");
  check_copy(self, src, "copy_");
  warn_of_dropped_parts(src.dtype(), self.dtype());
}

void fill__Scalar(OutputSpecs&, HeaderRef self, const Scalar& value) {
  check_fits(value, self.dtype(), "fill_");
}

void fill__Tensor(OutputSpecs&, HeaderRef self, HeaderRef value) {
  warn_of_dropped_parts(value.dtype(), self.dtype());
  TENON_CHECK(
      value.dim() == 0, Shape,
      fmt::format("fill_: only supports a 0-dimension value tensor but got a tensor with {} dimensions",
                  value.dim()));
}

void zero_(OutputSpecs&, HeaderRef) {}

}  // namespace tenon::ops::shape
