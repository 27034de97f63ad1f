// TensorMeta: shape, dtype and device of a tensor whose elements are not kept, and the stream that it was
// computed in. Used by nodes, to check the shape of gradients, by the engine, and by derivative formulas.
// Independent of graphs.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::autograd {

class TensorMeta {
 public:
  TensorMeta() = default;
  [[gnu::always_inline]] explicit TensorMeta(const Tensor& t) : TensorMeta(t.checked_impl()) {}
  TensorMeta(IntArrayRef sizes, DType dtype, Device device) : sizes_(sizes), dtype_(dtype), device_(device) {
    if (!device_.is_cpu()) [[unlikely]]
      note_stream();
  }

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
  /// The stream that was current on the device when this was made.
  Stream stream() const;
  TensorOptions options() const { return TensorOptions(dtype_).device(device_); }

 private:
  [[gnu::always_inline]] explicit TensorMeta(const TensorImpl& t)
      : sizes_(t.sizes()), dtype_(t.dtype()), device_(t.device()) {
    if (!device_.is_cpu()) [[unlikely]]
      note_stream();
  }
  [[gnu::cold]] void note_stream() noexcept;

  Dims sizes_;
  DType dtype_ = DType::Float32;
  Device device_;
  uint32_t stream_ = 0;  // a number, because an id would make every node larger; 0 is the default stream
};
static_assert(sizeof(TensorMeta) == sizeof(Dims) + 8);

}  // namespace tenon::autograd
