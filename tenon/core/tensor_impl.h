// TensorImpl: what a tensor is: a header (sizes, strides, dtype, device, keys) over a place in a shared
// storage. Used by Tensor, kernels and borders. Knows nothing of operators and nothing of how autograd works.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "tenon/core/storage.h"
#include "tenon/core/tensor_header.h"

namespace tenon {

class TensorImpl;

/// What autograd keeps for a tensor; the room autograd/ derives from it. Null for the many tensors that need
/// none.
struct AutogradMetaBase {
  virtual ~AutogradMetaBase() = default;
};

/// What a layout other than strided keeps beside the storage (indices and values, a vendor's descriptor).
/// Aliases of the tensor share it.
struct LayoutExtra : RefCounted {
  virtual ~LayoutExtra() = default;
  static void destroy(LayoutExtra* extra) noexcept { delete extra; }
};

/// What a language binding keeps: its own object for this tensor. `on_destroy` runs when the tensor dies.
struct BindingSlot {
  void* object = nullptr;
  void (*on_destroy)(void* object) noexcept = nullptr;
};

// The header first: the count and `identity_` share a word behind it.
class TensorImpl final : public TensorHeader, public RefCounted {
 public:
  /// Every tensor has a storage, one whose layout keeps its elements elsewhere an empty one: it names the
  /// device and counts versions. A new view of `storage`, contiguous unless strides are given; the keys are
  /// those of dense elements on the storage's device. `base` is the tensor whose history the view shares, or
  /// null.
  static IntrusivePtr<TensorImpl> make(Storage storage, DType dtype, IntArrayRef sizes);
  static IntrusivePtr<TensorImpl> make(Storage storage, DType dtype, IntArrayRef sizes, IntArrayRef strides,
                                       int64_t offset, IntrusivePtr<TensorImpl> base = nullptr);
  /// A view of the same storage and functionality with another geometry. It shares the history of `base`,
  /// which is null or keeps this one's.
  IntrusivePtr<TensorImpl> view(IntrusivePtr<TensorImpl> base, IntArrayRef sizes, IntArrayRef strides,
                                int64_t offset) const;
  /// A tensor of the same elements, layout and keys, that knows nothing of this one's history.
  IntrusivePtr<TensorImpl> alias(IntrusivePtr<TensorImpl> base) const;
  static void destroy(TensorImpl* impl) noexcept;

  int64_t offset() const noexcept { return offset_; }
  const Storage& storage() const noexcept { return storage_; }

  /// Where element [0, ..., 0] is, on the storage's device.
  Address address() const {
    return storage_.address() + static_cast<uint64_t>(offset_ * static_cast<int64_t>(item_size(dtype())));
  }
  /// The same as a host pointer; meaningful for host storages only.
  void* data() const { return reinterpret_cast<void*>(address()); }

  /// The keys that a call with this tensor takes part in: its own and, for a view, its base's Autograd bit,
  /// because an in-place write elsewhere may have made the base differentiable since.
  DispatchKeySet keys() const noexcept {
    if (base_) [[unlikely]]
      return own_keys() | (base_->own_keys() & kAutogradKeys);
    return own_keys();
  }
  void set_keys(DispatchKeySet keys) noexcept { keys_ = keys; }

  const IntrusivePtr<TensorImpl>& base() const noexcept { return base_; }
  void set_base(IntrusivePtr<TensorImpl> base) noexcept { base_ = std::move(base); }

  /// Made inside inference mode: never takes part in autograd.
  bool is_inference() const noexcept { return inference_; }
  void set_inference(bool on) noexcept { inference_ = on; }
  void set_wrapped_number(bool on) noexcept { wrapped_number_ = on; }

  /// A number that no other tensor has, and that aliases do not share: how a graph knows a tensor again that
  /// it does not own. Given at the first call.
  uint32_t identity() noexcept {
    const uint32_t id = identity_.load(std::memory_order_relaxed);
    return id != 0 ? id : make_identity();
  }
  /// The same; 0 where nobody has asked for it.
  uint32_t known_identity() const noexcept { return identity_.load(std::memory_order_relaxed); }

  /// Replaces the geometry. The caller has checked that it stays inside the storage.
  void set_geometry(IntArrayRef sizes, IntArrayRef strides, int64_t offset);
  /// Exchanges two dimensions.
  using TensorHeader::swap_dims;
  void set_storage(Storage storage) noexcept { storage_ = std::move(storage); }
  void set_dtype(DType dtype) noexcept { dtype_ = dtype; }
  /// Replaces the layout, and with it the functionality that serves the tensor.
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

/// Elements of a shape. Throws Error{Shape} for a negative size or a product beyond int64.
int64_t checked_numel(IntArrayRef sizes, const char* op);
/// Strides of a contiguous tensor of these sizes, in elements.
Dims contiguous_strides(IntArrayRef sizes);
/// Bytes that a view reaches: from the lowest to the end of the highest element (0 when empty), as [low,
/// high) in elements relative to the view's offset. Throws Error{Shape} beyond int64.
struct Extent {
  int64_t low = 0;
  int64_t high = 0;
};
Extent extent(IntArrayRef sizes, IntArrayRef strides, const char* op);

}  // namespace tenon
