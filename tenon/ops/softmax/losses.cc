// Softmax with a dtype, and the losses built on it.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/comparison/functions.h"
#include "tenon/generated/elementwise_loss/functions.h"
#include "tenon/generated/indexing/functions.h"
#include "tenon/generated/reduction/functions.h"
#include "tenon/generated/softmax/bodies.h"
#include "tenon/generated/softmax/functions.h"
#include "tenon/generated/unary/functions.h"
#include "tenon/generated/view/functions.h"

namespace tenon::ops {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

Tensor reduce_loss(const Tensor& loss, int64_t reduction) {
  switch (reduction) {
    case kNone:
      return loss;
    case kMean:
      return tenon::mean(loss);
    case kSum:
      return tenon::sum(loss);
    default:
      throw_error(ErrorKind::Value,
                  fmt::format("reduction must be 0 (none), 1 (mean) or 2 (sum), got {}", reduction));
  }
}

/// Where the classes are: dimension 1, or 0 of a vector.
int64_t class_dim(const Tensor& self) { return self.dim() == 1 ? 0 : 1; }

Tensor nll_of_images(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                     int64_t ignore_index) {
  // [N, C, d1, ...] as [N * d1 * ..., C]: every place is a row.
  Dims places = target.sizes().to_dims();
  const Tensor rows = tenon::movedim(self, 1, -1).reshape({-1, self.sizes()[1]});
  const Tensor loss = ops::nll_loss(rows, target.reshape({-1}), weight, reduction, ignore_index);
  return reduction == kNone ? tenon::_unsafe_view(loss, places) : loss;
}

void check_places(const Tensor& self, const Tensor& target) {
  Dims expected = self.sizes().to_dims();
  expected.erase(static_cast<size_t>(class_dim(self)));
  TENON_CHECK(target.sizes() == IntArrayRef(expected), Shape,
              fmt::format("nll_loss: expected `target` of shape {} for `self` {}, got {}",
                          to_string(expected), to_string(self.sizes()), to_string(target.sizes())));
}

Tensor with_probabilities(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                          double smoothing) {
  const int64_t classes = self.sizes()[static_cast<size_t>(class_dim(self))];
  Tensor wanted = target;
  if (smoothing > 0) {
    wanted = tenon::add(tenon::mul(target, Scalar(1 - smoothing)),
                        Scalar(smoothing / static_cast<double>(classes)));
  }
  Tensor terms = tenon::mul(tenon::log_softmax(self, class_dim(self)), wanted);
  if (weight.defined()) {
    Dims shape(self.sizes().size(), 1);
    shape[static_cast<size_t>(class_dim(self))] = classes;
    terms = tenon::mul(terms, weight.view(shape));
  }
  const Dims dim{class_dim(self)};
  const Tensor each = tenon::neg(tenon::sum(terms, IntArrayRef(dim)));
  if (reduction != kMean) return reduce_loss(each, reduction);
  // By the number of rows; the mean of none is nan.
  return tenon::div(tenon::sum(each), Scalar(each.numel()));
}

Tensor with_smoothing(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                      int64_t ignore_index, double smoothing) {
  const int64_t classes = self.sizes()[static_cast<size_t>(class_dim(self))];
  const Tensor log_p = tenon::log_softmax(self, class_dim(self));
  const Tensor nll = ops::nll_loss(log_p, target, weight, reduction, ignore_index);
  Tensor weighted = log_p;
  if (weight.defined()) {
    Dims shape(self.sizes().size(), 1);
    shape[static_cast<size_t>(class_dim(self))] = classes;
    weighted = tenon::mul(log_p, weight.view(shape));
  }
  const Dims dim{class_dim(self)};
  const Tensor ignored = tenon::eq(target, Scalar(ignore_index));
  Tensor smooth = tenon::masked_fill(tenon::neg(tenon::sum(weighted, IntArrayRef(dim))), ignored, 0.0);
  if (reduction == kMean) {
    const Tensor kept = tenon::logical_not(ignored);
    const Tensor safe = tenon::masked_fill(target, ignored, 0);
    const Tensor weights =
        weight.defined() ? tenon::mul(tenon::index_select(weight, 0, safe.reshape({-1})).view(safe.sizes()),
                                      kept.to(self.dtype()))
                         : kept.to(self.dtype());
    smooth = tenon::div(tenon::sum(smooth), tenon::sum(weights));
  } else {
    smooth = reduce_loss(smooth, reduction);
  }
  const double share = smoothing / static_cast<double>(classes);
  return tenon::add(tenon::mul(nll, Scalar(1 - smoothing)), tenon::mul(smooth, Scalar(share)));
}

}  // namespace

Tensor nll_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                int64_t ignore_index) {
  TENON_CHECK(self.dim() > 0, Shape, "nll_loss: `self` must have at least one dimension");
  TENON_CHECK(!weight.defined() || !weight.requires_grad() || !thread_state.grad_enabled, NotImplemented,
              "nll_loss: the derivative for `weight` is not implemented; use weight.detach()");
  if (self.dim() > 2) {
    check_places(self, target);
    return nll_of_images(self, target, weight, reduction, ignore_index);
  }
  return std::get<0>(tenon::nll_loss_forward(self, target, weight, reduction, ignore_index));
}

Tensor cross_entropy_loss(const Tensor& self, const Tensor& target, const Tensor& weight, int64_t reduction,
                          int64_t ignore_index, double label_smoothing) {
  TENON_CHECK(self.dim() > 0, Shape, "cross_entropy_loss: `self` must have at least one dimension");
  TENON_CHECK(label_smoothing >= 0 && label_smoothing <= 1, Value,
              fmt::format("cross_entropy_loss: label_smoothing must be between 0.0 and 1.0. Got: {}",
                          label_smoothing));
  if (self.sizes() == target.sizes()) {
    TENON_CHECK(
        is_floating_point(target.dtype()), Type,
        fmt::format(
            "cross_entropy_loss: expected floating point type for `target` with class probabilities, got {}",
            name(target.dtype())));
    TENON_CHECK(ignore_index < 0, Value,
                "cross_entropy_loss: ignore_index is not supported for floating point `target`");
    return with_probabilities(self, target, weight, reduction, label_smoothing);
  }
  if (label_smoothing > 0) {
    check_places(self, target);
    return with_smoothing(self, target, weight, reduction, ignore_index, label_smoothing);
  }
  return ops::nll_loss(tenon::log_softmax(self, class_dim(self)), target, weight, reduction, ignore_index);
}

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduce_loss(tenon::abs(tenon::sub(self, target)), reduction);
}

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  TENON_CHECK(
      !self.is_complex() && !target.is_complex(), NotImplemented,
      "mse_loss: not implemented for complex tensors, whose squares are no distances; use l1_loss, or "
      "abs(self - target)");
  TENON_CHECK(self.dtype() != DType::Bool || target.dtype() != DType::Bool, Type,
              "mse_loss: not implemented for two bool tensors; use logical_xor for where they differ");
  // Truth values with numbers are numbers.
  const auto number = [](const Tensor& x, const Tensor& other) {
    return x.dtype() == DType::Bool ? x.to(other.dtype()) : x;
  };
  return reduce_loss(tenon::_mse_loss(number(self, target), number(target, self)), reduction);
}

}  // namespace tenon::ops
