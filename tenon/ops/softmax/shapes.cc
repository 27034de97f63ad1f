// Shapes of softmax and of the losses built on it.
#include <fmt/core.h>

#include "tenon/generated/softmax/shapes.h"
#include "tenon/ops/elements/elements.h"

namespace tenon::ops::shape {

namespace {

void check_nll(HeaderRef self, HeaderRef target, HeaderRef weight, int64_t reduction) {
  check_arithmetic(self, "nll_loss");
  TENON_CHECK(self.dim() == 1 || self.dim() == 2, Shape,
              fmt::format("nll_loss: `self` must be 1D or 2D, got {}", to_string(self.sizes())));
  TENON_CHECK(is_floating_point(self.dtype()), NotImplemented,
              fmt::format("nll_loss: not implemented for {}", name(self.dtype())));
  TENON_CHECK(target.dtype() == DType::Int64 || target.dtype() == DType::UInt8, Type,
              fmt::format("nll_loss: expected `target` of int64 or uint8, got {}", name(target.dtype())));
  TENON_CHECK(target.dim() == self.dim() - 1, Shape,
              fmt::format("nll_loss: `target` must have one dimension less than `self` {}, got {}",
                          to_string(self.sizes()), to_string(target.sizes())));
  TENON_CHECK(self.dim() == 1 || self.sizes()[0] == target.sizes()[0], Shape,
              fmt::format("nll_loss: size mismatch (got `self` {}, `target` {})", to_string(self.sizes()),
                          to_string(target.sizes())));
  const int64_t classes = self.sizes().back();
  if (weight.defined()) {
    TENON_CHECK(weight.dim() == 1 && weight.numel() == classes, Shape,
                fmt::format("nll_loss: `weight` should be defined for all {} classes, got {}", classes,
                            to_string(weight.sizes())));
    TENON_CHECK(weight.dtype() == self.dtype(), Type,
                fmt::format("nll_loss: expected `weight` of {} as `self`, got {}", name(self.dtype()),
                            name(weight.dtype())));
  }
  TENON_CHECK(reduction >= 0 && reduction <= 2, Value,
              fmt::format("nll_loss: reduction must be 0 (none), 1 (mean) or 2 (sum), got {}", reduction));
}

}  // namespace

void nll_loss_forward(OutputSpecs& out, HeaderRef self, HeaderRef target, HeaderRef weight, int64_t reduction,
                      int64_t ignore_index) {
  check_nll(self, target, weight, reduction);
  out.set(0, reduction == 0 ? target.sizes() : IntArrayRef(), self.dtype());
  out.set(1, {}, self.dtype());
}

void nll_loss_backward(OutputSpecs& out, HeaderRef grad_output, HeaderRef self, HeaderRef target,
                       HeaderRef weight, int64_t reduction, int64_t ignore_index, HeaderRef total_weight) {
  check_nll(self, target, weight, reduction);
  const IntArrayRef expected = reduction == 0 ? target.sizes() : IntArrayRef();
  TENON_CHECK(grad_output.sizes() == expected, Shape,
              fmt::format("nll_loss backward: expected `grad_output` of shape {}, got {}",
                          to_string(expected), to_string(grad_output.sizes())));
  TENON_CHECK(total_weight.numel() == 1, Shape,
              fmt::format("nll_loss backward: expected `total_weight` to be a single element tensor, got {}",
                          to_string(total_weight.sizes())));
  out.set(0, self.sizes(), self.dtype());
}

}  // namespace tenon::ops::shape
