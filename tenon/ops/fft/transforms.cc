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
#include "tenon/ops/fft/transforms.h"

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

struct FftFamily {
  Tensor (*compute)(const Tensor& self, const FftSizes& what, const Norm& norm, bool forward, const char* op);
  bool forward;
  bool from_real = false;
  bool halved = false;  ///< Sizes are those of real results; `self` is half of their spectrum.
};
constexpr FftFamily kFft{&to_complex, true}, kIfft{&to_complex, false};
constexpr FftFamily kRfft{&from_real, true, true}, kIhfft{&from_real, false, true};
constexpr FftFamily kHfft{&to_real, true, false, true}, kIrfft{&to_real, false, false, true};

Tensor transformed_along(const FftFamily& family, const Tensor& self, std::optional<int64_t> n, int64_t dim,
                         Norm norm, const char* op) {
  if (family.from_real) check_real(self, op);
  return family.compute(self, fft_sizes(self, n, dim, family.halved, op), norm, family.forward, op);
}
Tensor transformed_along(const FftFamily& family, const Tensor& self, Sizes s, Sizes dim, Norm norm,
                         const char* op) {
  if (family.from_real) check_real(self, op);
  const bool some = family.from_real || family.halved;
  return family.compute(self, fft_sizes(self, s, dim, family.halved, some, op), norm, family.forward, op);
}

static DType frequency_dtype(std::optional<DType> dtype, const char* op) {
  const DType wanted = dtype.value_or(default_dtype());
  TENON_CHECK(is_floating_point(wanted) || is_complex(wanted), Type,
              fmt::format("{}: expected a floating or complex `dtype`, got {}", op, name(wanted)));
  return wanted;
}

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

Tensor frequencies_shifted(const Tensor& self, Sizes dim, bool up, const char* op) {
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

}  // namespace tenon::ops
