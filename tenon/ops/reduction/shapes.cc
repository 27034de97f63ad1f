// Shapes of variances, running sums and products, and logsumexp.
#include <fmt/core.h>

#include "tenon/generated/reduction/shapes.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/reduced_dims.h"

namespace tenon::ops::shape {
namespace {

void check_moments(HeaderRef self) {
  TENON_CHECK(is_floating_point(self.dtype()) || is_complex(self.dtype()), Type,
              fmt::format(": only supports floating point dtypes, got {}", name(self.dtype())));
  check_arithmetic(self, kThisCall);
}

}  // namespace

void variance(OutputSpecs& out, HeaderRef self, std::optional<IntArrayRef> dim,
              std::optional<Scalar> correction, bool keepdim) {
  check_moments(self);
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(dim, self.dim(), kThisCall), keepdim),
          real_dtype(self.dtype()));
}

void variance_mean(OutputSpecs& out, HeaderRef self, std::optional<IntArrayRef> dim,
                   std::optional<Scalar> correction, bool keepdim) {
  check_moments(self);
  const Dims sizes = reduced_sizes(self.sizes(), reduction_mask(dim, self.dim(), kThisCall), keepdim);
  out.set(0, sizes, real_dtype(self.dtype()));
  out.set(1, sizes, self.dtype());
}

void cumulative(OutputSpecs& out, HeaderRef self, int64_t dim, std::optional<DType> dtype) {
  wrap_dim(dim, self.dim(), kThisCall);
  check_arithmetic(self, kThisCall);
  if (dtype) check_arithmetic(*dtype, self.device(), kThisCall);
  const DType own = is_integral(self.dtype(), true) ? DType::Int64 : self.dtype();
  out.set(0, self.sizes(), dtype.value_or(own));
}

void logsumexp(OutputSpecs& out, HeaderRef self, IntArrayRef dim, bool keepdim) {
  check_arithmetic(self, kThisCall);
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(dim, self.dim(), kThisCall), keepdim),
          is_integral(self.dtype(), true) ? default_dtype() : self.dtype());
}

}  // namespace tenon::ops::shape
