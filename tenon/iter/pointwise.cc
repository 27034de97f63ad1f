#include "tenon/iter/pointwise.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tenon/core/kernel_report.h"
#include "tenon/core/parallel.h"
#include "tenon/iter/host.h"
#include "tenon/iter/pointwise_call.h"
#include "tenon/iter/pointwise_state.h"
#include "tenon/iter/tensor_iterator.h"

namespace tenon {
namespace {

using detail::ScalarBlock;
using expr::Type;

// The compute type whose elements a dtype's are; Mask for dtypes that convert.
constexpr auto kDirectType = [] {
  std::array<Type, 256> types{};
  for (const Type t : expr::kComputeTypes) types[static_cast<size_t>(dtype(t))] = t;
  return types;
}();

bool plain(const TensorImpl& t) noexcept {
  return t.is_contiguous() && t.device().is_cpu() && t.layout() == Layout::Strided;
}

bool same_sizes(const TensorImpl& a, const TensorImpl& b) noexcept {
  return a.numel() == b.numel() && a.ndim() == b.ndim() &&
         std::memcmp(a.sizes().data(), b.sizes().data(), sizeof(int64_t) * static_cast<size_t>(a.ndim())) ==
             0;
}

// The commonest call: dense host operands of one shape and of one dtype that kernels compute in. Says whether
// it is that, having looked at nothing but the operands' headers. Numbers alone, which have the default
// dtype's width, are no such call.
class PlainCall {
 public:
  PlainCall(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
            std::span<const Scalar* const> scalars)
      : info_(info), computed_(detail::info_for(info, scalars)), tensors_(tensors) {
    if (!info.direct.load(std::memory_order_relaxed) || tensors.empty()) return;
    const TensorImpl* first = tensors[0]->impl();
    if (!first) return;
    type_ = kDirectType[static_cast<size_t>(first->dtype())];
    if (type_ == Type::Mask || info.refuses(first->dtype()) || info.refuses_common(first->dtype()) ||
        !plain(*first) || first->is_wrapped_number())
      return;
    const bool floating = expr::is_floating(type_);
    if ((!floating && info.compute == ComputeRule::Float) || info.checks_value(floating)) return;
    for (size_t i = 1; i < tensors.size(); ++i) {
      const TensorImpl* other = tensors[i]->impl();
      if (!other || other->dtype() != first->dtype() || !plain(*other) || !same_sizes(*first, *other)) return;
    }
    for (size_t i = 0; i < scalars.size(); ++i) {
      if (!scalars_.put_exact(i, *scalars[i], type_)) return;
    }
    first_ = first;
  }

  explicit operator bool() const noexcept { return first_ != nullptr; }
  const TensorImpl& first() const noexcept { return *first_; }
  static constexpr bool repeats(size_t) noexcept { return false; }

  void run(void* out) const {
    const HostKernel& kernel = detail::kernel_of(computed_, type_);
    if (kernel_reporting()) [[unlikely]]
      detail::report_host_kernel(info_.name, kernel);
    void* ptrs[1 + PointwiseInfo::kMaxTensors];
    ptrs[0] = out;
    for (size_t i = 0; i < tensors_.size(); ++i) ptrs[i + 1] = tensors_[i]->data_ptr();
    const int64_t n = first_->numel();
    if (n <= kGrainSize) return kernel(ptrs, static_cast<size_t>(n), scalars_.data());
    split(kernel, ptrs, n);
  }

 private:
  void split(const HostKernel& kernel, void* const* ptrs, int64_t n) const {
    const auto item = static_cast<int64_t>(expr::item_size(type_));
    const size_t count = 1 + tensors_.size();
    const bool streams = count * static_cast<size_t>(n * item) > kHost.streams_from() &&
                         std::find(ptrs + 1, ptrs + count, ptrs[0]) == ptrs + count;
    parallel_for(0, n, kGrainSize, [&](int64_t begin, int64_t end) {
      void* at[1 + PointwiseInfo::kMaxTensors];
      for (size_t i = 0; i < count; ++i) at[i] = static_cast<char*>(ptrs[i]) + begin * item;
      const auto length = static_cast<size_t>(end - begin);
      if (streams)
        kHost.run_streaming(kernel, at, count, static_cast<size_t>(item), length, scalars_.data());
      else
        kernel(at, length, scalars_.data());
    });
  }

