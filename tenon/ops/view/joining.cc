// cat and stack: several tensors in one.
#include <fmt/core.h>

#include "tenon/core/thread_state.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/bodies.h"
#include "tenon/generated/view/functions.h"
#include "tenon/iter/promotion.h"
#include "tenon/ops/view/geometry.h"

namespace tenon::ops {
namespace {

/// A vector of no elements may stand among tensors of any shape, as in PyTorch.
bool is_skipped(const Tensor& t) { return t.dim() == 1 && t.numel() == 0; }

}  // namespace

Tensor cat(TensorList tensors, int64_t dim) {
  TENON_CHECK(!tensors.empty(), Value, "cat: expected a non-empty list of tensors");
  Promotion promotion;
  const Tensor* first = nullptr;
  for (const Tensor& t : tensors) {
    TENON_CHECK(t.defined(), Type, "cat: expected tensors, got None");
    TENON_CHECK(t.dim() > 0, Shape, "cat: a zero-dimensional tensor cannot be concatenated");
    promotion.add(t);
    if (!first && !is_skipped(t)) first = &t;
  }
  const DType dtype = promotion.common();
  const int64_t d = first ? wrap_dim(dim, first->dim(), "cat") : 0;
  if (!first) first = &tensors[0];
  Dims sizes = first->sizes().to_dims();
  sizes[at(d)] = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) continue;
    bool fits = t.dim() == first->dim();
    for (int64_t i = 0; fits && i < t.dim(); ++i) fits = i == d || t.sizes()[at(i)] == first->sizes()[at(i)];
    TENON_CHECK(fits, Shape,
                fmt::format("cat: sizes of tensors must match except in dimension {}, got {} and {}", d,
                            to_string(first->sizes()), to_string(t.sizes())));
    TENON_CHECK(!__builtin_add_overflow(sizes[at(d)], t.sizes()[at(d)], &sizes[at(d)]), Shape,
                fmt::format("cat: the sizes in dimension {} add up to more than int64 can count", d));
  }
  Tensor result = tenon::empty(sizes, first->options().dtype(dtype));
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) {
      // Nothing of it is in the result, which requires grad all the same.
      if (thread_state.grad_enabled && t.requires_grad()) result.narrow(d, 0, 0).view({0}).copy_(t);
      continue;
    }
    const int64_t length = t.sizes()[at(d)];
    result.narrow(d, start, length).copy_(t);
    start += length;
  }
  return result;
}

Tensor stack(TensorList tensors, int64_t dim) {
  TENON_CHECK(!tensors.empty(), Value, "stack: expected a non-empty list of tensors");
  for (const Tensor& t : tensors) TENON_CHECK(t.defined(), Type, "stack: expected tensors, got None");
  const int64_t d = wrap_dim(dim, tensors[0].dim() + 1, "stack");
  std::vector<Tensor> wide;
  wide.reserve(tensors.size());
  for (const Tensor& t : tensors) {
    TENON_CHECK(t.sizes() == tensors[0].sizes(), Shape,
                fmt::format("stack: expects each tensor to be equal size, but got {} and {}",
                            to_string(tensors[0].sizes()), to_string(t.sizes())));
    wide.push_back(t.unsqueeze(d));
  }
  return tenon::cat(wide, d);
}

}  // namespace tenon::ops
