// Operators that make tensors from sizes and numbers: the elements that they write. Sizes and dtypes are in
// shapes.cc.
#include "tenon/generated/factory/bodies.h"
#include "tenon/generated/factory/shapes.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/memory_format.h"

namespace tenon::ops {
namespace {

using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;

/// Fills what the shape function has not made zeros of.
void fill_unless_zero(const Tensor& out, const Scalar& value) {
  if (!shape::is_zero(value)) fill_elements(out, value, "full");
}

}  // namespace

Tensor empty_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                  OptFormat memory_format) {
  Tensor result;
  OutputSpecs out(&result, device.value_or(self.device()));
  shape::empty_like(out, self, dtype, layout, device, pin_memory, memory_format);
  return result;
}

void ones(IntArrayRef, OptDType, OptLayout, OptDevice, OptBool, Tensor& out) { fill_unless_zero(out, 1); }
void full(IntArrayRef, const Scalar& fill_value, OptDType, OptLayout, OptDevice, OptBool, Tensor& out) {
  fill_unless_zero(out, fill_value);
}
void scalar_tensor(const Scalar& s, OptDType, OptLayout, OptDevice, OptBool, Tensor& out) {
  fill_unless_zero(out, s);
}

void ones_like(const Tensor&, OptDType, OptLayout, OptDevice, OptBool, OptFormat, Tensor& out) {
  fill_unless_zero(out, 1);
}
void full_like(const Tensor&, const Scalar& fill_value, OptDType, OptLayout, OptDevice, OptBool, OptFormat,
               Tensor& out) {
  fill_unless_zero(out, fill_value);
}

void new_ones(const Tensor&, IntArrayRef, OptDType, OptLayout, OptDevice, OptBool, Tensor& out) {
  fill_unless_zero(out, 1);
}
void new_full(const Tensor&, IntArrayRef, const Scalar& fill_value, OptDType, OptLayout, OptDevice, OptBool,
              Tensor& out) {
  fill_unless_zero(out, fill_value);
}

void arange_start_step(const Scalar& start, const Scalar&, const Scalar& step, OptDType, OptLayout, OptDevice,
                       OptBool, Tensor& out) {
  if (out.numel() > 0) arange_stub(out.device(), out, start, step);
}
void arange_start(const Scalar& start, const Scalar&, OptDType, OptLayout, OptDevice, OptBool, Tensor& out) {
  if (out.numel() > 0) arange_stub(out.device(), out, start, 1);
}
void arange(const Scalar&, OptDType, OptLayout, OptDevice, OptBool, Tensor& out) {
  if (out.numel() > 0) arange_stub(out.device(), out, 0, 1);
}

void linspace(const Scalar& start, const Scalar& end, int64_t steps, OptDType, OptLayout, OptDevice, OptBool,
              Tensor& out) {
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

void eye_m(int64_t, int64_t, OptDType, OptLayout, OptDevice, OptBool, Tensor& out) {
  fill_elements(ops::diagonal(out, 0, 0, 1), 1, "eye");
}
void eye(int64_t n, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory, Tensor& out) {
  eye_m(n, n, dtype, layout, device, pin_memory, out);
}

}  // namespace tenon::ops