  const PointwiseInfo& info_;
  const PointwiseInfo& computed_;  // whose kernel runs
  std::span<const Tensor* const> tensors_;
  const TensorImpl* first_ = nullptr;
  Type type_ = Type::Mask;
  ScalarBlock scalars_;
};

// A call that is nearly as common: the same, but that operands lack leading dimensions of one element, or are
// one element. Their elements still pair off without a walk over dimensions. Only for what one thread does.
class BroadcastCall {
 public:
  BroadcastCall(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                std::span<const Scalar* const> scalars)
      : info_(info), computed_(detail::info_for(info, scalars)), tensors_(tensors) {
    if (!info.direct.load(std::memory_order_relaxed) || tensors.size() < 2) return;
    const TensorImpl* lead = nullptr;
    for (const Tensor* t : tensors) {
      const TensorImpl* impl = t->impl();
      if (!impl || !plain(*impl) || (lead && impl->dtype() != lead->dtype())) return;
      const bool leads = !lead || impl->numel() > lead->numel() ||
                         (impl->numel() == lead->numel() && impl->ndim() > lead->ndim());
      if (leads) lead = impl;
    }
    type_ = kDirectType[static_cast<size_t>(lead->dtype())];
    if (type_ == Type::Mask || info.refuses(lead->dtype()) || info.refuses_common(lead->dtype()) ||
        lead->numel() > kGrainSize || lead->is_wrapped_number())
      return;
    const bool floating = expr::is_floating(type_);
    if ((!floating && info.compute == ComputeRule::Float) || info.checks_value(floating)) return;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const TensorImpl& t = *tensors[i]->impl();
      if (t.numel() == 1 && lead->numel() != 1 && t.ndim() <= lead->ndim())
        repeated_ |= 2u << i;
      else if (!pairs_off(t, *lead))
        return;
    }
    for (size_t i = 0; i < scalars.size(); ++i) {
      if (!scalars_.put_exact(i, *scalars[i], type_)) return;
    }
    kernel_ = &detail::kernel_of(computed_, type_);
    if (repeated_ != 0 && !kernel_->compiled) return;
    lead_ = lead;
  }

  explicit operator bool() const noexcept { return lead_ != nullptr; }
  const TensorImpl& first() const noexcept { return *lead_; }
  bool repeats(size_t i) const noexcept { return (repeated_ >> (i + 1)) & 1u; }

  void run(void* out) const {
    if (kernel_reporting()) [[unlikely]]
      detail::report_host_kernel(info_.name, *kernel_);
    alignas(64) char elements[PointwiseInfo::kMaxTensors][HostKernel::kRepeatedBytes];
    const bool narrow = expr::item_size(type_) == 4;
    void* ptrs[1 + PointwiseInfo::kMaxTensors];
    ptrs[0] = out;
    for (size_t i = 0; i < tensors_.size(); ++i) {
      void* data = tensors_[i]->data_ptr();
      ptrs[i + 1] = data;
      if (!repeats(i)) continue;
      ptrs[i + 1] = elements[i];
      narrow ? detail::fill_repeated<uint32_t>(elements[i], data)
             : detail::fill_repeated<uint64_t>(elements[i], data);
    }
    (*kernel_)(ptrs, static_cast<size_t>(lead_->numel()), scalars_.data(), repeated_);
  }

 private:
  // The sizes are the same but for leading ones, and strides are those of a new tensor: where those of a
  // dimension of one element are others, they decide about the result's, as in the general path.
  static bool pairs_off(const TensorImpl& t, const TensorImpl& lead) noexcept {
    if (t.numel() != lead.numel() || t.ndim() > lead.ndim()) return false;
    const auto own = static_cast<size_t>(t.ndim());
    const int64_t *sizes = t.sizes().data(), *strides = t.strides().data();
    const int64_t* const other = lead.sizes().last(own).data();
    int64_t next = 1;
    for (size_t d = own; d-- > 0; next *= sizes[d]) {
      if (sizes[d] != other[d] || strides[d] != next) return false;
    }
    return true;
  }

  const PointwiseInfo& info_;
  const PointwiseInfo& computed_;
  std::span<const Tensor* const> tensors_;
  const TensorImpl* lead_ = nullptr;
  const HostKernel* kernel_ = nullptr;
  uint32_t repeated_ = 0;  // as HostKernel takes it
  Type type_ = Type::Mask;
  ScalarBlock scalars_;
};

// Whether `out` may be written by a plain call: where it shares memory with an operand, it is that very
// operand.
template <class Call>
bool plain_output(const Call& call, std::span<const Tensor* const> tensors, const TensorImpl& out) {
  if (out.dtype() != call.first().dtype() || !plain(out) || !same_sizes(out, call.first())) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i]->storage() != out.storage()) continue;
    if (call.repeats(i) || tensors[i]->impl()->address() != out.address()) return false;
  }
  return true;
}

