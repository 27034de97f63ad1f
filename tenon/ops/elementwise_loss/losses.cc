// The losses of elementwise_loss.yaml: their expressions, reduced.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/elementwise_loss/bodies.h"
#include "tenon/generated/elementwise_loss/functions.h"
#include "tenon/generated/reduction/functions.h"

namespace tenon::ops {
namespace {

Tensor reduced(const char* op, const Tensor& loss, int64_t reduction) {
  TENON_CHECK(reduction >= 0 && reduction <= 2, Value,
              fmt::format("{}: reduction must be 0 (none), 1 (mean) or 2 (sum), got {}", op, reduction));
  return reduction == 0 ? loss : reduction == 1 ? tenon::mean(loss) : tenon::sum(loss);
}

void check_real(const char* op, const Tensor& self, const Tensor& target) {
  TENON_CHECK(!self.is_complex() && !target.is_complex(), NotImplemented,
              fmt::format("{}: not implemented for complex tensors", op));
}

void check_probabilities(const char* argument, const Tensor& values) {
  if (values.is_meta()) return;
  const Tensor inside = tenon::logical_and(tenon::ge(values, 0), tenon::le(values, 1));
  TENON_CHECK(tenon::all(inside).item().to_bool(), Runtime,
              fmt::format("binary_cross_entropy: all elements of `{}` should be between 0 and 1", argument));
}

}  // namespace

Tensor binary_cross_entropy(const Tensor& self, const Tensor& target, const Tensor& weight,
                            int64_t reduction) {
  check_real("binary_cross_entropy", self, target);
  TENON_CHECK(self.sizes() == target.sizes(), Shape,
              fmt::format("binary_cross_entropy: `target` has shape {}, expected {} as `self`",
                          to_string(target.sizes()), to_string(self.sizes())));
  check_probabilities("self", self);
  check_probabilities("target", target);
  Tensor loss = tenon::_binary_cross_entropy(self, target);
  if (weight.defined()) loss = tenon::mul(loss, weight);
  return reduced("binary_cross_entropy", loss, reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target, const Tensor& weight,
                                        const Tensor& pos_weight, int64_t reduction) {
  check_real("binary_cross_entropy_with_logits", self, target);
  return reduced("binary_cross_entropy_with_logits",
                 tenon::_bce_with_logits(self, target, weight, pos_weight), reduction);
}

Tensor huber_loss(const Tensor& self, const Tensor& target, int64_t reduction, double delta) {
  TENON_CHECK(delta > 0, Value, fmt::format("huber_loss: delta must be positive, got {}", delta));
  check_real("huber_loss", self, target);
  return reduced("huber_loss", tenon::_huber_loss(self, target, delta), reduction);
}

Tensor kl_div(const Tensor& self, const Tensor& target, int64_t reduction, bool log_target) {
  check_real("kl_div", self, target);
  return reduced("kl_div", log_target ? tenon::_kl_div_of_logs(self, target) : tenon::_kl_div(self, target),
                 reduction);
}

Tensor smooth_l1_loss(const Tensor& self, const Tensor& target, int64_t reduction, double beta) {
  TENON_CHECK(beta >= 0, Value, fmt::format("smooth_l1_loss: beta must not be negative, got {}", beta));
  check_real("smooth_l1_loss", self, target);
  return reduced("smooth_l1_loss", tenon::_smooth_l1_loss(self, target, beta), reduction);
}

Tensor soft_margin_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  check_real("soft_margin_loss", self, target);
  return reduced("soft_margin_loss", tenon::_soft_margin_loss(self, target), reduction);
}

}  // namespace tenon::ops
