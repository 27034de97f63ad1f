// TensorHeader: what is known of a tensor before it has bytes: sizes, strides, dtype, device, layout, keys.
// TensorImpl adds a storage and an offset; shape functions read headers alone. Independent of storages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "tenon/core/device.h"
#include "tenon/core/dims.h"
#include "tenon/core/dtype.h"
#include "tenon/core/key_set.h"

namespace tenon {

class Tensor;

class TensorHeader {
 public:
  static constexpr int kInlineDims = 6;

  /// A strided tensor of that geometry, on `device`, with the keys of its dense elements.
  TensorHeader(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device)
      : TensorHeader(dtype, device, DispatchKeySet(Functionality::Dense, device.backend)) {
    fill_geometry(sizes, strides);
  }
  TensorHeader(const TensorHeader& other) : TensorHeader(other.dtype_, other.device_, other.keys_) {
    layout_ = other.layout_;
    wrapped_number_ = other.wrapped_number_;
    fill_geometry(other.sizes(), other.strides());
  }
  TensorHeader& operator=(const TensorHeader&) = delete;
  ~TensorHeader() { delete[] heap_dims_; }

  int ndim() const noexcept { return ndim_; }
  IntArrayRef sizes() const noexcept { return {dims(), ndim_}; }
  /// In elements; may be zero or negative.
  IntArrayRef strides() const noexcept { return {dims() + capacity(), ndim_}; }
  int64_t numel() const noexcept { return numel_; }
  bool is_contiguous() const noexcept { return contiguous_; }
  DType dtype() const noexcept { return dtype_; }
  Device device() const noexcept { return device_; }
  Layout layout() const noexcept { return layout_; }
  /// The keys of this tensor itself; a call adds those of a view's base.
  DispatchKeySet own_keys() const noexcept { return keys_; }
  /// Whether this is a number that was wrapped to be passed as a tensor: it promotes as a Python number does.
  bool is_wrapped_number() const noexcept { return wrapped_number_; }

 protected:
  /// Makes a header without sizes and strides, which are to be set next.
  TensorHeader(DType dtype, Device device, DispatchKeySet keys) noexcept
      : dtype_(dtype), device_(device), keys_(keys) {}

  int64_t* dims() noexcept { return heap_dims_ ? heap_dims_ : inline_dims_; }
  const int64_t* dims() const noexcept { return heap_dims_ ? heap_dims_ : inline_dims_; }
  size_t capacity() const noexcept { return heap_dims_ ? ndim_ : kInlineDims; }
  void reserve_dims(size_t ndim) {
    if (ndim > kInlineDims || heap_dims_) [[unlikely]]
      reserve_heap(ndim);
    ndim_ = static_cast<uint8_t>(ndim);
  }
  // In the header so that they are inlined: making a view does little else.
  void fill_contiguous(IntArrayRef sizes) {
    reserve_dims(sizes.size());
    int64_t* size = dims();
    int64_t* stride = size + capacity();
    int64_t numel = 1, next = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      size[d] = sizes[d];
      stride[d] = next;
      next *= std::max<int64_t>(sizes[d], 1);
      numel *= sizes[d];
    }
    numel_ = numel;
  }
  /// Sets sizes and strides from lists that are not part of this header.
  void fill_geometry(IntArrayRef sizes, IntArrayRef strides) {
    const size_t ndim = sizes.size();
    reserve_dims(ndim);
    int64_t* size = dims();
    int64_t* stride = size + capacity();
    int64_t numel = 1;
    bool contiguous = true;
    for (size_t d = ndim; d-- > 0;) {
      const int64_t n = sizes[d], step = strides[d];
      size[d] = n;
      stride[d] = step;
      contiguous &= (n == 1) | (step == numel);
      numel *= n;
    }
    numel_ = numel;
    contiguous_ = contiguous | (numel == 0);
  }
  /// Sets sizes and strides from lists that may be this header's own.
  void replace_geometry(IntArrayRef sizes, IntArrayRef strides);
  void swap_dims(size_t a, size_t b) noexcept {
    int64_t* size = dims();
    int64_t* stride = size + capacity();
    std::swap(size[a], size[b]);
    std::swap(stride[a], stride[b]);
    refresh();
  }

  // In this order they leave no gaps.
  DType dtype_;
  Device device_;
  Layout layout_ = Layout::Strided;
  uint8_t ndim_ = 0;
  bool contiguous_ = true;
  bool wrapped_number_ = false;
  bool inference_ = false;  // TensorImpl's, which has no byte to spare
  DispatchKeySet keys_;
  int64_t numel_ = 1;
  int64_t* heap_dims_ = nullptr;
  int64_t inline_dims_[2 * kInlineDims];  // sizes, then strides

 private:
  void reserve_heap(size_t ndim);
  /// Computes the members that follow from sizes and strides.
  void refresh() noexcept {
    const int64_t* size = dims();
    const int64_t* stride = size + capacity();
    int64_t numel = 1;
    bool contiguous = true;
    for (size_t d = ndim_; d-- > 0;) {
      contiguous &= (size[d] == 1) | (stride[d] == numel);
      numel *= size[d];
    }
    numel_ = numel;
    contiguous_ = contiguous | (numel == 0);
  }
};

/// A tensor argument of a shape function: a borrowed header, or none if the tensor is undefined. Made from a
/// tensor, or from the header of a value that has no bytes. It owns nothing: use it for arguments only.
class HeaderRef {
 public:
  HeaderRef() = default;
  HeaderRef(const TensorHeader& header) noexcept : header_(&header) {}
  HeaderRef(const Tensor& tensor) noexcept;

  bool defined() const noexcept { return header_ != nullptr; }
  /// The header. Throws Error{Type} for an undefined tensor, as do all members below.
  const TensorHeader& checked() const {
    if (!header_) [[unlikely]]
      throw_undefined();
    return *header_;
  }
  int64_t dim() const { return checked().ndim(); }
  int64_t numel() const { return checked().numel(); }
  IntArrayRef sizes() const { return checked().sizes(); }
  IntArrayRef strides() const { return checked().strides(); }
  DType dtype() const { return checked().dtype(); }
  Device device() const { return checked().device(); }
  Layout layout() const { return checked().layout(); }
  bool is_contiguous() const { return checked().is_contiguous(); }
  bool is_meta() const { return device().is_meta(); }

 private:
  [[noreturn]] static void throw_undefined();

  const TensorHeader* header_ = nullptr;
};

/// A list of tensors as an argument of a shape function.
using HeaderList = std::span<const HeaderRef>;

}  // namespace tenon
