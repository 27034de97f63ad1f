// Shapes of factories. The device comes from the call: the one asked for, or that of `self`.
#include <fmt/core.h>

#include <cmath>

#include "tenon/generated/factory/shapes.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/factory/filled.h"

namespace tenon::ops::shape {

void set_new(OutputSpecs& out, IntArrayRef size, DType dtype, OptLayout layout, OptDevice device,
             OptBool pin_memory, const char* op, Elements elements) {
  check_memory(out, layout, pin_memory, device.value_or(kCPU), op);
  out.set(0, size, dtype, elements);
}

void set_new_like(OutputSpecs& out, HeaderRef self, OptDType dtype, OptLayout layout, OptDevice device,
                  OptBool pin_memory, OptFormat memory_format, Elements elements) {
  check_memory(out, layout, pin_memory, device.value_or(self.device()), "empty_like");
  set_in_format(out, self, dtype.value_or(self.dtype()), memory_format.value_or(MemoryFormat::Preserve),
                "empty_like", elements);
}

void empty(OutputSpecs& out, IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device,
           OptBool pin_memory, OptFormat memory_format) {
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  TENON_CHECK(format != MemoryFormat::Preserve, Value,
              "empty: memory_format preserve needs a tensor to preserve; use empty_like");
  check_memory(out, layout, pin_memory, device.value_or(kCPU), "empty");
  const DType type = dtype.value_or(default_dtype());
  if (is_channels_last(format)) [[unlikely]]
    out.set_strided(0, size, channels_last_strides(size, format, "empty"), type);
  else
    out.set(0, size, type);
}

void empty_strided(OutputSpecs& out, IntArrayRef size, IntArrayRef stride, OptDType dtype, OptLayout layout,
                   OptDevice device, OptBool pin_memory) {
  TENON_CHECK(
      size.size() == stride.size(), Shape,
      fmt::format("empty_strided: dimensionality of sizes ({}) must match dimensionality of strides ({})",
                  size.size(), stride.size()));
  check_memory(out, layout, pin_memory, device.value_or(kCPU), "empty_strided");
  out.set_strided(0, size, stride, dtype.value_or(default_dtype()));
}

void empty_like(OutputSpecs& out, HeaderRef self, OptDType dtype, OptLayout layout, OptDevice device,
                OptBool pin_memory, OptFormat memory_format) {
  set_new_like(out, self, dtype, layout, device, pin_memory, memory_format, Elements::Any);
}

void full(OutputSpecs& out, IntArrayRef size, const Scalar& fill_value, OptDType dtype, OptLayout layout,
          OptDevice device, OptBool pin_memory) {
  const DType type = dtype.value_or(fill_value.dtype());
  check_fits(fill_value, type, "full");
  set_new(out, size, type, layout, device, pin_memory, "full", elements_of(fill_value));
}

void full_like(OutputSpecs& out, HeaderRef self, const Scalar& fill_value, OptDType dtype, OptLayout layout,
               OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  check_fits(fill_value, dtype.value_or(self.dtype()), "full_like");
  set_new_like(out, self, dtype, layout, device, pin_memory, memory_format, elements_of(fill_value));
}

void scalar_tensor(OutputSpecs& out, const Scalar& s, OptDType dtype, OptLayout layout, OptDevice device,
                   OptBool pin_memory) {
  const DType type = dtype.value_or(default_dtype());
  check_fits(s, type, "scalar_tensor");
  set_new(out, {}, type, layout, device, pin_memory, "scalar_tensor", elements_of(s));
}

void new_full(OutputSpecs& out, HeaderRef self, IntArrayRef size, const Scalar& fill_value, OptDType dtype,
              OptLayout layout, OptDevice device, OptBool pin_memory) {
  check_fits(fill_value, dtype.value_or(self.dtype()), "new_full");
  set_new(out, size, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pin_memory,
          "new_full", elements_of(fill_value));
}

void arange_start_step(OutputSpecs& out, const Scalar& start, const Scalar& end, const Scalar& step,
                       OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  for (const Scalar* s : {&start, &end, &step})
    TENON_CHECK(!s->is_complex(), Type, "arange: the bounds and the step must be real numbers");
  const bool integers = start.is_integral() && end.is_integral() && step.is_integral();
  const DType type = dtype.value_or(integers ? DType::Int64 : default_dtype());
  const auto check_direction = [](bool nonzero, bool consistent) {
    TENON_CHECK(nonzero, Value, "arange: step must be nonzero");
    TENON_CHECK(consistent, Value, "arange: upper bound and lower bound inconsistent with step sign");
  };
  int64_t count = 0;
  if (integers) {
    const int64_t first = start.to_int(), stop = end.to_int(), by = step.to_int();
    check_direction(by != 0, by > 0 ? stop >= first : stop <= first);
    const uint64_t distance = by > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(first)
                                     : static_cast<uint64_t>(first) - static_cast<uint64_t>(stop);
    const uint64_t magnitude = by > 0 ? static_cast<uint64_t>(by) : 0 - static_cast<uint64_t>(by);
    const uint64_t steps = distance / magnitude + (distance % magnitude != 0);
    TENON_CHECK(steps <= static_cast<uint64_t>(INT64_MAX), Shape,
                fmt::format("arange: {} elements are more than int64 can count", steps));
    count = static_cast<int64_t>(steps);
  } else {
    const double first = start.to_double(), stop = end.to_double(), by = step.to_double();
    TENON_CHECK(std::isfinite(first) && std::isfinite(stop), Value,
                fmt::format("arange: unsupported range: {} -> {}", first, stop));
    check_direction(by != 0 && !std::isnan(by), by > 0 ? stop >= first : stop <= first);
    const double steps = std::ceil((stop - first) / by);
    TENON_CHECK(steps >= 0 && steps < 0x1p63, Shape,
                fmt::format("arange: {} elements are more than int64 can count", steps));
    count = static_cast<int64_t>(steps);
  }
  TENON_CHECK(type != DType::Bool && !is_complex(type), NotImplemented,
              fmt::format("arange: not implemented for {}", name(type)));
  set_new(out, {count}, type, layout, device, pin_memory, "arange");
}

void linspace(OutputSpecs& out, const Scalar& start, const Scalar& end, int64_t steps, OptDType dtype,
              OptLayout layout, OptDevice device, OptBool pin_memory) {
  TENON_CHECK(steps >= 0, Value,
              fmt::format("linspace: number of steps must be non-negative, got {}", steps));
  const bool complex = start.is_complex() || end.is_complex();
  const DType type = dtype.value_or(complex ? complex_dtype(default_dtype()) : default_dtype());
  TENON_CHECK(!complex || is_complex(type), Type,
              fmt::format("linspace: complex bounds need a complex dtype, got {}", name(type)));
  set_new(out, {steps}, type, layout, device, pin_memory, "linspace");
}

void eye_m(OutputSpecs& out, int64_t n, int64_t m, OptDType dtype, OptLayout layout, OptDevice device,
           OptBool pin_memory) {
  TENON_CHECK(n >= 0 && m >= 0, Value, fmt::format("eye: n and m must not be negative, got {} and {}", n, m));
  set_new(out, {n, m}, dtype.value_or(default_dtype()), layout, device, pin_memory, "eye", Elements::Zero);
}

}  // namespace tenon::ops::shape
