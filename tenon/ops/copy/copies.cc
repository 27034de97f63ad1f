// Operators that copy, convert, fill and read elements.
#include <fmt/core.h>

#include "tenon/core/device_runtime.h"
#include "tenon/core/stream.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/copy/bodies.h"
#include "tenon/generated/copy/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/iter/overlap.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops {

Tensor contiguous(const Tensor& self, MemoryFormat memory_format) {
  TENON_CHECK(memory_format != MemoryFormat::Preserve, Value,
              "contiguous: memory_format preserve is not a format to be contiguous in");
  return self.is_contiguous(memory_format) ? self : self.clone(memory_format);
}

Tensor _copy_from_and_resize(const Tensor& self, const Tensor& dst) {
  // Before `dst` is resized.
  TENON_CHECK(!self.is_meta() || dst.is_meta() || self.numel() == 0, NotImplemented,
              "_copy_from_and_resize: cannot copy out of a meta tensor; it has no data");
  return dst.resize_(self.sizes()).copy_(self);
}

bool is_pinned(const Tensor& self, std::optional<Device>) {
  return self.device().is_cpu() && self.layout() == Layout::Strided &&
         tenon::is_pinned(self.storage()->allocator());
}

Tensor pin_memory(const Tensor& self, std::optional<Device> device) {
  TENON_CHECK(
      self.device().is_cpu() && self.layout() == Layout::Strided, Runtime,
      fmt::format(
          "pin_memory: cannot pin a {} tensor of layout {} on {}: only dense CPU tensors can be pinned",
          name(self.dtype()), name(self.layout()), to_string(self.device())));
  return ops::is_pinned(self, device) ? self : tenon::_pin_memory(self, device);
}

Tensor to_dtype_layout(const Tensor& self, std::optional<DType> dtype, std::optional<Layout> layout,
                       std::optional<Device> device, std::optional<bool> pin_memory, bool non_blocking,
                       bool copy, std::optional<MemoryFormat> memory_format) {
  const MemoryFormat format = memory_format.value_or(MemoryFormat::Preserve);
  const bool same =
      dtype.value_or(self.dtype()) == self.dtype() && layout.value_or(self.layout()) == self.layout() &&
      same_device(device.value_or(self.device()), self.device()) && !pin_memory.value_or(false) &&
      (format == MemoryFormat::Preserve || self.is_contiguous(format));
  if (same && !copy) return self;
  TensorOptions options;
  options.dtype_opt = dtype;
  options.layout_opt = layout;
  options.device_opt = device;
  options.pinned_memory_opt = pin_memory;
  return tenon::_to_copy(self, options, non_blocking, memory_format);
}

void fill__Tensor(Tensor& self, const Tensor& value) {
  if (!overlaps_itself(self.sizes(), self.strides())) return copy_elements(self, value, "fill_");
  Tensor one = make_empty({}, self.dtype(), self.device());
  copy_elements(one, value, "fill_");
  fill_elements(self, read_scalar(one), "fill_");
}

Scalar item(const Tensor& self) {
  TENON_CHECK(self.numel() == 1, Runtime,
              fmt::format("item: a Tensor with {} elements cannot be converted to Scalar", self.numel()));
  return tenon::_local_scalar_dense(self);
}

bool is_nonzero(const Tensor& self) {
  TENON_CHECK(self.numel() != 0, Runtime, "is_nonzero: Boolean value of Tensor with no values is ambiguous");
  TENON_CHECK(self.numel() == 1, Runtime,
              "is_nonzero: Boolean value of Tensor with more than one value is ambiguous");
  return self.item().to_bool();
}

bool equal(const Tensor& self, const Tensor& other) {
  TENON_CHECK(self.device() == other.device(), Device,
              fmt::format("equal: `self` is on {}, `other` on {}", to_string(self.device()),
                          to_string(other.device())));
  TENON_CHECK(!self.is_meta(), NotImplemented, "equal: a meta tensor has no data");
  if (!(self.sizes() == other.sizes())) return false;
  if (self.dtype() != other.dtype()) {
    const DType common = promote_types(self.dtype(), other.dtype());
    return ops::equal(self.to(common), other.to(common));
  }
  return self.numel() == 0 || equal_stub(self.device(), self, other);
}

