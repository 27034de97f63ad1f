// For kernels that make tensors from sizes (empty, empty_strided): what it means that an option is absent,
// and new tensors out of a device's memory, under PyTorch's names. Header-only, C++17.
#pragma once

#include "tenon/abi/kernel.h"

namespace tenon::abi {

/// The device that a factory is asked for: without one, or without its index, the current one of the call's
/// backend.
inline TenonDevice device_or_default(std::optional<TenonDevice> device, const Call& call) noexcept {
  const TenonDevice current = call.stream().device;
  if (!device) return current;
  if (device->backend == current.backend && device->index < 0) return current;
  return *device;
}
/// Without a dtype it is Tenon's default one (`tenon.set_default_dtype`). Needs version 1.2 of the interface.
inline TenonDType dtype_or_default(std::optional<TenonDType> dtype) {
  if (dtype) return *dtype;
  if (!has(&TenonHost::default_dtype))
    throw Error(TENON_ERROR_NOT_IMPLEMENTED, "this Tenon does not tell its default dtype; give one");
  return host().default_dtype();
}
inline Layout layout_or_default(std::optional<Layout> layout) noexcept {
  return layout.value_or(Layout::Strided);
}
inline bool pinned_memory_or_default(std::optional<bool> pinned) noexcept { return pinned.value_or(false); }

/// Where new tensors of a device get their memory: Tenon's caching allocator over `raw_alloc`. It gives
/// memory in the order of the current stream.
class Allocator {
 public:
  explicit Allocator(TenonDevice device) noexcept : device_(device) {}
  TenonDevice device() const noexcept { return device_; }
  /// A tensor without values. `strides` null: contiguous.
  Tensor allocate(const IntList& sizes, const int64_t* strides, TenonDType dtype) const {
    TenonTensor* out = nullptr;
    check(host().tensor_empty(sizes.data, strides, sizes.size, dtype, device_, &out));
    return Tensor::adopt(out);
  }

 private:
  TenonDevice device_;
};
inline Allocator get_allocator(TenonDevice device) noexcept { return Allocator(device); }

/// A tensor of a memory format: contiguous, or channels last, in 4 dimensions or 5.
inline Tensor empty_generic(const IntList& sizes, const Allocator& allocator, TenonDType dtype,
                            std::optional<MemoryFormat> format = {}) {
  const MemoryFormat wanted = format.value_or(MemoryFormat::Contiguous);
  if (wanted == MemoryFormat::Contiguous) return allocator.allocate(sizes, nullptr, dtype);
  if (wanted == MemoryFormat::Preserve)
    throw Error(TENON_ERROR_VALUE, "memory_format preserve needs a tensor to preserve");
  const size_t ndim = wanted == MemoryFormat::ChannelsLast ? 4 : 5;
  if (sizes.size != ndim)
    throw Error(TENON_ERROR_SHAPE, "channels-last needs a tensor of " + std::to_string(ndim) +
                                       " dimensions, got " + std::to_string(sizes.size));
  std::vector<int64_t> strides(ndim);
  int64_t step = 1;
  const auto place = [&](size_t d) {
    strides[d] = step;
    step *= sizes[d] > 1 ? sizes[d] : 1;
  };
  place(1);
  for (size_t d = ndim - 1; d > 1; --d) place(d);
  place(0);
  return allocator.allocate(sizes, strides.data(), dtype);
}
/// A tensor of the given strides.
inline Tensor empty_strided_generic(const IntList& sizes, const IntList& strides, const Allocator& allocator,
                                    TenonDType dtype) {
  if (sizes.size != strides.size)
    throw Error(TENON_ERROR_SHAPE, "dimensionality of sizes (" + std::to_string(sizes.size) +
                                       ") must match dimensionality of strides (" +
                                       std::to_string(strides.size) + ")");
  return allocator.allocate(sizes, strides.data, dtype);
}

}  // namespace tenon::abi
