// clamp in its forms, over clamp_min and clamp_max: either bound may be missing.
#include <fmt/core.h>

#include "tenon/generated/arithmetic/bodies.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/arithmetic/operators.h"
#include "tenon/iter/promotion.h"
#include "tenon/iter/result_shape.h"

namespace tenon::ops {

namespace {

void require_bound(bool given) {
  TENON_CHECK(given, Value, "clamp: `min` and `max` are both None; give at least one of them");
}

void check_cast(DType result, const Tensor& self) {
  TENON_CHECK(can_cast(result, self.dtype()), Type,
              fmt::format("clamp_: the result is {}, which cannot be stored in `self` of {}", name(result),
                          name(self.dtype())));
}

}  // namespace

Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  require_bound(min || max);
  if (!min) return self.clamp_max(*max);
  const Tensor raised = self.clamp_min(*min);
  return max ? raised.clamp_max(*max) : raised;
}

Tensor clamp_Tensor(const Tensor& self, const Tensor& min, const Tensor& max) {
  require_bound(min.defined() || max.defined());
  if (!min.defined()) return self.clamp_max(max);
  return max.defined() ? tenon::_clamp(self, min, max) : self.clamp_min(min);
}

Tensor& clamp_(Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  require_bound(min || max);
  if (min && max) {  // what the second bound refuses must not be found when the first is written
    Promotion promotion;
    promotion.add(self);
    promotion.add(*max);
    check_cast(promotion.common(), self);
  }
  if (min) self.clamp_min_(*min);
  if (max) self.clamp_max_(*max);
  return self;
}

Tensor& clamp__Tensor(Tensor& self, const Tensor& min, const Tensor& max) {
  require_bound(min.defined() || max.defined());
  if (!max.defined()) return self.clamp_min_(min);
  if (!min.defined()) return self.clamp_max_(max);
  // What the second bound refuses must not be found when the first is written.
  Promotion promotion;
  promotion.add(self);
  promotion.add(max);
  check_cast(promotion.common(), self);
  TENON_CHECK(self.sizes() == broadcast_shapes(self.sizes(), max.sizes(), "clamp_"), Shape,
              fmt::format("clamp_: `self` has shape {}, which cannot hold the result with `max` of shape {}",
                          to_string(self.sizes()), to_string(max.sizes())));
  TENON_CHECK(max.dim() == 0 || max.device() == self.device(), Device,
              fmt::format("clamp_: `max` is on {}, expected {} as `self`", to_string(max.device()),
                          to_string(self.device())));
  // Nor may it read what the first wrote.
  const Tensor upper = max.storage() == self.storage() ? max.clone() : max;
  return operators::_clamp_.call(self, min, upper);
}

}  // namespace tenon::ops
