// TensorImpl: the implementation of a tensor: a header (sizes, strides, dtype, device, keys) over a shared
// storage, from an offset on. Used by Tensor, kernels and data exchange. Independent of operators and of
// how autograd works.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tenon/core/storage.h"
#include "tenon/core/tensor_header.h"

namespace tenon {

class TensorImpl;

/// What autograd keeps for a tensor; tenon/autograd derives from it. Most tensors have none.
struct AutogradMetaBase {
  virtual ~AutogradMetaBase() = default;
  /// The tensor has another shape or dtype from now on.
  virtual void header_changed(const TensorImpl& tensor) = 0;
};

/// What a layout other than strided keeps besides the storage, such as indices and values, or a vendor's
/// descriptor. Aliases of the tensor share it.
struct LayoutExtra : RefCounted {
  virtual ~LayoutExtra() = default;
  static void destroy(LayoutExtra* extra) noexcept { delete extra; }
};

/// Where a language binding keeps its object for this tensor. `on_destroy` runs when the tensor is destroyed.
struct BindingSlot {
  void* object = nullptr;
  void (*on_destroy)(void* object) noexcept = nullptr;
};

// The header first: the count and `identity_` share a word after it.
class TensorImpl final : public TensorHeader, public RefCounted {
 public:
  /// Makes a tensor over `storage`, contiguous unless strides are given, with the keys of dense elements on
  /// the storage's device. `base` is the tensor whose history it shares as a view, or null. Every tensor has
  /// a storage, which names the device and counts versions; it is empty if the layout keeps the elements
  /// elsewhere.
  static IntrusivePtr<TensorImpl> make(Storage storage, DType dtype, IntArrayRef sizes);
  static IntrusivePtr<TensorImpl> make(Storage storage, DType dtype, IntArrayRef sizes, IntArrayRef strides,
                                       int64_t offset, IntrusivePtr<TensorImpl> base = nullptr);
  /// A view of the same storage, with the same functionality and other sizes and strides. It shares the
  /// history of `base`, which is null or has this tensor's history.
  IntrusivePtr<TensorImpl> view(IntrusivePtr<TensorImpl> base, IntArrayRef sizes, IntArrayRef strides,
                                int64_t offset) const;
  /// A tensor of the same elements, layout and keys that does not share this one's history.
  IntrusivePtr<TensorImpl> alias(IntrusivePtr<TensorImpl> base) const;
  static void destroy(TensorImpl* impl) noexcept;

  int64_t offset() const noexcept { return offset_; }
  const Storage& storage() const noexcept { return storage_; }

  /// The address of element [0, ..., 0] on the storage's device.
  Address address() const {
    return storage_.address() + static_cast<uint64_t>(offset_ * static_cast<int64_t>(item_size(dtype())));
  }
  /// The address of element [0, ..., 0] as a host pointer; meaningful for host storages only.
  void* data() const { return reinterpret_cast<void*>(address()); }

  /// The keys that this tensor adds to a call: its own and, for a view, its base's Autograd bit, because an
  /// in-place write may have made the base differentiable since the view was made.
  DispatchKeySet keys() const noexcept {
    if (base_) [[unlikely]]
      return own_keys() | (base_->own_keys() & kAutogradKeys);
    return own_keys();
  }
  void set_keys(DispatchKeySet keys) noexcept { keys_ = keys; }

  const IntrusivePtr<TensorImpl>& base() const noexcept { return base_; }
  void set_base(IntrusivePtr<TensorImpl> base) noexcept { base_ = std::move(base); }

  /// Whether the tensor was made in inference mode; if so, it never takes part in autograd.
  bool is_inference() const noexcept { return inference_; }
  void set_inference(bool on) noexcept { inference_ = on; }
  void set_wrapped_number(bool on) noexcept { wrapped_number_ = on; }

  /// A number that no other tensor has, aliases included. With it, a graph recognises a tensor that it does
  /// not own. Assigned at the first call.
  uint32_t identity() noexcept {
    const uint32_t id = identity_.load(std::memory_order_relaxed);
    return id != 0 ? id : make_identity();
  }
  /// The identity, or 0 if it was never asked for.
  uint32_t known_identity() const noexcept { return identity_.load(std::memory_order_relaxed); }

  /// Replaces sizes, strides and offset. The caller has checked that the tensor stays inside the storage.
  void set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t offset);
  /// Exchanges two dimensions of a view that was just made.
  using TensorHeader::swap_dims;
  void set_storage(Storage storage) noexcept { storage_ = std::move(storage); }
  void set_dtype(DType dtype);
  /// Says that the storage, set before or after, is on another device: its key takes the place of the old
  /// one.
  void set_device(Device device);
  /// Replaces the layout, and with it the functionality in the tensor's keys.
  void set_layout(Layout layout) noexcept;

  AutogradMetaBase* autograd_meta() const noexcept { return autograd_.get(); }
  void set_autograd_meta(std::unique_ptr<AutogradMetaBase> meta) noexcept { autograd_ = std::move(meta); }
  LayoutExtra* extra() const noexcept { return extra_.get(); }
  void set_extra(IntrusivePtr<LayoutExtra> extra) noexcept { extra_ = std::move(extra); }
  BindingSlot& binding() noexcept { return binding_; }

 private:
  TensorImpl(Storage storage, DType dtype) noexcept;
  /// Another tensor over `source`'s storage, without a geometry yet.
  TensorImpl(const TensorImpl& source, IntrusivePtr<TensorImpl> base) noexcept;
  ~TensorImpl() = default;

  uint32_t make_identity() noexcept;

  std::atomic<uint32_t> identity_{0};
  Storage storage_;
  int64_t offset_ = 0;
  IntrusivePtr<TensorImpl> base_;
  std::unique_ptr<AutogradMetaBase> autograd_;
  IntrusivePtr<LayoutExtra> extra_;
  BindingSlot binding_;
};

/// The number of elements of a shape. Throws Error{Shape} for a negative size or a product beyond int64.
int64_t checked_numel(IntArrayRef sizes, const char* op);
/// Strides of a contiguous tensor of these sizes, in elements.
Dims contiguous_strides(IntArrayRef sizes);
/// The range of elements that a view reaches: [low, high) relative to the view's offset, empty for a view
/// without elements. Throws Error{Shape} for a range beyond int64.
struct Extent {
  int64_t low = 0;
  int64_t high = 0;
};
Extent extent(IntArrayRef sizes, IntArrayRef strides, const char* op);

}  // namespace tenon
