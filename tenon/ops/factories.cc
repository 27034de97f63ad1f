// Operators that make tensors from sizes and numbers.
#include <fmt/core.h>

#include <cmath>

#include "tenon/generated/factory/bodies.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements.h"
#include "tenon/ops/geometry.h"

namespace tenon::ops {
namespace {

using OptDType = std::optional<DType>;
using OptLayout = std::optional<Layout>;
using OptDevice = std::optional<Device>;
using OptBool = std::optional<bool>;
using OptFormat = std::optional<MemoryFormat>;

void check_layout(OptLayout layout, OptBool pin_memory, Device device, const char* op) {
  TENON_CHECK(layout.value_or(Layout::Strided) == Layout::Strided, NotImplemented,
              fmt::format("{}: Non strided layout not supported, got {}", op, name(*layout)));
  if (pin_memory.value_or(false)) {
    TENON_CHECK(device.is_cpu(), Runtime, fmt::format("{}: Pin memory can only be on CPU", op));
    throw_error(ErrorKind::NotImplemented,
                fmt::format("{}: pin_memory needs an accelerator, and none is loaded", op));
  }
}

Tensor make(IntArrayRef size, DType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
            const char* op) {
  const Device where = device.value_or(kCPU);
  check_layout(layout, pin_memory, where, op);
  return make_empty(size, dtype, where);
}

Tensor make_full(IntArrayRef size, const Scalar& value, DType dtype, OptLayout layout, OptDevice device,
                 OptBool pin_memory, const char* op) {
  if (value.is_integral() && value.to_int() == 0) {
    const Device where = device.value_or(kCPU);
    check_layout(layout, pin_memory, where, op);
    return make_zeros(size, dtype, where);
  }
  Tensor result = make(size, dtype, layout, device, pin_memory, op);
  fill_elements(result, value, op);
  return result;
}

/// A channels-last wish, as strides.
Dims format_strides(IntArrayRef sizes, MemoryFormat format, const char* op) {
  const size_t ndim = format == MemoryFormat::ChannelsLast ? 4 : 5;
  TENON_CHECK(
      sizes.size() == ndim, Shape,
      fmt::format("{}: channels-last needs a tensor of {} dimensions, got {}", op, ndim, to_string(sizes)));
  Dims strides(ndim);
  int64_t next = 1;
  const auto place = [&](size_t d) {
    strides[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  };
  place(1);
  for (size_t d = ndim - 1; d >= 2; --d) place(d);
  place(0);
  return strides;
}

bool channels_last(MemoryFormat f) {
  return f == MemoryFormat::ChannelsLast || f == MemoryFormat::ChannelsLast3d;
}

}  // namespace

Tensor empty(IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
             OptFormat memory_format) {
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Contiguous);
  TENON_CHECK(format != MemoryFormat::Preserve, Value,
              "empty: memory_format preserve needs a tensor to preserve; use empty_like");
  if (!channels_last(format))
    return make(size, dtype.value_or(default_dtype()), layout, device, pin_memory, "empty");
  check_layout(layout, pin_memory, device.value_or(kCPU), "empty");
  return make_empty_strided(size, format_strides(size, format, "empty"), dtype.value_or(default_dtype()),
                            device.value_or(kCPU));
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, OptDType dtype, OptLayout layout, OptDevice device,
                     OptBool pin_memory) {
  TENON_CHECK(
      size.size() == stride.size(), Shape,
      fmt::format("empty_strided: dimensionality of sizes ({}) must match dimensionality of strides ({})",
                  size.size(), stride.size()));
  check_layout(layout, pin_memory, device.value_or(kCPU), "empty_strided");
  return make_empty_strided(size, stride, dtype.value_or(default_dtype()), device.value_or(kCPU));
}

Tensor empty_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                  OptFormat memory_format) {
  const Device where = device.value_or(self.device());
  check_layout(layout, pin_memory, where, "empty_like");
  const DType type = dtype.value_or(self.dtype());
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  if (channels_last(format)) {
    return make_empty_strided(self.sizes(), format_strides(self.sizes(), format, "empty_like"), type, where);
  }
  if (format == MemoryFormat::Contiguous || self.is_contiguous())
    return make_empty(self.sizes(), type, where);
  return make_empty_strided(self.sizes(), preserved_strides(self.sizes(), self.strides()), type, where);
}

Tensor full(IntArrayRef size, const Scalar& fill_value, OptDType dtype, OptLayout layout, OptDevice device,
            OptBool pin_memory) {
  return make_full(size, fill_value, dtype.value_or(fill_value.dtype()), layout, device, pin_memory, "full");
}
Tensor zeros(IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return make_full(size, 0, dtype.value_or(default_dtype()), layout, device, pin_memory, "zeros");
}
Tensor ones(IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return make_full(size, 1, dtype.value_or(default_dtype()), layout, device, pin_memory, "ones");
}
Tensor scalar_tensor(const Scalar& s, OptDType dtype, OptLayout layout, OptDevice device,
                     OptBool pin_memory) {
  return make_full({}, s, dtype.value_or(default_dtype()), layout, device, pin_memory, "scalar_tensor");
}

