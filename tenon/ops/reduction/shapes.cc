// Shapes of reductions.
#include <fmt/core.h>

#include "tenon/generated/reduction/shapes.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/ops/reduction/reduced_dims.h"

namespace tenon::ops::shape {
namespace {

DType sum_dtype(HeaderRef self, std::optional<DType> dtype, const char* op) {
  check_arithmetic(self.dtype(), op);
  if (dtype) {
    check_arithmetic(*dtype, op);
    return *dtype;
  }
  return is_integral(self.dtype(), true) ? DType::Int64 : self.dtype();
}

DType mean_dtype(HeaderRef self, std::optional<DType> dtype) {
  const DType type = dtype.value_or(self.dtype());
  check_arithmetic(self.dtype(), "mean");
  check_arithmetic(type, "mean");
  TENON_CHECK(
      is_floating_point(type) || is_complex(type), Type,
      fmt::format(
          "mean: could not infer output dtype. `self` must be of a floating point dtype, got {}; convert "
          "it, or give dtype",
          name(type)));
  return type;
}

/// Every dimension that an extremum is taken over must have elements.
void check_has_extremum(HeaderRef self, const Dims& mask, bool all, const char* op) {
  TENON_CHECK(!all || self.numel() > 0, Index,
              fmt::format("{}: expected reduction dim to be specified for `self` of {} (no elements)", op,
                          to_string(self.sizes())));
  for (size_t d = 0; d < mask.size(); ++d) {
    TENON_CHECK(!mask[d] || self.sizes()[d] > 0, Index,
                fmt::format("{}: expected reduction dim {} to have non-zero size, `self` is {}", op, d,
                            to_string(self.sizes())));
  }
}

void check_moments(HeaderRef self) {
  TENON_CHECK(is_floating_point(self.dtype()) || is_complex(self.dtype()), Type,
              fmt::format(": only supports floating point dtypes, got {}", name(self.dtype())));
  check_arithmetic(self.dtype(), kThisCall);
}

}  // namespace

void sum_all(OutputSpecs& out, HeaderRef self, std::optional<DType> dtype) {
  out.set(0, {}, sum_dtype(self, dtype, kThisCall));
}

void sum_dim(OutputSpecs& out, HeaderRef self, std::optional<IntArrayRef> dim, bool keepdim,
             std::optional<DType> dtype) {
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(dim, self.dim(), "sum"), keepdim),
          sum_dtype(self, dtype, "sum"));
}

void prod_dim(OutputSpecs& out, HeaderRef self, int64_t dim, bool keepdim, std::optional<DType> dtype) {
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(IntArrayRef(dim), self.dim(), "prod"), keepdim),
          sum_dtype(self, dtype, "prod"));
}

void mean_all(OutputSpecs& out, HeaderRef self, std::optional<DType> dtype) {
  out.set(0, {}, mean_dtype(self, dtype));
}

void mean_dim(OutputSpecs& out, HeaderRef self, std::optional<IntArrayRef> dim, bool keepdim,
              std::optional<DType> dtype) {
  const DType type = mean_dtype(self, dtype);
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(dim, self.dim(), "mean"), keepdim), type);
}

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
  out.set(0, self.sizes(), sum_dtype(self, dtype, kThisCall));
}

void logsumexp(OutputSpecs& out, HeaderRef self, IntArrayRef dim, bool keepdim) {
  check_arithmetic(self.dtype(), kThisCall);
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(dim, self.dim(), kThisCall), keepdim),
          is_integral(self.dtype(), true) ? default_dtype() : self.dtype());
}

void extremum(OutputSpecs& out, HeaderRef self, IntArrayRef dim, bool keepdim) {
  check_real(self.dtype(), kThisCall);
  const Dims mask = reduction_mask(dim, self.dim(), kThisCall);
  check_has_extremum(self, mask, dim.empty(), kThisCall);
  out.set(0, reduced_sizes(self.sizes(), mask, keepdim), self.dtype());
}

void extremum_all(OutputSpecs& out, HeaderRef self) {
  check_real(self.dtype(), kThisCall);
  TENON_CHECK(self.numel() > 0, Index,
              ": expected reduction dim to be specified for `self` with no elements");
  out.set(0, {}, self.dtype());
}

void extremum_dim(OutputSpecs& out, HeaderRef self, int64_t dim, bool keepdim) {
  check_real(self.dtype(), kThisCall);
  const Dims mask = reduction_mask(IntArrayRef(dim), self.dim(), kThisCall);
  check_has_extremum(self, mask, false, kThisCall);
  const Dims sizes = reduced_sizes(self.sizes(), mask, keepdim);
  out.set(0, sizes, self.dtype());
  out.set(1, sizes, DType::Int64);
}

void arg_extremum(OutputSpecs& out, HeaderRef self, std::optional<int64_t> dim, bool keepdim) {
  check_real(self.dtype(), kThisCall);
  const Dims mask = reduction_mask(dim ? std::optional<IntArrayRef>(IntArrayRef(*dim)) : std::nullopt,
                                   self.dim(), kThisCall);
  check_has_extremum(self, mask, !dim, kThisCall);
  out.set(0, reduced_sizes(self.sizes(), mask, keepdim), DType::Int64);
}

void bool_reduce_all(OutputSpecs& out, HeaderRef self) {
  check_arithmetic(self.dtype(), kThisCall);
  out.set(0, {}, self.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool);
}

void bool_reduce_dims(OutputSpecs& out, HeaderRef self, std::optional<IntArrayRef> dim, bool keepdim) {
  check_arithmetic(self.dtype(), kThisCall);
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(dim, self.dim(), kThisCall), keepdim),
          self.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool);
}

void bool_reduce_dim(OutputSpecs& out, HeaderRef self, int64_t dim, bool keepdim) {
  check_arithmetic(self.dtype(), kThisCall);
  out.set(0, reduced_sizes(self.sizes(), reduction_mask(IntArrayRef(dim), self.dim(), kThisCall), keepdim),
          self.dtype() == DType::UInt8 ? DType::UInt8 : DType::Bool);
}

}  // namespace tenon::ops::shape
