// PyTorch's transforms as composites of those that have kernels, and their gradients.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/complex/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/fft/bodies.h"
#include "tenon/generated/fft/functions.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/window/functions.h"
#include "tenon/ops/fft/arguments.h"

namespace tenon::ops {
namespace {

using Norm = std::optional<std::string_view>;
using Sizes = std::optional<IntArrayRef>;

/// Real numbers scaled along one dimension by 1 at its ends and by `middle` between them: those elements of
/// half a spectrum count twice. Of an odd number of elements in the whole, the last one is in the middle.
Tensor middle_scaled(const Tensor& half, int64_t dim, int64_t whole, double middle) {
  const int64_t n = half.sizes()[static_cast<size_t>(dim)], inner = whole - n;
  if (inner <= 0) return half;
  Dims shape(static_cast<size_t>(half.dim()), 1);
  shape[static_cast<size_t>(dim)] = n;
  const TensorOptions options = TensorOptions(real_dtype(half.dtype())).device(half.device());
  Tensor factors = tenon::ones({n}, options);
  tenon::narrow(factors, 0, 1, inner).fill_(middle);
  return tenon::mul(half, tenon::reshape(factors, shape));
}

Tensor to_complex(const Tensor& self, const FftSizes& what, const Norm& norm, bool forward, const char* op) {
  const FftNorm mode = fft_norm(norm, forward, op);
  const Tensor x = fft_resized(fft_operand(self, what.dims.empty(), op), what.dims, what.sizes);
  if (x.is_complex()) return tenon::_fft_c2c(x, what.dims, number(mode), forward);
  const Tensor result = tenon::_fft_r2c(x, what.dims, number(mode), false);
  return forward ? result : tenon::conj_physical(result);
}

Tensor from_real(const Tensor& self, const FftSizes& what, const Norm& norm, bool forward, const char* op) {
  const FftNorm mode = fft_norm(norm, forward, op);
  const Tensor x = fft_resized(fft_operand(self, false, op), what.dims, what.sizes);
  const Tensor result = tenon::_fft_r2c(x, what.dims, number(mode), true);
  return forward ? result : tenon::conj_physical(result);
}

Tensor to_real(const Tensor& self, const FftSizes& what, const Norm& norm, bool forward, const char* op) {
  const FftNorm mode = fft_norm(norm, forward, op);
  Dims sizes = what.sizes;
  sizes.back() = sizes.back() / 2 + 1;
  const Tensor x = fft_resized(fft_operand(self, true, op), what.dims, sizes);
  return tenon::_fft_c2r(forward ? tenon::conj_physical(x) : x, what.dims, number(mode), what.sizes.back());
}

}  // namespace

Tensor _fft_c2r_backward(const Tensor& grad, IntArrayRef dim, int64_t normalization) {
  TENON_CHECK(!dim.empty(), Value, "_fft_c2r_backward: expected at least one dimension in `dim`, got none");
  TENON_CHECK(grad.dim() > 0, Index,
              "_fft_c2r_backward: expected `grad` with dimensions, got a tensor of none");
  const int64_t last = wrap_dim(dim.back(), grad.dim(), "_fft_c2r_backward");
  const Tensor half = tenon::_fft_r2c(grad, dim, normalization, true);
  return middle_scaled(half, last, grad.sizes()[static_cast<size_t>(last)], 2);
}

Tensor _fft_r2c_backward(const Tensor& grad, IntArrayRef dim, int64_t normalization, bool onesided,
                         IntArrayRef sizes) {
  TENON_CHECK(!dim.empty(), Value, "_fft_r2c_backward: expected at least one dimension in `dim`, got none");
  TENON_CHECK(grad.dim() > 0, Index,
              "_fft_r2c_backward: expected `grad` with dimensions, got a tensor of none");
  if (!onesided) return tenon::real(tenon::_fft_c2c(grad, dim, normalization, false)).clone();
  TENON_CHECK(static_cast<int64_t>(sizes.size()) == grad.dim(), Shape,
              fmt::format("_fft_r2c_backward: expected `sizes` of {} dimensions as `grad` has, got {}",
                          grad.dim(), to_string(sizes)));
  // The real part of the reverse transform of half a spectrum and zeros: each element of the middle and half
  // of its conjugate, mirrored.
  const int64_t last = wrap_dim(dim.back(), grad.dim(), "_fft_r2c_backward");
  const int64_t n = sizes[static_cast<size_t>(last)];
  return tenon::_fft_c2r(middle_scaled(grad, last, n, 0.5), dim, normalization, n);
}

// Names, arguments and directions.

namespace {

/// What a family of names computes.
struct Family {
  Tensor (*compute)(const Tensor& self, const FftSizes& what, const Norm& norm, bool forward, const char* op);
  bool forward;
  bool from_real = false;
  bool halved = false;  ///< Sizes are those of real results; `self` is half of their spectrum.
};
constexpr Family kFft{&to_complex, true}, kIfft{&to_complex, false};
constexpr Family kRfft{&from_real, true, true}, kIhfft{&from_real, false, true};
constexpr Family kHfft{&to_real, true, false, true}, kIrfft{&to_real, false, false, true};

Tensor along(const Family& family, const Tensor& self, std::optional<int64_t> n, int64_t dim,
             const Norm& norm, const char* op) {
  if (family.from_real) check_real(self, op);
  return family.compute(self, fft_sizes(self, n, dim, family.halved, op), norm, family.forward, op);
}
Tensor along(const Family& family, const Tensor& self, Sizes s, Sizes dim, const Norm& norm, const char* op) {
  if (family.from_real) check_real(self, op);
  const bool some = family.from_real || family.halved;
  return family.compute(self, fft_sizes(self, s, dim, family.halved, some, op), norm, family.forward, op);
}

}  // namespace

Tensor fft_fft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return along(kFft, self, n, dim, norm, "fft_fft");
}
Tensor fft_fft2(const Tensor& self, Sizes s, IntArrayRef dim, Norm norm) {
  return along(kFft, self, s, Sizes(dim), norm, "fft_fft2");
}
Tensor fft_fftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return along(kFft, self, s, dim, norm, "fft_fftn");
}
Tensor fft_ifft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return along(kIfft, self, n, dim, norm, "fft_ifft");
}
Tensor fft_ifft2(const Tensor& self, Sizes s, IntArrayRef dim, Norm norm) {
  return along(kIfft, self, s, Sizes(dim), norm, "fft_ifft2");
}
Tensor fft_ifftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return along(kIfft, self, s, dim, norm, "fft_ifftn");
}
Tensor fft_rfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return along(kRfft, self, n, dim, norm, "fft_rfft");
}
Tensor fft_rfft2(const Tensor& self, Sizes s, IntArrayRef dim, Norm norm) {
  return along(kRfft, self, s, Sizes(dim), norm, "fft_rfft2");
}
Tensor fft_rfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return along(kRfft, self, s, dim, norm, "fft_rfftn");
}
Tensor fft_irfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return along(kIrfft, self, n, dim, norm, "fft_irfft");
}
Tensor fft_irfft2(const Tensor& self, Sizes s, IntArrayRef dim, Norm norm) {
  return along(kIrfft, self, s, Sizes(dim), norm, "fft_irfft2");
}
Tensor fft_irfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return along(kIrfft, self, s, dim, norm, "fft_irfftn");
}
Tensor fft_hfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return along(kHfft, self, n, dim, norm, "fft_hfft");
}
Tensor fft_hfft2(const Tensor& self, Sizes s, IntArrayRef dim, Norm norm) {
  return along(kHfft, self, s, Sizes(dim), norm, "fft_hfft2");
}
Tensor fft_hfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return along(kHfft, self, s, dim, norm, "fft_hfftn");
}
Tensor fft_ihfft(const Tensor& self, std::optional<int64_t> n, int64_t dim, Norm norm) {
  return along(kIhfft, self, n, dim, norm, "fft_ihfft");
}
Tensor fft_ihfft2(const Tensor& self, Sizes s, IntArrayRef dim, Norm norm) {
  return along(kIhfft, self, s, Sizes(dim), norm, "fft_ihfft2");
}
Tensor fft_ihfftn(const Tensor& self, Sizes s, Sizes dim, Norm norm) {
  return along(kIhfft, self, s, dim, norm, "fft_ihfftn");
}