Tensor isclose(const Tensor& self, const Tensor& other, double rtol, double atol, bool equal_nan) {
  TENON_CHECK(
      self.dtype() == other.dtype(), Type,
      fmt::format("isclose: `other` is {}, expected {} as `self`", name(other.dtype()), name(self.dtype())));
  TENON_CHECK(rtol >= 0 && atol >= 0, Value,
              fmt::format("isclose: rtol and atol must be at least zero, but got {} and {}", rtol, atol));
  Tensor close = tenon::eq(self, other);
  if (equal_nan)
    close = tenon::logical_or(close, tenon::logical_and(tenon::isnan(self), tenon::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  const bool real = !is_integral(self.dtype(), true);
  const Tensor a = real ? self : self.to(kFloat64), b = real ? other : other.to(kFloat64);
  const Tensor allowed = tenon::add(tenon::abs(tenon::mul(b, Scalar(rtol))), Scalar(atol));
  const Tensor distance = tenon::abs(tenon::sub(a, b));
  // An infinite distance is within an infinite allowance, but not close.
  return tenon::logical_or(close,
                           tenon::logical_and(tenon::isfinite(distance), tenon::le(distance, allowed)));
}

namespace {

/// Makes `self` show elements of `source`. Everything is checked before it changes.
Tensor& show_storage(Tensor& self, const Storage& source, int64_t storage_offset, IntArrayRef size,
                     IntArrayRef stride) {
  TENON_CHECK(source->device() == self.device(), Device,
              fmt::format("set_: `self` is on {}, `source` on {}", to_string(self.device()),
                          to_string(source->device())));
  TENON_CHECK(!self.is_view(), NotImplemented,
              "set_: `self` is a view, whose history is that of its base; use detach() first");
  TENON_CHECK(size.size() == stride.size(), Shape,
              fmt::format("set_: mismatch in length of strides and shape: {} and {}", to_string(size),
                          to_string(stride)));
  checked_numel(size, "set_");
  TENON_CHECK(storage_offset >= 0, Value,
              fmt::format("set_: storage_offset must not be negative, got {}", storage_offset));
  const Extent e = extent(size, stride, "set_");
  const auto held = static_cast<int64_t>(source.nbytes() / self.itemsize());
  TENON_CHECK(
      e.high == e.low || (storage_offset + e.low >= 0 && e.high <= held && storage_offset <= held - e.high),
      Shape,
      fmt::format("set_: sizes {}, strides {}, storage offset {} reach outside the storage of {} elements",
                  to_string(size), to_string(stride), storage_offset, held));
  self.impl()->set_storage(source);
  self.impl()->set_geometry(size, stride, storage_offset);
  return self;
}

}  // namespace

Tensor& set__source_Tensor(Tensor& self, const Tensor& source) {
  TENON_CHECK(
      self.dtype() == source.dtype(), Type,
      fmt::format("set_: `source` is {}, expected {} as `self`", name(source.dtype()), name(self.dtype())));
  return show_storage(self, source.storage(), source.storage_offset(), source.sizes(), source.strides());
}

Tensor& set__source_Storage(Tensor& self, const Storage& source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.itemsize());
  return self.set_(source, 0, {elements}, {1});
}

Tensor& set__source_Storage_storage_offset(Tensor& self, const Storage& source, int64_t storage_offset,
                                           IntArrayRef size, IntArrayRef stride) {
  checked_numel(size, "set_");
  if (!stride.empty()) return show_storage(self, source, storage_offset, size, stride);
  return show_storage(self, source, storage_offset, size, contiguous_strides(size));
}

Tensor& resize_(Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  const int64_t numel = checked_numel(size, "resize_");
  TENON_CHECK(memory_format.value_or(MemoryFormat::Contiguous) == MemoryFormat::Contiguous, NotImplemented,
              "resize_: only the contiguous memory format is supported");
  TENON_CHECK(!self.requires_grad(), Runtime, "resize_: cannot resize variables that require grad");
  if (self.sizes() == size) return self;
  int64_t elements = 0, bytes = 0;
  TENON_CHECK(!__builtin_add_overflow(numel, self.storage_offset(), &elements) &&
                  !__builtin_mul_overflow(elements, static_cast<int64_t>(self.itemsize()), &bytes),
              Shape, fmt::format("resize_: sizes {} have more bytes than int64 can count", to_string(size)));
  if (numel > 0 && static_cast<uint64_t>(bytes) > self.storage().nbytes()) {
    Storage storage = self.storage();
    storage.resize(static_cast<size_t>(bytes));
  }
  self.impl()->set_geometry(size, contiguous_strides(size), self.storage_offset());
  return self;
}

}  // namespace tenon::ops
