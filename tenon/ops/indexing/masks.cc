// Masks and positions of elements that are not zero.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/indexing/bodies.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/device_stubs.h"

namespace tenon::ops {
namespace {

void check_mask(const Tensor& mask, const char* op) {
  TENON_CHECK(mask.dtype() == DType::Bool, Type,
              fmt::format("{}: `mask` must be bool, got {}", op, name(mask.dtype())));
}

void check_fill(const Tensor& self, const Tensor& mask, bool integral, bool complex) {
  check_mask(mask, "masked_fill");
  TENON_CHECK(
      !is_integral(self.dtype(), true) || integral, Type,
      fmt::format("masked_fill: a floating point value cannot fill `self` of {}", name(self.dtype())));
  TENON_CHECK(!complex || self.is_complex(), Type,
              fmt::format("masked_fill: a complex value cannot fill `self` of {}", name(self.dtype())));
}
void check_fill(const Tensor& self, const Tensor& mask, const Tensor& value) {
  TENON_CHECK(value.dim() == 0, Shape,
              fmt::format("masked_fill: `value` must be a number or a 0-dim tensor, got a tensor of shape {}",
                          to_string(value.sizes())));
  check_fill(self, mask, is_integral(value.dtype(), true), value.is_complex());
}

Tensor number_of(const Tensor& like, const Scalar& value) {
  return tenon::full({}, value, TensorOptions(like.dtype()).device(like.device()));
}

}  // namespace

Tensor nonzero(const Tensor& self) {
  TENON_CHECK(!self.is_meta(), NotImplemented,
              "nonzero: the shape of the result depends on the data, which a meta tensor lacks");
  return nonzero_stub(self.device(), self);
}

Tensor masked_fill(const Tensor& self, const Tensor& mask, const Scalar& value) {
  check_fill(self, mask, value.is_integral(), value.is_complex());
  return tenon::_masked_write(self, mask, number_of(self, value));
}

Tensor masked_fill_Tensor(const Tensor& self, const Tensor& mask, const Tensor& value) {
  check_fill(self, mask, value);
  return tenon::_masked_write(self, mask, value.to(self.device(), self.dtype()));
}

Tensor& masked_fill_(Tensor& self, const Tensor& mask, const Scalar& value) {
  check_fill(self, mask, value.is_integral(), value.is_complex());
  return self._masked_write_(mask, number_of(self, value));
}

Tensor& masked_fill__Tensor(Tensor& self, const Tensor& mask, const Tensor& value) {
  check_fill(self, mask, value);
  return self._masked_write_(mask, value.to(self.device(), self.dtype()));
}

Tensor masked_scatter_backward(const Tensor& grad_output, const Tensor& mask, IntArrayRef sizes) {
  const int64_t count = checked_numel(sizes, "masked_scatter_backward");
  // Where the mask is true, elements of the source in order; all others add zeros to some place. One more
  // place than the source has, which may be none.
  const Tensor wide = mask.expand(grad_output.sizes()).reshape({-1});
  const Tensor place = clamp_min(tenon::cumsum(wide, 0, DType::Int64).sub(1), 0);
  const Tensor read = tenon::masked_fill(grad_output.reshape({-1}), wide.logical_not(), 0);
  return tenon::put(tenon::zeros({count + 1}, grad_output.options()), place, read, true)
      .narrow(0, 0, count)
      .reshape(sizes);
}

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  check_mask(mask, "masked_select");
  const Dims sizes = broadcast_shapes(self.sizes(), mask.sizes(), "masked_select");
  const auto wide = [&](const Tensor& t) {
    const Tensor all = t.expand(sizes);
    return sizes.empty() ? all.unsqueeze(0) : all;
  };
  const Tensor list[] = {wide(mask)};
  return tenon::index(wide(self), list);
}

}  // namespace tenon::ops