namespace {

DType frequency_dtype(std::optional<DType> dtype, const char* op) {
  const DType wanted = dtype.value_or(default_dtype());
  TENON_CHECK(is_floating_point(wanted) || is_complex(wanted), Type,
              fmt::format("{}: expected a floating or complex `dtype`, got {}", op, name(wanted)));
  return wanted;
}

/// Whole numbers from `begin` up to `end`, and after them from `again` up to 0, over n * d.
Tensor frequencies(int64_t n, double d, int64_t end, int64_t again, std::optional<DType> dtype,
                   std::optional<Device> device, const char* op) {
  const DType wanted = frequency_dtype(dtype, op);
  TENON_CHECK(n >= 0, Value, fmt::format("{}: expected `n` of at least 0, got {}", op, n));
  const DType real = real_dtype(wanted);
  const TensorOptions options = TensorOptions(real).device(device.value_or(kCPU));
  Tensor k = tenon::arange(Scalar(int64_t{0}), Scalar(end), options);
  if (again < 0) k = tenon::cat({k, tenon::arange(Scalar(again), Scalar(int64_t{0}), options)});
  k = tenon::mul(k, Scalar(1.0 / (static_cast<double>(n) * d)));
  return real == wanted ? k : k.to(wanted);
}

Tensor rolled(const Tensor& self, Sizes dim, bool up, const char* op) {
  Dims dims, shifts;
  if (dim) {
    for (const int64_t d : *dim) dims.push_back(wrap_dim(d, self.dim(), op));
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  }
  for (const int64_t d : dims) {
    const int64_t n = self.sizes()[static_cast<size_t>(d)];
    shifts.push_back(up ? n / 2 : n - n / 2);
  }
  return dims.empty() ? self.clone() : tenon::roll(self, shifts, dims);
}

}  // namespace

Tensor fft_fftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Layout>,
                   std::optional<Device> device, std::optional<bool>) {
  return frequencies(n, d, (n + 1) / 2, -(n / 2), dtype, device, "fft_fftfreq");
}
Tensor fft_rfftfreq(int64_t n, double d, std::optional<DType> dtype, std::optional<Layout>,
                    std::optional<Device> device, std::optional<bool>) {
  return frequencies(n, d, n / 2 + 1, 0, dtype, device, "fft_rfftfreq");
}
Tensor fft_fftshift(const Tensor& self, Sizes dim) { return rolled(self, dim, true, "fft_fftshift"); }
Tensor fft_ifftshift(const Tensor& self, Sizes dim) { return rolled(self, dim, false, "fft_ifftshift"); }

}  // namespace tenon::ops
