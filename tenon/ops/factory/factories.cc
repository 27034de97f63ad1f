// Operators that make tensors from sizes and numbers: the elements that they write. Sizes and dtypes are in
// shapes.cc.
#include "tenon/generated/factory/bodies.h"
#include "tenon/generated/factory/shapes.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/factory/filled.h"

namespace tenon::ops {

void fill_unless_zero(const Tensor& out, const Scalar& value) {
  if (!shape::is_zero(value)) fill_elements(out, value, "full");
}

Tensor empty_like(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                  std::optional<Device> device, std::optional<bool> pin_memory,
                  std::optional<MemoryFormat> memory_format) {
  Tensor result;
  OutputSpecs out(&result, device.value_or(self.device()));
  shape::empty_like(out, self, dtype, layout, device, pin_memory, memory_format);
  return result;
}

void arange_start_step(const Scalar& start, const Scalar&, const Scalar& step, std::optional<DType>,
                       std::optional<Layout>, std::optional<Device>, std::optional<bool>, Tensor& out) {
  if (out.numel() > 0) arange_stub(out.device(), out, start, step);
}

void linspace(const Scalar& start, const Scalar& end, int64_t steps, std::optional<DType>,
              std::optional<Layout>, std::optional<Device>, std::optional<bool>, Tensor& out) {
  if (steps == 0) return;
  if (!out.is_complex()) return linspace_stub(out.device(), out, start.to_double(), end.to_double());
  // Both parts are evenly spaced.
  for (const int64_t i : {0, 1}) {
    const auto part = [i](const Scalar& s) { return i == 0 ? s.to_complex().real() : s.to_complex().imag(); };
    const Tensor numbers = make_empty({steps}, real_dtype(out.dtype()), out.device());
    linspace_stub(out.device(), numbers, part(start), part(end));
    copy_elements(part_of(out, i), numbers, "linspace");
  }
}

}  // namespace tenon::ops
