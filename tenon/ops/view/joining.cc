// cat and stack: several tensors in one.
#include <fmt/core.h>

#include "tenon/generated/view/bodies.h"
#include "tenon/generated/view/functions.h"
#include "tenon/generated/view/shapes.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/memory_format.h"
#include "tenon/ops/view/check_defined.h"

namespace tenon::ops {
namespace {

/// A vector of no elements may be joined with tensors of any shape, as in PyTorch.
bool is_skipped(HeaderRef t) { return t.dim() == 1 && t.numel() == 0; }

}  // namespace

namespace shape {

void cat(OutputSpecs& out, HeaderList tensors, int64_t dim) {
  TENON_CHECK(!tensors.empty(), Value, "cat: expected a non-empty list of tensors");
  check_defined(tensors, "cat");
  HeaderRef first;
  DType dtype = tensors[0].dtype();
  for (const HeaderRef t : tensors) {
    TENON_CHECK(t.dim() > 0, Shape, "cat: a zero-dimensional tensor cannot be concatenated");
    dtype = promote_types(dtype, t.dtype());
    if (!first.defined() && !is_skipped(t)) first = t;
  }
  if (!first.defined()) return out.set(0, {0}, dtype);
  const int64_t d = wrap_dim(dim, first.dim(), "cat");
  Dims sizes = first.sizes().to_dims();
  sizes[at(d)] = 0;
  bool channels_last = true;
  for (const HeaderRef t : tensors) {
    if (is_skipped(t)) continue;
    bool fits = t.dim() == first.dim();
    for (int64_t i = 0; fits && i < t.dim(); ++i) fits = i == d || t.sizes()[at(i)] == first.sizes()[at(i)];
    TENON_CHECK(fits, Shape,
                fmt::format("cat: sizes of tensors must match except in dimension {}, got {} and {}", d,
                            to_string(first.sizes()), to_string(t.sizes())));
    TENON_CHECK(!__builtin_add_overflow(sizes[at(d)], t.sizes()[at(d)], &sizes[at(d)]), Shape,
                fmt::format("cat: the sizes in dimension {} add up to more than int64 can count", d));
    channels_last = channels_last && lies_channels_last(t.sizes(), t.strides());
  }
  if (!channels_last) return out.set(0, sizes, dtype);
  out.set_strided(0, sizes, channels_last_strides(sizes), dtype);
}

}  // namespace shape

void cat(TensorList tensors, int64_t dim, Tensor& out) {
  const int64_t d = wrap_dim(dim, out.dim(), "cat");
  int64_t start = 0;
  for (const Tensor& t : tensors) {
    if (is_skipped(t)) continue;
    const int64_t length = t.sizes()[at(d)];
    copy_elements(ops::slice(out, d, start, start + length, 1), t, "cat");
    start += length;
  }
}

Tensor stack(TensorList tensors, int64_t dim) {
  TENON_CHECK(!tensors.empty(), Value, "stack: expected a non-empty list of tensors");
  check_defined(tensors, "stack");
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
