#include "tenon/core/tensor_impl.h"

#include <fmt/core.h>

#include <algorithm>
#include <new>

#include "tenon/core/error.h"
#include "tenon/core/small_alloc.h"
#include "tenon/core/thread_state.h"

namespace tenon {

static_assert(sizeof(TensorImpl) <= 192, "a tensor is three cache lines");

uint32_t TensorImpl::make_identity() noexcept {
  static constinit std::atomic<uint32_t> last{0};
  uint32_t fresh = 0, none = 0;
  while (fresh == 0) fresh = last.fetch_add(1, std::memory_order_relaxed) + 1;
  // Another thread may have been first.
  return identity_.compare_exchange_strong(none, fresh, std::memory_order_relaxed) ? fresh : none;
}

TensorImpl::TensorImpl(Storage storage, DType dtype) noexcept
    : TensorHeader(dtype, storage->device(), DispatchKeySet(Functionality::Dense, storage->device().backend)),
      storage_(std::move(storage)) {
  inference_ = thread_state.inference_mode;
}

// Whether it takes part in autograd is decided by the Autograd layer and, through the base, by later writes.
TensorImpl::TensorImpl(const TensorImpl& source, IntrusivePtr<TensorImpl> base) noexcept
    : TensorHeader(source.dtype_, source.device_, source.keys_ - kAutogradKeys),
      storage_(source.storage_),
      base_(std::move(base)) {
  inference_ = source.inference_;
}

IntrusivePtr<TensorImpl> TensorImpl::make(Storage storage, DType dtype, IntArrayRef sizes) {
  check_known(dtype);
  auto* impl = new (small_allocate(sizeof(TensorImpl))) TensorImpl(std::move(storage), dtype);
  auto owner = IntrusivePtr<TensorImpl>::adopt(impl);
  impl->fill_contiguous(sizes);
  return owner;
}

IntrusivePtr<TensorImpl> TensorImpl::make(Storage storage, DType dtype, IntArrayRef sizes,
                                          IntArrayRef strides, int64_t offset,
                                          IntrusivePtr<TensorImpl> base) {
  check_known(dtype);
  auto* impl = new (small_allocate(sizeof(TensorImpl))) TensorImpl(std::move(storage), dtype);
  auto owner = IntrusivePtr<TensorImpl>::adopt(impl);
  impl->base_ = std::move(base);
  impl->offset_ = offset;
  impl->fill_geometry(sizes, strides);
  return owner;
}

IntrusivePtr<TensorImpl> TensorImpl::view(IntrusivePtr<TensorImpl> base, IntArrayRef sizes,
                                          IntArrayRef strides, int64_t offset) const {
  auto* impl = new (small_allocate(sizeof(TensorImpl))) TensorImpl(*this, std::move(base));
  auto owner = IntrusivePtr<TensorImpl>::adopt(impl);
  impl->offset_ = offset;
  impl->fill_geometry(sizes, strides);
  return owner;
}

void TensorImpl::set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  replace_geometry(sizes, strides);
  offset_ = offset;
  if (autograd_) [[unlikely]]
    autograd_->header_changed(*this);
}

void TensorImpl::set_dtype(DType dtype) {
  dtype_ = dtype;
  if (autograd_) [[unlikely]]
    autograd_->header_changed(*this);
}

void TensorImpl::set_device(Device device) {
  const DispatchKeySet old(functionality_of(layout_), device_.backend);
  const uint64_t others = keys_.bits() & ~(old - DispatchKeySet(functionality_of(layout_))).bits();
  keys_ = DispatchKeySet(others) | DispatchKeySet(functionality_of(layout_), device.backend);
  device_ = device;
  if (autograd_) [[unlikely]]
    autograd_->header_changed(*this);
}

void TensorImpl::destroy(TensorImpl* impl) noexcept {
  if (impl->binding_.on_destroy) [[unlikely]] {
    // A reference while it runs: it may take the tensor over after all. A sole owner has not counted down.
    auto kept = impl->use_count() == 0 ? IntrusivePtr<TensorImpl>::share(impl)
                                       : IntrusivePtr<TensorImpl>::adopt(impl);
    impl->binding_.on_destroy(impl->binding_.object);
    if (impl->use_count() > 1) return;
    (void)kept.release();
  }
  impl->~TensorImpl();
  small_free(impl, sizeof(TensorImpl));
}

void TensorImpl::set_layout(Layout layout) noexcept {
  const uint64_t others = keys_.bits() & ~DispatchKeySet(functionality_of(layout_)).bits();
  keys_ = DispatchKeySet(others) | DispatchKeySet(functionality_of(layout));
  layout_ = layout;
}

IntrusivePtr<TensorImpl> TensorImpl::alias(IntrusivePtr<TensorImpl> base) const {
  auto other = view(std::move(base), sizes(), strides(), offset_);
  other->layout_ = layout_;
  other->wrapped_number_ = wrapped_number_;
  other->extra_ = extra_;
  return other;
}

int64_t checked_numel(IntArrayRef sizes, const char* op) {
  int64_t numel = 1;
  bool overflow = false, empty = false;
  for (const int64_t s : sizes) {
    TENON_CHECK(s >= 0, Shape,
                fmt::format("{}: sizes {} contain the negative size {}", op, to_string(sizes), s));
    // Strides multiply every nonzero size, so even an empty tensor must have a product that fits.
    if (s == 0)
      empty = true;
    else
      overflow |= __builtin_mul_overflow(numel, s, &numel);
  }
  TENON_CHECK(!overflow, Shape,
              fmt::format("{}: sizes {} have more elements than int64 can count", op, to_string(sizes)));
  return empty ? 0 : numel;
}

Dims contiguous_strides(IntArrayRef sizes) {
  Dims strides(sizes.size());
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    // Unsigned: a dimension of no elements may come with sizes whose product overflows int64.
    next = static_cast<int64_t>(static_cast<uint64_t>(next) *
                                static_cast<uint64_t>(std::max<int64_t>(sizes[d], 1)));
  }
  return strides;
}

Extent extent(IntArrayRef sizes, IntArrayRef strides, const char* op) {
  Extent e;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return {};
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(sizes[d] - 1, strides[d], &reach);
    int64_t& end = reach < 0 ? e.low : e.high;
    overflow |= __builtin_add_overflow(end, reach, &end);
  }
  overflow |= __builtin_add_overflow(e.high, int64_t{1}, &e.high);
  TENON_CHECK(!overflow, Shape,
              fmt::format("{}: sizes {} with strides {} reach beyond int64", op, to_string(sizes),
                          to_string(strides)));
  return e;
}

}  // namespace tenon
