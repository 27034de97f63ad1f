// Activations that choose among expressions, or take their operands apart.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/activation/bodies.h"
#include "tenon/generated/activation/functions.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/view/functions.h"

namespace tenon::ops {

Tensor gelu(const Tensor& self, std::string_view approximate) {
  if (approximate == "none") return tenon::_gelu_erf(self);
  if (approximate == "tanh") return tenon::_gelu_tanh(self);
  throw_error(ErrorKind::Value,
              fmt::format("gelu: `approximate` must be 'none' or 'tanh', got '{}'", approximate));
}

Tensor& gelu_(Tensor& self, std::string_view approximate) {
  // The derivative needs the elements that are overwritten.
  const bool kept = self.requires_grad() && thread_state.grad_enabled;
  self.copy_(ops::gelu(kept ? self.clone() : self, approximate));
  return self;
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  TENON_CHECK(weight.dim() <= 1, Shape,
              fmt::format("prelu: `weight` has shape {}, expected one number or one for each channel",
                          to_string(weight.sizes())));
  if (weight.numel() == 1) return tenon::_prelu_kernel(self, weight.reshape({}));
  const int64_t channels = self.dim() > 1 ? self.sizes()[1] : 1;
  TENON_CHECK(
      self.dim() > 0 && weight.numel() == channels, Shape,
      fmt::format("prelu: `weight` has {} numbers, expected one number{} for `self` {}", weight.numel(),
                  self.dim() > 1 ? fmt::format(", or one for each of {} channels,", channels) : "",
                  to_string(self.sizes())));
  Dims sizes(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) sizes[1] = channels;
  return tenon::_prelu_kernel(self, weight.reshape(sizes));
}

Tensor glu(const Tensor& self, int64_t dim) {
  TENON_CHECK(self.dim() > 0, Shape, "glu: `self` must have at least one dimension");
  const int64_t d = wrap_dim(dim, self.dim(), "glu");
  const int64_t size = self.sizes()[static_cast<size_t>(d)];
  TENON_CHECK(size % 2 == 0, Shape,
              fmt::format("glu: `self` has size {} along dimension {}, which cannot be halved", size, d));
  const int64_t half = size / 2;
  return tenon::mul(tenon::slice(self, d, 0, half), tenon::sigmoid(tenon::slice(self, d, half, size)));
}

}  // namespace tenon::ops