// The result of a plain call, with the layout of its operands.
template <class Call>
Tensor plain_result(const Call& call) {
  const TensorImpl& first = call.first();
  Storage storage = Storage::allocate(static_cast<size_t>(first.numel()) * item_size(first.dtype()));
  void* out = reinterpret_cast<void*>(storage.address());
  call.run(out);
  return Tensor(TensorImpl::make(std::move(storage), first.dtype(), first.sizes()));
}

}  // namespace

Tensor pointwise(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                 std::span<const Scalar* const> scalars) {
  if (const PlainCall call(info, tensors, scalars); call) [[likely]]
    return plain_result(call);
  if (const BroadcastCall call(info, tensors, scalars); call) return plain_result(call);
  if (!info.without.empty()) [[unlikely]] {
    const detail::PresentOperands present(info, tensors, scalars);
    if (&present.info() != &info) return pointwise(present.info(), present.tensors(), present.scalars());
  }
  const Tensor* const out = nullptr;
  Tensor result;
  detail::general_pointwise(info, tensors, scalars, {&out, 1}, {}, {&result, 1});
  return result;
}

void pointwise_out(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                   std::span<const Scalar* const> scalars, Tensor& out, bool in_place) {
  TENON_CHECK(out.defined(), Value, fmt::format("{}: `out` is undefined", info.name));
  if (const PlainCall call(info, tensors, scalars); call) [[likely]] {
    if (plain_output(call, tensors, *out.impl())) return call.run(out.data_ptr());
  } else if (const BroadcastCall near(info, tensors, scalars); near) {
    if (plain_output(near, tensors, *out.impl())) return near.run(out.data_ptr());
  }
  if (!info.without.empty()) [[unlikely]] {
    const detail::PresentOperands present(info, tensors, scalars);
    if (&present.info() != &info)
      return pointwise_out(present.info(), present.tensors(), present.scalars(), out, in_place);
  }
  const Tensor* const outs[] = {&out};
  detail::general_pointwise(info, tensors, scalars, outs, {.in_place = in_place, .resizes = !in_place}, {});
}

void pointwise_outputs(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                       std::span<const Scalar* const> scalars, std::span<Tensor> results,
                       std::span<const Tensor* const> outs) {
  const detail::PresentOperands present(info, tensors, scalars);
  const PointwiseInfo& called = present.info();
  const Tensor* places[PointwiseInfo::kMaxOutputs];
  bool writes = false;
  size_t next = 0;
  for (size_t i = 0; i < called.num_outputs(); ++i) {
    const int8_t operand = called.outputs.empty() ? PointwiseOutput::kNew : called.outputs[i].operand;
    if (operand >= 0) {
      places[i] = present.tensors()[static_cast<size_t>(operand)];
      writes = true;
      continue;
    }
    places[i] = next < outs.size() ? outs[next] : nullptr;
    TENON_CHECK(!places[i] || places[i]->defined(), Value,
                fmt::format("{}: `{}` is undefined", info.name, called.outputs[i].name));
    ++next;
  }
  detail::general_pointwise(called, present.tensors(), present.scalars(), {places, called.num_outputs()},
                            {.resizes = !writes}, results);
}

const PointwiseInfo& info_without(const PointwiseInfo& info, uint32_t absent_tensors,
                                  uint32_t absent_scalars) {
  if ((absent_tensors | absent_scalars) == 0) return info;
  size_t index = 0, bit = 1;
  const auto add = [&](uint32_t optional, uint32_t absent) {
    for (; optional; optional &= optional - 1, bit <<= 1) {
      if (absent & optional & -optional) index |= bit;
    }
  };
  add(info.optional_tensors, absent_tensors);
  add(info.optional_scalars, absent_scalars);
  // What may not be absent is named where the operands are checked.
  if (index == 0) return info;
  TENON_CHECK(info.without[index], Value, fmt::format("{}: {}", info.name, info.refused_absence));
  return *info.without[index];
}

detail::PresentOperands::PresentOperands(const PointwiseInfo& info, std::span<const Tensor* const> tensors,
                                         std::span<const Scalar* const> scalars) {
  uint32_t absent_tensors = 0, absent_scalars = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool absent = !tensors[i]->defined() && ((info.optional_tensors >> i) & 1u);
    absent_tensors |= absent ? 1u << i : 0u;
    if (!absent) tensors_[num_tensors_++] = tensors[i];
  }
  for (size_t i = 0; i < scalars.size(); ++i) {
    absent_scalars |= scalars[i] ? 0u : 1u << i;
    if (scalars[i]) scalars_[num_scalars_++] = scalars[i];
  }
  info_ = &info_without(info, absent_tensors, absent_scalars);
}

}  // namespace tenon
