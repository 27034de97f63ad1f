// TensorMeta: shape, dtype and device of a tensor whose elements are not kept. Used by nodes, to check the
// shape of gradients, and by derivative formulas. Knows nothing of graphs.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::autograd {

class TensorMeta {
 public:
  TensorMeta() = default;
  explicit TensorMeta(const Tensor& t) : sizes_(t.sizes()), dtype_(t.dtype()), device_(t.device()) {}
  TensorMeta(IntArrayRef sizes, DType dtype, Device device) : sizes_(sizes), dtype_(dtype), device_(device) {}

  IntArrayRef sizes() const noexcept { return sizes_; }
  int64_t dim() const noexcept { return static_cast<int64_t>(sizes_.size()); }
  int64_t size(int64_t d) const { return sizes_[wrap_dim(d, dim(), "size")]; }
  int64_t numel() const noexcept {
    int64_t n = 1;
    for (const int64_t s : sizes_) n *= s;
    return n;
  }
  DType dtype() const noexcept { return dtype_; }
  DType scalar_type() const noexcept { return dtype_; }
  Device device() const noexcept { return device_; }
  TensorOptions options() const { return TensorOptions(dtype_).device(device_); }

 private:
  Dims sizes_;
  DType dtype_ = DType::Float32;
  Device device_;
};

}  // namespace tenon::autograd
