#include "tenon/ops/elements/elements.h"

#include <fmt/core.h>

#include <atomic>
#include <cstring>

#include "tenon/core/dispatch_dtype.h"
#include "tenon/core/float8.h"
#include "tenon/core/warn.h"
#include "tenon/iter/geometry.h"
#include "tenon/iter/overlap.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/device_copy.h"

namespace tenon::ops {
namespace {

/// `src`, which broadcasts to `dst`, shown in its sizes, with stride 0 where it is repeated.
Tensor shown_in_sizes(const Tensor& src, const Tensor& dst) {
  if (src.sizes() == dst.sizes()) return src;
  const size_t ndim = dst.sizes().size(), own = src.sizes().size();
  Dims strides(ndim, 0);
  for (size_t d = 0; d < own; ++d) strides[ndim - own + d] = src.sizes()[d] == 1 ? 0 : src.strides()[d];
  return make_view(src, dst.sizes(), strides, src.storage_offset());
}

/// The same places, without the dimensions along which an expanded tensor repeats them.
Tensor without_repetition(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Dims sizes = t.sizes().to_dims();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (t.strides()[d] == 0) sizes[d] = 1;
  }
  return make_view(t, sizes, t.strides(), t.storage_offset());
}

}  // namespace

void check_no_internal_overlap(HeaderRef t, const char* op) {
  if (t.is_contiguous()) return;
  TENON_CHECK(
      !overlaps_itself(t.sizes(), t.strides()), Runtime,
      fmt::format(
          "{}: more than one element of the written-to tensor (sizes {}, strides {}) refers to a single "
          "memory location; clone() it first",
          op, to_string(t.sizes()), to_string(t.strides())));
}

void check_copy(HeaderRef dst, HeaderRef src, const char* op) {
  TENON_CHECK(broadcasts(src.sizes(), dst.sizes()), Shape,
              fmt::format("{}: `src` {} does not broadcast to `self` {}", op, to_string(src.sizes()),
                          to_string(dst.sizes())));
  check_no_internal_overlap(dst, op);
}

void warn_of_dropped_parts(DType from, DType to) {
  if (!is_complex(from) || is_complex(to) || to == DType::Bool) [[likely]]
    return;
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    warn(
        "Casting complex values to real discards the imaginary part; write x.real if that is meant, or "
        "x.abs() for the magnitude");
  }
}

void copy_elements(const Tensor& dst, const Tensor& src, const char* op, bool non_blocking) try {
  check_copy(dst, src, op);
  Tensor from = shown_in_sizes(src, dst);
  if (dst.device().is_meta() || dst.numel() == 0) return;
  TENON_CHECK(!src.device().is_meta(), NotImplemented,
              fmt::format("{}: cannot copy out of a meta tensor; it has no data", op));
  if (dst.device() == src.device()) {
    if (dst.storage() == from.storage()) {
      switch (overlap(dst, from)) {
        case Overlap::None:
          break;
        case Overlap::Same:
          return;
        // As if the source had been read before anything is written (x.copy_(x.flip(0)) reverses x).
        case Overlap::Partial:
          from = contiguous_copy(from);
          break;
      }
    }
    copy_stub(dst.device(), dst, from, non_blocking);
    return;
  }
  // The side that is not the host knows how to reach it.
  if (dst.device().is_cpu())
    copy_stub(src.device(), dst, from, non_blocking);
  else if (src.device().is_cpu())
    copy_stub(dst.device(), dst, from, non_blocking);
  else
    copy_between_devices(dst, from, op, non_blocking);
} catch (Error& e) {
  e.set_operator(op);  // a device knows of a copy only
  throw;
}

void refuse_arithmetic(DType dtype, Device device, const char* op) {
  throw_error(ErrorKind::NotImplemented,
              fmt::format("{}: {}; it has no arithmetic", op, not_implemented_for(dtype, device)));
}

void check_real(HeaderRef t, const char* op) {
  check_arithmetic(t, op);
  TENON_CHECK(!is_complex(t.dtype()), NotImplemented,
              fmt::format("{}: {}", op, not_implemented_for(t.dtype(), t.device())));
}

void fill_elements(const Tensor& dst, const Scalar& value, const char* op) {
  check_fits(value, dst.dtype(), op);
  if (dst.device().is_meta() || dst.numel() == 0) return;
  fill_stub(dst.device(), without_repetition(dst), value);
}

void zero_elements(const Tensor& dst) {
  if (dst.device().is_cpu() && dst.is_contiguous()) {
    if (dst.numel() > 0) std::memset(dst.data_ptr(), 0, dst.nbytes());
    return;
  }
  fill_elements(dst, Scalar(0), "zero_");
}

Scalar read_scalar(const Tensor& self) {
  TENON_CHECK(self.numel() == 1, Runtime,
              fmt::format("item: a Tensor with {} elements cannot be converted to Scalar", self.numel()));
  TENON_CHECK(!self.device().is_meta(), Runtime, "item: cannot be called on a meta tensor; it has no data");
  if (!self.device().is_cpu()) {
    const Tensor host = make_empty(self.sizes(), self.dtype());
    copy_elements(host, self, "item");
    return read_scalar(host);
  }
  if (is_float8(self.dtype()))
    return Scalar(double{float8_to_float(self.dtype(), *static_cast<const uint8_t*>(self.data_ptr()))});
  return switch_any_dtype(self.dtype(), "item", [&]<class T>() {
    const T value = *static_cast<const T*>(self.data_ptr());
    if constexpr (kIsComplex<T>)
      return Scalar(std::complex<double>(value));
    else
      return Scalar(value);
  });
}

Tensor contiguous_copy(const Tensor& self) {
  Tensor result = make_empty(self.sizes(), self.dtype(), self.device());
  copy_elements(result, self, "contiguous");
  return result;
}

Tensor as_contiguous(const Tensor& self) { return self.is_contiguous() ? self : contiguous_copy(self); }

Tensor as_dtype(const Tensor& self, DType dtype) {
  if (self.dtype() == dtype) return self;
  Tensor result = make_empty(self.sizes(), dtype, self.device());
  copy_elements(result, self, "to");
  return result;
}

Tensor on_device(const Tensor& self, Device device) {
  if (self.device() == device) return self;
  Tensor result = make_empty(self.sizes(), self.dtype(), device);
  copy_elements(result, self, "to");
  return result;
}

Tensor part_of(const Tensor& self, int64_t part) {
  Dims strides;
  for (const int64_t s : self.strides()) strides.push_back(twice(s));
  return Tensor(TensorImpl::make(self.storage(), real_dtype(self.dtype()), self.sizes(), strides,
                                 2 * self.storage_offset() + part));
}

Tensor make_zeros(IntArrayRef sizes, DType dtype, Device device) {
  if (device.is_cpu()) return make_zeros_on_cpu(sizes, dtype);
  Tensor result = make_empty(sizes, dtype, device);
  zero_elements(result);
  return result;
}

Tensor zeros_on(IntArrayRef sizes, const Tensor& like) {
  return make_zeros(sizes, like.dtype(), like.device());
}

Tensor retyped_view(const Tensor& self, DType dtype, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  Tensor view = make_view(self, sizes, strides, offset);
  view.impl()->set_dtype(dtype);
  return view;
}

}  // namespace tenon::ops
