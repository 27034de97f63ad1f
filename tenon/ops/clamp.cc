// clamp in its forms, over clamp_min and clamp_max: either bound may be missing.
#include "tenon/generated/op_bodies.h"

namespace tenon::ops {

namespace {

void require_bound(bool given) {
  TENON_CHECK(given, Value, "clamp: `min` and `max` are both None; give at least one of them");
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
  const Tensor raised = self.clamp_min(min);
  return max.defined() ? raised.clamp_max(max) : raised;
}

Tensor& clamp_(Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max) {
  require_bound(min || max);
  if (min) self.clamp_min_(*min);
  if (max) self.clamp_max_(*max);
  return self;
}

Tensor& clamp__Tensor(Tensor& self, const Tensor& min, const Tensor& max) {
  require_bound(min.defined() || max.defined());
  if (min.defined()) self.clamp_min_(min);
  if (max.defined()) self.clamp_max_(max);
  return self;
}

}  // namespace tenon::ops
