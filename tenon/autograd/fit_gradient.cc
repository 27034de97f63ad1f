#include "tenon/autograd/fit_gradient.h"

#include <fmt/core.h>

#include "tenon/generated/complex/functions.h"
#include "tenon/generated/reduction/functions.h"

namespace tenon::autograd {
namespace {

bool broadcasts_to(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  const size_t extra = to.size() - from.size();
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] != to[d + extra] && from[d] != 1) return false;
  }
  return true;
}

}  // namespace

Tensor fit_gradient_slow(Tensor grad, const TensorMeta& meta, const Node& from, size_t output) {
  TENON_CHECK(
      grad.device() == meta.device(), Device,
      fmt::format("Function {} returned an invalid gradient at index {} - expected device {} but got {}",
                  from.name(), output, to_string(meta.device()), to_string(grad.device())));
  if (!(grad.sizes() == meta.sizes())) {
    TENON_CHECK(
        broadcasts_to(meta.sizes(), grad.sizes()), Runtime,
        fmt::format("Function {} returned an invalid gradient at index {} - got {} but expected shape "
                    "compatible with {}",
                    from.name(), output, to_string(grad.sizes()), to_string(meta.sizes())));
    grad = tenon::sum_to_size(grad, meta.sizes());
  }
  // A real operand with complex ones: the loss does not move with its imaginary part.
  if (is_complex(grad.dtype()) && !is_complex(meta.dtype())) grad = tenon::real(grad);
  if (grad.dtype() != meta.dtype()) {
    TENON_CHECK(
        can_cast(grad.dtype(), meta.dtype()), Runtime,
        fmt::format("Function {} returned an invalid gradient at index {} - expected dtype {} but got {}",
                    from.name(), output, tenon::name(meta.dtype()), tenon::name(grad.dtype())));
    grad = grad.to(meta.dtype());
  }
  return grad;
}

}  // namespace tenon::autograd
