#include "tenon/core/tensor.h"

#include <fmt/core.h>

#include "tenon/core/thread_state.h"

namespace tenon {

void detail::throw_dim_out_of_range(int64_t dim, int64_t ndim, const char* op) {
  throw_error(ErrorKind::Index,
              fmt::format("{}: dimension out of range (expected to be in [{}, {}], but got {})", op, -ndim,
                          ndim - 1, dim));
}

void detail::throw_undefined_tensor() {
  throw_error(ErrorKind::Type, "expected a tensor, got an undefined one");
}

int64_t Tensor::size(int64_t dim) const {
  TENON_CHECK(this->dim() > 0, Index, fmt::format("size: dimension {} of a 0-dim tensor", dim));
  return sizes()[wrap_dim(dim, this->dim(), "size")];
}

int64_t Tensor::stride(int64_t dim) const {
  TENON_CHECK(this->dim() > 0, Index, fmt::format("stride: dimension {} of a 0-dim tensor", dim));
  return strides()[wrap_dim(dim, this->dim(), "stride")];
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d)
    return checked_impl().is_contiguous();
  // Channels-last is contiguous once the channel dimension is moved to the end.
  const size_t ndim = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (sizes().size() != ndim) return false;
  int64_t expected = 1;
  const auto matches = [&](size_t d) {
    if (sizes()[d] != 1 && strides()[d] != expected) return false;
    expected *= sizes()[d];
    return true;
  };
  if (!matches(1)) return false;
  for (size_t d = ndim - 1; d >= 2; --d) {
    if (!matches(d)) return false;
  }
  return matches(0);
}

void Tensor::check_host_dtype(DType expected) const {
  TENON_CHECK(dtype() == expected, Type,
              fmt::format("data_ptr: the elements are {}, not {}", name(dtype()), name(expected)));
  TENON_CHECK(device().is_cpu(), Device,
              fmt::format("data_ptr: the tensor is on {}, not in host memory", to_string(device())));
}

namespace {

/// Bytes of a contiguous tensor. In line, because every factory comes here.
[[gnu::always_inline]] inline size_t contiguous_bytes(IntArrayRef sizes, DType dtype, const char* op) {
  const int64_t numel = checked_numel(sizes, op);
  int64_t nbytes = 0;
  TENON_CHECK(!__builtin_mul_overflow(numel, static_cast<int64_t>(item_size(dtype)), &nbytes), Shape,
              fmt::format("{}: sizes {} of {} have more bytes than int64 can count", op, to_string(sizes),
                          name(dtype)));
  return static_cast<size_t>(nbytes);
}

}  // namespace

Tensor make_empty(IntArrayRef sizes, DType dtype, Device device) {
  const size_t nbytes = contiguous_bytes(sizes, dtype, "empty");
  return Tensor(TensorImpl::make(Storage::allocate(nbytes, device), dtype, sizes));
}

Tensor make_zeros_on_cpu(IntArrayRef sizes, DType dtype) {
  return Tensor(TensorImpl::make(Storage::zeros(contiguous_bytes(sizes, dtype, "empty")), dtype, sizes));
}

Tensor make_empty_strided(IntArrayRef sizes, IntArrayRef strides, DType dtype, Device device) {
  checked_numel(sizes, "empty_strided");
  const Extent e = extent(sizes, strides, "empty_strided");
  int64_t nbytes = 0;
  TENON_CHECK(!__builtin_mul_overflow(e.high - e.low, static_cast<int64_t>(item_size(dtype)), &nbytes), Shape,
              fmt::format("empty_strided: sizes {} with strides {} have more bytes than int64 can count",
                          to_string(sizes), to_string(strides)));
  return Tensor(TensorImpl::make(Storage::allocate(static_cast<size_t>(nbytes), device), dtype, sizes,
                                 strides, -e.low));
}

Tensor make_view(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  TensorImpl& impl = self.checked_impl();
  TENON_CHECK(impl.layout() == Layout::Strided, NotImplemented,
              fmt::format("a tensor of layout {} has no views by strides", name(impl.layout())));
  IntrusivePtr<TensorImpl> base;
  if (!thread_state.inference_mode) base = impl.base() ? impl.base() : self.pointer();
  return Tensor(impl.view(std::move(base), sizes, strides, offset));
}

std::string summary(const Tensor& t) {
  if (!t.defined()) return "undefined";
  return fmt::format("{} {}", name(t.dtype()), to_string(t.sizes()));
}

}  // namespace tenon
