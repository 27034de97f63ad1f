// Tensor: the handle that users, operators and kernels pass around; one pointer to a TensorImpl. Used
// everywhere. Its operator methods are generated from the YAML files of tenon/ops; its autograd methods are
// defined in tenon/autograd. Independent of both.
#pragma once

#include "tenon/core/require_cxx20.h"

#include <array>
#include <cstdint>
#include <initializer_list>
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
class TensorList;
class Node;
struct TensorIndex;

/// The properties of a new tensor. A part that is not set has PyTorch's default.
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

namespace detail {
[[noreturn]] void throw_undefined_tensor();
}

class Tensor {
 public:
  /// An undefined tensor: "no tensor".
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  bool defined() const noexcept { return static_cast<bool>(impl_); }
  /// Whether both are the very same tensor, not merely equal or sharing storage.
  bool is_same(const Tensor& other) const noexcept { return impl_ == other.impl_; }
  TensorImpl* impl() const noexcept { return impl_.get(); }
  /// The implementation. Throws Error{Type} for an undefined tensor, as do all methods that ask about a
  /// tensor.
  TensorImpl& checked_impl() const {
    if (!impl_) [[unlikely]]
      detail::throw_undefined_tensor();
    return *impl_;
  }
  const IntrusivePtr<TensorImpl>& pointer() const noexcept { return impl_; }
  IntrusivePtr<TensorImpl> release_pointer() && noexcept { return std::move(impl_); }
  uint32_t use_count() const noexcept { return impl_ ? impl_->use_count() : 0; }
  void reset() noexcept { impl_.reset(); }

  int64_t dim() const { return checked_impl().ndim(); }
  int64_t numel() const { return checked_impl().numel(); }
  IntArrayRef sizes() const { return checked_impl().sizes(); }
  /// In elements; may be zero or negative.
  IntArrayRef strides() const { return checked_impl().strides(); }
  /// Size of one dimension, counted from the end when negative. Throws Error{Index}.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t storage_offset() const { return checked_impl().offset(); }
  DType dtype() const { return checked_impl().dtype(); }
  DType scalar_type() const { return checked_impl().dtype(); }
  size_t itemsize() const { return item_size(checked_impl().dtype()); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  Device device() const { return checked_impl().device(); }
  Layout layout() const { return checked_impl().layout(); }
  TensorOptions options() const { return TensorOptions(dtype()).device(device()).layout(layout()); }
  /// The keys that this tensor adds to a call; empty for an undefined tensor.
  DispatchKeySet key_set() const noexcept { return impl_ ? impl_->keys() : DispatchKeySet(); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  bool is_floating_point() const { return tenon::is_floating_point(dtype()); }
  bool is_complex() const { return tenon::is_complex(dtype()); }
  bool is_signed() const { return tenon::is_signed(dtype()); }
  bool is_meta() const { return device().is_meta(); }

  const Storage& storage() const { return checked_impl().storage(); }
  /// The number of in-place writes to the storage so far.
  uint64_t _version() const { return checked_impl().storage().version(); }
  /// The address of element [0, ..., 0]. Meaningful for host tensors; null for an empty or meta tensor.
  void* data_ptr() const { return checked_impl().data(); }
  /// The address of element [0, ..., 0]. Throws Error{Type} unless the elements are of type `T`, and
  /// Error{Device} unless they are on the host.
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

  /// Whether operators record history for this tensor: it is a leaf that requires grad, or was computed from
  /// one.
  bool requires_grad() const;
  /// Sets whether operators record history for this leaf. Throws Error{Runtime} for a dtype without gradients
  /// and for a tensor that is no leaf.
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const;
  /// The gradient that `backward` has accumulated; undefined until then.
  Tensor grad() const;
  void set_grad(Tensor grad);
  /// The node that made this tensor, or null for a leaf.
  IntrusivePtr<Node> grad_fn() const;
  /// The index of this tensor among the results of its node.
  uint32_t output_nr() const;
  void retain_grad() const;
  bool is_view() const noexcept { return impl_ && impl_->base(); }
  /// The tensor whose history this view shares; undefined if this is no view.
  Tensor _base() const { return Tensor(checked_impl().base()); }
  /// Computes d(self)/d(leaf) for every leaf and adds it to the leaf's grad. `gradient` may be undefined for
  /// a one-element tensor.
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

inline HeaderRef::HeaderRef(const Tensor& tensor) noexcept : header_(tensor.impl()) {}

/// A borrowed list of tensors, made from a braced list, one tensor, std::vector or std::span. An undefined
/// tensor in it is None. It owns nothing: use it for arguments only.
class TensorList : public std::span<const Tensor> {
 public:
  constexpr TensorList() noexcept = default;
  constexpr TensorList(const Tensor* first, size_t n) noexcept : std::span<const Tensor>(first, n) {}
  constexpr TensorList(std::span<const Tensor> s) noexcept : std::span<const Tensor>(s) {}
  constexpr TensorList(std::span<Tensor> s) noexcept : std::span<const Tensor>(s) {}
  constexpr TensorList(std::initializer_list<Tensor> s) noexcept
      : std::span<const Tensor>(s.begin(), s.size()) {}
  TensorList(const std::vector<Tensor>& v) noexcept : std::span<const Tensor>(v.data(), v.size()) {}
  template <size_t N>
  constexpr TensorList(const std::array<Tensor, N>& a) noexcept : std::span<const Tensor>(a.data(), N) {}
  template <size_t N>
  constexpr TensorList(const Tensor (&a)[N]) noexcept : std::span<const Tensor>(a, N) {}
  TensorList(const Tensor& one) noexcept : std::span<const Tensor>(&one, 1) {}
};

/// A 0-dim tensor that holds a number and promotes as a Python number does.
Tensor wrapped_scalar_tensor(const Scalar& value, Device device = kCPU);

/// A contiguous dense tensor with uninitialised elements. The innermost factory: it does not dispatch, and
/// checks sizes for overflow only.
Tensor make_empty(IntArrayRef sizes, DType dtype, Device device = kCPU);
Tensor make_empty_strided(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device = kCPU);
/// A contiguous dense tensor of zeros in host memory; see Storage::zeros.
Tensor make_zeros_on_cpu(IntArrayRef sizes, DType dtype);
/// A view of `self` with other sizes, strides and offset. It shares the storage and, outside inference mode,
/// the history. The caller has checked that the view stays inside the storage. Throws Error{NotImplemented}
/// unless `self` is strided.
Tensor make_view(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset);

/// "float32 [2, 3]", as error messages show a tensor.
std::string summary(const Tensor& t);

namespace detail {
[[noreturn]] void throw_dim_out_of_range(int64_t dim, int64_t ndim, const char* op);
}

/// Dimension `dim` of `ndim`, counted from the front. Throws an Error{Index} that names `op` if it is out of
/// range; a 0-dim tensor takes -1 and 0.
inline int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op) {
  const int64_t n = ndim > 0 ? ndim : 1;
  const int64_t wrapped = dim < 0 ? dim + n : dim;
  if (static_cast<uint64_t>(wrapped) >= static_cast<uint64_t>(n)) [[unlikely]] {
    detail::throw_dim_out_of_range(dim, n, op);
  }
  return wrapped;
}

}  // namespace tenon
