#include "tenon/iter/promotion.h"

#include <fmt/core.h>

namespace tenon {

DType Promotion::wrapped_dtype(DType t) noexcept {
  if (is_floating_point(t)) return default_dtype();
  if (tenon::is_complex(t)) return Scalar(std::complex<double>()).dtype();
  return t;
}

Promotion::Maybe Promotion::combine(Maybe higher, Maybe lower) {
  if (!higher) return lower;
  if (!lower || is_complex(*higher)) return higher;
  if (is_floating_point(*higher)) {
    // A complex operand of lower rank brings its category, not its width.
    if (!is_complex(*lower)) return higher;
    return *higher == DType::Float64 ? DType::Complex128 : DType::Complex64;
  }
  if (*higher == DType::Bool || is_floating_point(*lower) || is_complex(*lower))
    return promote_types(*higher, *lower);
  return higher;
}

namespace {

// A tensor without dimensions is computed with by its value, and no dtype holds those of uint64 and of
// others.
void check_zero_dim(DType dim, DType zero_dim) {
  const bool fits = dim == zero_dim || zero_dim == DType::Bool || dim == DType::Bool ||
                    (zero_dim != DType::UInt64 && (dim != DType::UInt64 || !is_signed(zero_dim)));
  TENON_CHECK(fits, Type,
              fmt::format("promote_types: {} and {} of no dimensions do not promote; convert one with .to()",
                          name(dim), name(zero_dim)));
}

}  // namespace

DType Promotion::common() const {
  const Maybe all = combine(dim_, combine(zero_dim_, wrapped_));
  TENON_CHECK(all.has_value(), Internal, "promotion: no operand to take a dtype from");
  if (dim_ && zero_dim_ && is_integral(*all, false)) check_zero_dim(*dim_, *zero_dim_);
  return *all;
}

DType result_type(std::span<const Tensor* const> tensors) {
  Promotion p;
  for (const Tensor* t : tensors) p.add(*t);
  return p.common();
}

}  // namespace tenon
