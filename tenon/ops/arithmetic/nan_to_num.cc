// nan_to_num: its bounds are those of the dtype unless given.
#include <limits>

#include "tenon/core/dtype.h"
#include "tenon/generated/arithmetic/bodies.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/arithmetic/operators.h"

namespace tenon::ops {
namespace {

double largest(DType t) {
  switch (t) {
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 0x1.fep+127;
    case DType::Float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

void check_real(const Tensor& self) {
  TENON_CHECK(!self.is_complex(), NotImplemented,
              "nan_to_num: not implemented for complex tensors; use view_as_real()");
}

}  // namespace

Tensor nan_to_num(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  check_real(self);
  const DType t = self.dtype();
  if (is_integral(t, true)) return self.clone();
  return tenon::_nan_to_num(self, nan.value_or(0), posinf.value_or(largest(t)), neginf.value_or(-largest(t)));
}

Tensor& nan_to_num_(Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                    std::optional<double> neginf) {
  check_real(self);
  const DType t = self.dtype();
  if (is_integral(t, true)) return self;
  return tenon::operators::_nan_to_num_.call(self, nan.value_or(0), posinf.value_or(largest(t)),
                                             neginf.value_or(-largest(t)));
}

}  // namespace tenon::ops