Tensor full_like(const Tensor& self, const Scalar& fill_value, OptDType dtype, OptLayout layout,
                 OptDevice device, OptBool pin_memory, OptFormat memory_format) {
  Tensor result = ops::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  fill_elements(result, fill_value, "full_like");
  return result;
}
Tensor zeros_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                  OptFormat memory_format) {
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  if (format == MemoryFormat::Contiguous || (format == MemoryFormat::Preserve && self.is_contiguous())) {
    const Device where = device.value_or(self.device());
    check_layout(layout, pin_memory, where, "zeros_like");
    return make_zeros(self.sizes(), dtype.value_or(self.dtype()), where);
  }
  Tensor result = ops::empty_like(self, dtype, layout, device, pin_memory, memory_format);
  zero_elements(result);
  return result;
}
Tensor ones_like(const Tensor& self, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory,
                 OptFormat memory_format) {
  return ops::full_like(self, 1, dtype, layout, device, pin_memory, memory_format);
}

Tensor new_empty(const Tensor& self, IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device,
                 OptBool pin_memory) {
  return make(size, dtype.value_or(self.dtype()), layout, device.value_or(self.device()), pin_memory,
              "new_empty");
}
Tensor new_full(const Tensor& self, IntArrayRef size, const Scalar& fill_value, OptDType dtype,
                OptLayout layout, OptDevice device, OptBool pin_memory) {
  return make_full(size, fill_value, dtype.value_or(self.dtype()), layout, device.value_or(self.device()),
                   pin_memory, "new_full");
}
Tensor new_ones(const Tensor& self, IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device,
                OptBool pin_memory) {
  return ops::new_full(self, size, 1, dtype, layout, device, pin_memory);
}
Tensor new_zeros(const Tensor& self, IntArrayRef size, OptDType dtype, OptLayout layout, OptDevice device,
                 OptBool pin_memory) {
  return ops::new_full(self, size, 0, dtype, layout, device, pin_memory);
}

Tensor arange_start_step(const Scalar& start, const Scalar& end, const Scalar& step, OptDType dtype,
                         OptLayout layout, OptDevice device, OptBool pin_memory) {
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
  Tensor result = make({count}, type, layout, device, pin_memory, "arange");
  if (count > 0 && !result.is_meta()) arange_stub(result.device(), result, start, step);
  return result;
}
Tensor arange_start(const Scalar& start, const Scalar& end, OptDType dtype, OptLayout layout,
                    OptDevice device, OptBool pin_memory) {
  return arange_start_step(start, end, 1, dtype, layout, device, pin_memory);
}
Tensor arange(const Scalar& end, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return arange_start_step(0, end, 1, dtype, layout, device, pin_memory);
}

Tensor linspace(const Scalar& start, const Scalar& end, int64_t steps, OptDType dtype, OptLayout layout,
                OptDevice device, OptBool pin_memory) {
  TENON_CHECK(steps >= 0, Value,
              fmt::format("linspace: number of steps must be non-negative, got {}", steps));
  const bool complex = start.is_complex() || end.is_complex();
  const DType type = dtype.value_or(complex ? complex_dtype(default_dtype()) : default_dtype());
  TENON_CHECK(!complex || is_complex(type), Type,
              fmt::format("linspace: complex bounds need a complex dtype, got {}", name(type)));
  Tensor result = make({steps}, type, layout, device, pin_memory, "linspace");
  if (is_complex(type) && steps > 0 && !result.is_meta()) {
    // Both parts are evenly spaced.
    for (const int64_t i : {0, 1}) {
      const auto part = [i](const Scalar& s) {
        return i == 0 ? s.to_complex().real() : s.to_complex().imag();
      };
      copy_elements(
          part_of(result, i),
          ops::linspace(part(start), part(end), steps, real_dtype(type), layout, device, pin_memory),
          "linspace");
    }
    return result;
  }
  if (steps > 0 && !result.is_meta())
    linspace_stub(result.device(), result, start.to_double(), end.to_double());
  return result;
}

Tensor eye_m(int64_t n, int64_t m, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  TENON_CHECK(n >= 0 && m >= 0, Value, fmt::format("eye: n and m must not be negative, got {} and {}", n, m));
  Tensor result = make_full({n, m}, 0, dtype.value_or(default_dtype()), layout, device, pin_memory, "eye");
  fill_elements(ops::diagonal(result, 0, 0, 1), 1, "eye");
  return result;
}
Tensor eye(int64_t n, OptDType dtype, OptLayout layout, OptDevice device, OptBool pin_memory) {
  return eye_m(n, n, dtype, layout, device, pin_memory);
}

}  // namespace tenon::ops
