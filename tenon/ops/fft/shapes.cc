// Shapes of the transforms that have kernels.
#include <fmt/core.h>

#include "tenon/generated/fft/shapes.h"
#include "tenon/iter/geometry.h"

namespace tenon::ops::shape {
namespace {

Dims checked_dims(HeaderRef self, IntArrayRef dim, int64_t normalization, bool some) {
  TENON_CHECK(!some || !dim.empty(), Value, ": expected at least one dimension in `dim`, got none");
  TENON_CHECK(normalization >= 0 && normalization <= 2, Value,
              fmt::format(": expected `normalization` from 0 to 2, got {}", normalization));
  TENON_CHECK(dim.empty() || self.dim() > 0, Index,
              fmt::format(": `dim` is {}, but `self` has no dimensions", to_string(dim)));
  const Dims dims = wrap_dims(dim, self.dim(), kThisCall);
  for (const int64_t d : dims)
    TENON_CHECK(self.sizes()[static_cast<size_t>(d)] > 0, Shape,
                fmt::format(": dimension {} of `self` {} is empty", d, to_string(self.sizes())));
  return dims;
}

void check_dtype(HeaderRef self, bool complex) {
  const DType dtype = self.dtype();
  const bool fits = complex ? dtype == DType::Complex64 || dtype == DType::Complex128
                            : dtype == DType::Float32 || dtype == DType::Float64;
  TENON_CHECK(fits, NotImplemented,
              fmt::format(": expected `self` of {}, got {}; convert it",
                          complex ? "complex64 or complex128" : "float32 or float64", name(dtype)));
}

}  // namespace

void _fft_c2c(OutputSpecs& out, HeaderRef self, IntArrayRef dim, int64_t normalization, bool) {
  check_dtype(self, true);
  checked_dims(self, dim, normalization, false);
  out.set(0, self.sizes(), self.dtype());
}

void _fft_r2c(OutputSpecs& out, HeaderRef self, IntArrayRef dim, int64_t normalization, bool onesided) {
  check_dtype(self, false);
  const Dims dims = checked_dims(self, dim, normalization, true);
  Dims sizes = self.sizes().to_dims();
  int64_t& last = sizes[static_cast<size_t>(dims.back())];
  if (onesided) last = last / 2 + 1;
  out.set(0, sizes, complex_dtype(self.dtype()));
}

void _fft_c2r(OutputSpecs& out, HeaderRef self, IntArrayRef dim, int64_t normalization,
              int64_t last_dim_size) {
  check_dtype(self, true);
  const Dims dims = checked_dims(self, dim, normalization, true);
  TENON_CHECK(last_dim_size > 0, Value,
              fmt::format(": expected `last_dim_size` of at least 1, got {}", last_dim_size));
  Dims sizes = self.sizes().to_dims();
  int64_t& last = sizes[static_cast<size_t>(dims.back())];
  TENON_CHECK(
      last == last_dim_size / 2 + 1, Shape,
      fmt::format(": expected {} elements along dimension {} of `self` for `last_dim_size` {}, got {}",
                  last_dim_size / 2 + 1, dims.back(), last_dim_size, to_string(self.sizes())));
  last = last_dim_size;
  out.set(0, sizes, real_dtype(self.dtype()));
}

}  // namespace tenon::ops::shape
