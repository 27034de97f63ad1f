#include "tenon/ops/forms/structured.h"

#include <fmt/core.h>

#include <algorithm>

#include "tenon/iter/overlap.h"
#include "tenon/iter/result_shape.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/rows.h"

namespace tenon::detail {

void no_elements() {}

bool structured_serves(const void* data, Backend backend) noexcept {
  const auto& info = *static_cast<const StructuredInfo*>(data);
  if (backend == kMetaBackend) return true;
  if (!info.body) return info.stub->has(backend);
  const StubBase* const* stub = info.stubs;
  while (stub && *stub && (*stub)->has(backend)) ++stub;
  return !stub || !*stub;
}

void StructuredArguments::add(const Tensor& t) {
  if (!t.defined()) return;
  if (tensors_.empty()) {
    device_ = t.device();
    first_ = position_;
  } else if (t.device() != device_ && !info_.mixed_devices) [[unlikely]] {
    throw_other_device(t);
  }
  tensors_.push_back(&t);
}

void StructuredArguments::throw_other_device(const Tensor& t) const {
  const auto name_of = [&](size_t i) {
    std::string_view names = info_.arguments;
    for (; i > 0; --i) names.remove_prefix(names.find(' ') + 1);
    return std::string(names.substr(0, names.find(' ')));
  };
  std::string there = name_of(position_), first = name_of(first_);
  // Two tensors of one argument: it is a list.
  if (first_ == position_) {
    first += "[0]";
    there += fmt::format("[{}]", &t - tensors_[0]);
  }
  throw_error(ErrorKind::Device,
              fmt::format("{}: `{}` is on {}, expected the same device as `{}`, {}; move one with .to()",
                          info_.name, there, to_string(t.device()), first, to_string(device_)));
}

bool StructuredArguments::share_storage(const Tensor& t) const noexcept {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const Tensor* other) { return other->storage() == t.storage(); });
}

bool StructuredArguments::has(const Tensor& t) const noexcept {
  return std::any_of(tensors_.begin(), tensors_.end(),
                     [&](const Tensor* other) { return other->is_same(t); });
}

void throw_not_set(const char* op) {
  throw_error(ErrorKind::Internal, fmt::format("{}: its shape function left an output without a shape", op));
}

void structured_check(const StructuredInfo& info, const OutputSpec& wanted,
                      const StructuredArguments& arguments, const Tensor& out, bool in_place) {
  const char* op = info.name;
  const char* argument = in_place ? "self" : "out";
  if (!wanted.set) throw_not_set(op);
  TENON_CHECK(out.defined(), Type,
              fmt::format("{}: `{}` must be a tensor, got an undefined one (None in Python)", op, argument));
  TENON_CHECK(out.device() == arguments.device(), Device,
              fmt::format("{}: expected `{}` on {}, got {}", op, argument, to_string(arguments.device()),
                          to_string(out.device())));
  TENON_CHECK(can_cast(wanted.dtype, out.dtype()), Type,
              fmt::format("{}: the result is {}, which cannot be cast to `{}` of {}", op, name(wanted.dtype),
                          argument, name(out.dtype())));
  TENON_CHECK(in_place || can_store(info.out_rule, wanted.dtype, out.dtype()), Type,
              fmt::format("{}: expected `out` of {}, the dtype of the result, got {}", op, name(wanted.dtype),
                          name(out.dtype())));
  const bool fits = out.sizes() == IntArrayRef(wanted.sizes);
  if (!fits) checked_numel(wanted.sizes, op);
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

namespace {

Dims strides_of(const OutputSpec& wanted) {
  return wanted.contiguous ? contiguous_strides(wanted.sizes) : wanted.strides;
}

/// `out` as it will be when it has the result's shape.
Tensor resized_view(const OutputSpec& wanted, const Tensor& out) {
  if (out.sizes() == IntArrayRef(wanted.sizes)) return out;
  return Tensor(
      TensorImpl::make(out.storage(), out.dtype(), wanted.sizes, strides_of(wanted), out.storage_offset()));
}

}  // namespace

void check_apart(const char* op, std::span<const OutputSpec> wanted, Tensor* const* outs) {
  for (size_t j = 1; j < wanted.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      const Tensor &a = *outs[i], &b = *outs[j];
      if (a.storage() != b.storage()) continue;
      const bool apart =
          !a.is_same(b) && overlap(resized_view(wanted[i], a), resized_view(wanted[j], b)) == Overlap::None;
      TENON_CHECK(apart, Runtime,
                  fmt::format("{}: outputs {} and {} {}; each result needs memory of its own", op, i, j,
                              a.is_same(b) ? "are the same tensor" : "overlap in memory"));
    }
  }
}

void resize_structured(const OutputSpec& wanted, Tensor& out) {
  if (out.sizes() == IntArrayRef(wanted.sizes)) return;
  resize_output(out, wanted.sizes, strides_of(wanted));
}

Tensor structured_target(const OutputSpec& wanted, const StructuredArguments& arguments, Tensor& out) {
  resize_structured(wanted, out);
  const bool strides = wanted.contiguous ? out.is_contiguous() : out.strides() == IntArrayRef(wanted.strides);
  const bool direct = strides && out.dtype() == wanted.dtype && !arguments.share_storage(out);
  Tensor target = out;
  if (!direct) {
    target = wanted.contiguous
                 ? make_empty(wanted.sizes, wanted.dtype, arguments.device())
                 : make_empty_strided(wanted.sizes, wanted.strides, wanted.dtype, arguments.device());
  }
  if (wanted.elements == Elements::Zero) ops::zero_elements(target);
  return target;
}

void take_dtype(const StructuredInfo& info, const Tensor& self, const Tensor& out,
                std::optional<DType>& dtype) {
  if (info.out_rule != OutRule::Cast || !out.defined()) return;
  TENON_CHECK(dtype.value_or(out.dtype()) == out.dtype(), Type,
              fmt::format("{}: dtype={} does not match `out`, which is {}", info.name, name(*dtype),
                          name(out.dtype())));
  const bool mean = info.rows && info.rows->computes == RowsInfo::Computes::Mean;
  if (!mean || is_integral(self.dtype(), true) == is_integral(out.dtype(), true)) dtype = out.dtype();
}

void structured_finish(Tensor& out, const Tensor& target) {
  if (!out.is_same(target)) ops::copy_elements(out, target, "out");
}

namespace {

/// The same strides, where a dimension has any use for its own.
bool same_strides(IntArrayRef sizes, IntArrayRef a, IntArrayRef b) {
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
  }
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && a[d] != b[d]) return false;
  }
  return true;
}

std::string described(IntArrayRef sizes, IntArrayRef strides, DType dtype) {
  return fmt::format("{} {} with strides {}", name(dtype), to_string(sizes), to_string(strides));
}

}  // namespace

void check_left(const char* op, const TensorHeader& given, const Storage& storage, const Tensor& t) {
  TENON_CHECK(t.defined(), Internal, fmt::format("{}: its kernel left an undefined tensor in an output", op));
  TENON_CHECK(t.storage() == storage, Internal,
              fmt::format("{}: its kernel put another tensor in the place of one that it was to write", op));
  TENON_CHECK(t.dtype() == given.dtype() && t.sizes() == given.sizes() &&
                  same_strides(given.sizes(), t.strides(), given.strides()),
              Internal,
              fmt::format("{}: its kernel was given {} to write, and left {}", op,
                          described(given.sizes(), given.strides(), given.dtype()),
                          described(t.sizes(), t.strides(), t.dtype())));
}

}  // namespace tenon::detail
