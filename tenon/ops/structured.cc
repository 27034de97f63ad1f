#include "tenon/ops/structured.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/iter/geometry.h"
#include "tenon/ops/elements.h"

namespace tenon::detail {

bool structured_serves(const void* info, Backend backend) noexcept {
  return backend == kMetaBackend || static_cast<const StructuredInfo*>(info)->stub->has(backend);
}

void StructuredArguments::add(const Tensor& t) {
  if (!t.defined()) return;
  if (tensors_.empty()) {
    device_ = t.device();
  } else {
    TENON_CHECK(t.device() == device_, Device,
                fmt::format("{}: expected all tensors on the same device, found {} and {}", op_,
                            to_string(device_), to_string(t.device())));
  }
  tensors_.push_back(&t);
}

bool StructuredArguments::share_storage(const Tensor& t) const noexcept {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const Tensor* other) { return other->storage() == t.storage(); });
}

bool StructuredArguments::has(const Tensor& t) const noexcept {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const Tensor* other) { return other->is_same(t); });
}

Tensor structured_output(const ShapeResult::Output& wanted, Device device) {
  TENON_CHECK(wanted.set, Internal, "a shape function left an output without a shape");
  return make_empty(wanted.sizes, wanted.dtype, device);
}

void structured_check(const char* op, const ShapeResult::Output& wanted, const StructuredArguments& arguments,
                      const Tensor& out, bool in_place) {
  const char* argument = in_place ? "self" : "out";
  TENON_CHECK(wanted.set, Internal, "a shape function left an output without a shape");
  TENON_CHECK(out.defined(), Type, fmt::format("{}: `{}` must be a tensor, got None", op, argument));
  TENON_CHECK(out.device() == arguments.device(), Device,
              fmt::format("{}: expected `{}` on {}, got {}", op, argument, to_string(arguments.device()),
                          to_string(out.device())));
  TENON_CHECK(can_cast(wanted.dtype, out.dtype()), Type,
              fmt::format("{}: the result is {}, which cannot be cast to `{}` of {}", op, name(wanted.dtype),
                          argument, name(out.dtype())));
  const bool fits = out.sizes() == IntArrayRef(wanted.sizes);
  TENON_CHECK(
      fits || (!in_place && out.numel() == 0), Shape,
      fmt::format("{}: `{}` has shape {}, the result {}{}", op, argument, to_string(out.sizes()),
                  to_string(wanted.sizes), in_place ? "" : "; give one of that shape, or an empty one"));
  TENON_CHECK(
      fits || !arguments.has(out), Shape,
      fmt::format("{}: `out` of shape {} is an operand too, so it cannot take the shape {} of the result", op,
                  to_string(out.sizes()), to_string(wanted.sizes)));
  if (fits) ops::check_no_internal_overlap(out, op);
}

void resize_structured(const ShapeResult::Output& wanted, Tensor& out) {
  if (out.sizes() == IntArrayRef(wanted.sizes)) return;
  resize_output(out, wanted.sizes, contiguous_strides(wanted.sizes));
}

Tensor structured_target(const ShapeResult::Output& wanted, const StructuredArguments& arguments,
                         Tensor& out) {
  resize_structured(wanted, out);
  const bool direct = out.dtype() == wanted.dtype && out.is_contiguous() && !arguments.share_storage(out);
  return direct ? out : structured_output(wanted, arguments.device());
}

void structured_finish(Tensor& out, const Tensor& target) {
  if (!out.is_same(target)) ops::copy_elements(out, target, "out");
}

}  // namespace tenon::detail
