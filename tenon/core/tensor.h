// Tensor: the handle that users, operators and kernels pass around; one pointer to a TensorImpl.
// Used everywhere. Its operator methods are generated from the YAML of tenon/ops; those of autograd are
// defined in tenon/autograd. Knows nothing of what either does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tenon/core/error.h"
#include "tenon/core/generator.h"
#include "tenon/core/scalar.h"
#include "tenon/core/tensor_impl.h"

namespace tenon {

class Tensor;
class Node;
struct TensorIndex;

/// A borrowed list of tensors; an undefined one stands for None.
using TensorList = std::span<const Tensor>;

/// What a new tensor is to be: each part unset means PyTorch's default.
struct TensorOptions {
  std::optional<DType> dtype_opt;
  std::optional<Layout> layout_opt;
  std::optional<Device> device_opt;
  std::optional<bool> pinned_memory_opt;
  bool requires_grad_flag = false;

  TensorOptions() = default;
  TensorOptions(DType t) : dtype_opt(t) {}
  TensorOptions(Device d) : device_opt(d) {}
  TensorOptions dtype(DType t) const {
    auto o = *this;
    o.dtype_opt = t;
    return o;
  }
  TensorOptions device(Device d) const {
    auto o = *this;
    o.device_opt = d;
    return o;
  }
  TensorOptions layout(Layout l) const {
    auto o = *this;
    o.layout_opt = l;
    return o;
  }
  TensorOptions pinned_memory(bool on) const {
    auto o = *this;
    o.pinned_memory_opt = on;
    return o;
  }
  TensorOptions requires_grad(bool on) const {
    auto o = *this;
    o.requires_grad_flag = on;
    return o;
  }
};

class Tensor {
 public:
  /// Undefined: stands for "no tensor".
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  bool defined() const noexcept { return static_cast<bool>(impl_); }
  /// Whether both are the very same tensor, not merely equal or sharing storage.
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  TensorImpl* impl() const noexcept { return impl_.get(); }
  const IntrusivePtr<TensorImpl>& pointer() const noexcept { return impl_; }
  IntrusivePtr<TensorImpl> release_pointer() && noexcept { return std::move(impl_); }
  uint32_t use_count() const noexcept { return impl_ ? impl_->use_count() : 0; }
  void reset() noexcept { impl_.reset(); }

  int64_t dim() const noexcept { return impl_->ndim(); }
  int64_t numel() const noexcept { return impl_->numel(); }
  IntArrayRef sizes() const noexcept { return impl_->sizes(); }
  /// In elements; may be zero or negative.
  IntArrayRef strides() const noexcept { return impl_->strides(); }
  /// Size of one dimension, counted from the end when negative. Throws Error{Index}.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t storage_offset() const noexcept { return impl_->offset(); }
  DType dtype() const noexcept { return impl_->dtype(); }
  DType scalar_type() const noexcept { return impl_->dtype(); }
  size_t itemsize() const noexcept { return item_size(impl_->dtype()); }
  size_t nbytes() const noexcept { return static_cast<size_t>(numel()) * itemsize(); }
  Device device() const noexcept { return impl_->device(); }
  Layout layout() const noexcept { return impl_->layout(); }
  TensorOptions options() const { return TensorOptions(dtype()).device(device()).layout(layout()); }
  /// The keys that a call with this tensor takes part in; empty for an undefined one.
  DispatchKeySet key_set() const noexcept { return impl_ ? impl_->keys() : DispatchKeySet(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_floating_point() const noexcept { return tenon::is_floating_point(dtype()); }
  bool is_complex() const noexcept { return tenon::is_complex(dtype()); }
  bool is_signed() const noexcept { return tenon::is_signed(dtype()); }
  bool is_meta() const noexcept { return device().is_meta(); }

  const Storage& storage() const noexcept { return impl_->storage(); }
  /// Counts in-place writes to the storage.
  uint64_t _version() const noexcept { return impl_->storage().version(); }
  /// Where element [0, ..., 0] is. Meaningful for host tensors; null for an empty or meta one.
  void* data_ptr() const { return impl_->data(); }
  /// The same, checked: throws Error{Type} unless the elements are `T`, Error{Device} unless they are on the
  /// host.
  template <class T>
  T* data_ptr() const {
    check_host_dtype(dtype_of<std::remove_const_t<T>>);
    return static_cast<T*>(data_ptr());
  }
  /// The value of a one-element tensor, converted. Throws Error{Runtime} for any other number of elements.
  template <class T>
  T item() const {
    const Scalar s = item();
    if constexpr (std::is_same_v<T, bool>)
      return s.to_bool();
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(s.to_int());
    else if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(s.to_double());
    else
      return static_cast<T>(s.to_complex());
  }

  // Autograd; defined in tenon/autograd.

  /// Whether operators on this tensor record history now: a leaf that asked for it, or a result of one.
  bool requires_grad() const;
  /// Makes a leaf record history (or stop). Throws Error{Runtime} for a dtype that has no gradient or a
  /// non-leaf.
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const;
  /// Accumulated by `backward`; undefined until then.
  Tensor grad() const;
  void set_grad(Tensor grad);
  /// The node that made this tensor, or null for a leaf.
  IntrusivePtr<Node> grad_fn() const;
  /// Which of the node's results this is.
  uint32_t output_nr() const;
  void retain_grad() const;
  bool is_view() const noexcept { return impl_->base() != nullptr; }
  /// The tensor whose history this view shares; undefined unless a view.
  Tensor _base() const { return Tensor(impl_->base()); }
  /// Accumulates d(self)/d(leaf) into every leaf's grad. `gradient` may be undefined for a one-element
  /// tensor.
  void backward(const Tensor& gradient = {}, std::optional<bool> retain_graph = {},
                bool create_graph = false) const;

  // Indexing; defined in tenon/ops.

  /// As `self[...]` in Python: integers, slices, None, Ellipsis, tensors.
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor operator[](int64_t i) const;
  /// As `self[...] = value`.
  void index_put_(std::initializer_list<TensorIndex> indices, const Tensor& value);

#include "tenon/generated/tensor_methods.inc"

 private:
  void check_host_dtype(DType expected) const;

  IntrusivePtr<TensorImpl> impl_;
};

/// Wraps a number as a 0-dim tensor that promotes as a Python scalar does.
Tensor wrapped_scalar_tensor(const Scalar& value, Device device = kCPU);

/// A dense tensor of uninitialised elements, contiguous. The innermost factory: no dispatch, no checks of
/// sizes beyond overflow.
Tensor make_empty(IntArrayRef sizes, DType dtype, Device device = kCPU);
Tensor make_empty_strided(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device = kCPU);
/// A view of `self` with another geometry; it shares storage and, outside inference mode, history. The caller
/// has checked that the geometry stays inside the storage. Throws Error{NotImplemented} unless `self` is
/// strided.
Tensor make_view(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset);

/// "float32 [2, 3]", as error messages show a tensor.
std::string summary(const Tensor& t);

/// Dimension `dim` of `ndim` counted from the front. Throws Error{Index} naming `op`; a 0-dim tensor takes -1
/// and 0.
int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op);

}  // namespace tenon
