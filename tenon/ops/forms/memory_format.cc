#include "tenon/ops/forms/memory_format.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/core/device_runtime.h"
#include "tenon/core/error.h"

namespace tenon::ops::shape {

void set_memory(OutputSpecs& out, std::optional<Layout> layout, bool pin_memory, Device device,
                const char* op) {
  TENON_CHECK(layout.value_or(Layout::Strided) == Layout::Strided, NotImplemented,
              fmt::format("{}: Non strided layout not supported, got {}", op, name(*layout)));
  if (!pin_memory) return;
  TENON_CHECK(device.is_cpu(), Runtime, fmt::format("{}: Pin memory can only be on CPU", op));
  TENON_CHECK(pinned_allocator(), Runtime,
              fmt::format("{}: pin_memory needs a device that has pinned memory, and none is loaded", op));
  out.pin();
}

Dims channels_last_strides(IntArrayRef sizes) {
  Dims strides(sizes.size());
  int64_t next = 1;
  const auto place = [&](size_t d) {
    strides[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  };
  place(1);
  for (size_t d = sizes.size() - 1; d >= 2; --d) place(d);
  place(0);
  return strides;
}

Dims channels_last_strides(IntArrayRef sizes, MemoryFormat format, const char* op) {
  const size_t ndim = format == MemoryFormat::ChannelsLast ? 4 : 5;
  TENON_CHECK(
      sizes.size() == ndim, Shape,
      fmt::format("{}: channels-last needs a tensor of {} dimensions, got {}", op, ndim, to_string(sizes)));
  return channels_last_strides(sizes);
}

bool lies_channels_last(IntArrayRef sizes, IntArrayRef strides) {
  const size_t ndim = sizes.size();
  if (ndim != 4 && ndim != 5) return false;
  if (strides[1] == 0) return false;
  int64_t least = 0;
  const auto follows = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1])
      return false;  // one channel of one place: either order, so the usual one
    least = strides[d] * (sizes[d] > 1 ? sizes[d] : 1);
    return true;
  };
  if (!follows(1)) return false;
  for (size_t d = ndim - 1; d >= 2; --d) {
    if (!follows(d)) return false;
  }
  return follows(0);
}

void set_in_format(OutputSpecs& out, HeaderRef self, DType dtype, MemoryFormat format, const char* op,
                   Elements elements) {
  if (is_channels_last(format))
    out.set_strided(0, self.sizes(), channels_last_strides(self.sizes(), format, op), dtype, elements);
  else if (format == MemoryFormat::Contiguous)
    out.set(0, self.sizes(), dtype, elements);
  else
    out.set_like(0, self, dtype, elements);
}

}  // namespace tenon::ops::shape
