#include "tenon/ops/forms/rows.h"

#include <fmt/core.h>

#include <cstring>
#include <memory>

#include "tenon/expr/instantiate.h"
#include "tenon/expr/spec.h"
#include "tenon/ops/copy/elements.h"
#include "tenon/ops/copy/memory_format.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/reduction/reduced_dims.h"

namespace tenon {

/// The typed expression for calls of one kind: of a dtype, with some of the optional arguments.
struct detail::RowsInstance {
  uint64_t binding;
  expr::ExpressionPtr expression;
  mutable std::atomic<void*> made{nullptr};  ///< What the host compiled it to.
  const RowsInstance* next = nullptr;
};

namespace ops {
namespace {

using Over = RowsInfo::Over;
using Rank = expr::Rank;

/// What follows from a call's arguments.
struct Analysis {
  Dims sizes;
  Dims over;       // 1 for the dimensions of a row
  DType operands;  // of all tensors but places and truth values
  DType computed;
  expr::Type type;
};

Rank rank_of(const RowsInfo& info, size_t i) { return info.written->inputs()[i].rank; }
bool is_half(DType d) { return d == DType::Float16 || d == DType::BFloat16; }
DType slot_dtype(const RowsInfo& info, size_t i) { return info.written->inputs()[i].dtype; }

Dims over_of(const RowsInfo& info, const RowsArguments& a, IntArrayRef sizes) {
  const auto ndim = static_cast<int64_t>(sizes.size());
  switch (info.over) {
    case Over::Dims:
      return reduction_mask(a.dims, ndim, kThisCall);
    case Over::Last:
    case Over::Leading: {
      const IntArrayRef last = *a.dims;
      const bool fits = !last.empty() && last.size() <= sizes.size() &&
                        IntArrayRef(sizes.subspan(sizes.size() - last.size())) == last;
      TENON_CHECK(fits, Shape,
                  fmt::format(": expected `{}` to end in the dimensions {}, got {}", info.tensor_names[0],
                              to_string(last), to_string(sizes)));
      const bool leading = info.over == Over::Leading;
      Dims mask(sizes.size(), leading ? 1 : 0);
      for (size_t d = sizes.size() - last.size(); d < sizes.size(); ++d) mask[d] = leading ? 0 : 1;
      return mask;
    }
    case Over::Channels: {
      TENON_CHECK(ndim >= 2, Shape,
                  fmt::format(": expected `{}` to have a batch and a channel dimension, got {}",
                              info.tensor_names[0], to_string(sizes)));
      Dims mask(sizes.size(), 1);
      mask[1] = 0;
      return mask;
    }
    default:
      return Dims(sizes.size(), 1);
  }
}

/// Whether `sizes` can stand for values of rows: with the row's dimensions of size 1, or without them.
bool is_kept(IntArrayRef sizes, IntArrayRef loop, const Dims& over, bool with) {
  size_t next = 0;
  for (size_t d = 0; d < loop.size(); ++d) {
    if (over[d] && !with) continue;
    if (next == sizes.size()) return false;
    const int64_t size = sizes[next++];
    if (size != (over[d] ? 1 : loop[d])) return false;
  }
  return next == sizes.size();
}

bool broadcasts(IntArrayRef sizes, IntArrayRef loop) {
  if (sizes.size() > loop.size()) return false;
  const size_t lead = loop.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1 && sizes[d] != loop[lead + d]) return false;
  }
  return true;
}

void check_operand(const RowsInfo& info, size_t i, HeaderRef t, const Analysis& a) {
  const bool of_row = !varies_along(rank_of(info, i));
  const IntArrayRef sizes = t.sizes();
  if (of_row) {
    const bool fits = is_kept(sizes, a.sizes, a.over, true) || is_kept(sizes, a.sizes, a.over, false);
    TENON_CHECK(fits, Shape,
                fmt::format(": expected `{}` of shape {} for `{}` of shape {}, got {}", info.tensor_names[i],
                            to_string(reduced_sizes(a.sizes, a.over, info.keepdim)), info.tensor_names[0],
                            to_string(a.sizes), to_string(sizes)));
  } else {
    TENON_CHECK(broadcasts(sizes, a.sizes), Shape,
                fmt::format(": `{}` of shape {} does not fit `{}` of shape {}", info.tensor_names[i],
                            to_string(sizes), info.tensor_names[0], to_string(a.sizes)));
  }
  if (slot_dtype(info, i) == DType::Int64) {
    TENON_CHECK(
        t.dtype() == DType::Int64 || t.dtype() == DType::Int32, Type,
        fmt::format(": expected `{}` of int64 or int32, got {}", info.tensor_names[i], name(t.dtype())));
  } else if (slot_dtype(info, i) != DType::Bool) {
    const bool wide = info.mixed && is_half(a.operands) && t.dtype() == DType::Float32;
    TENON_CHECK(t.dtype() == a.operands || wide, Type,
                fmt::format(": expected `{}` of {} as `{}`{}, got {}", info.tensor_names[i], name(a.operands),
                            info.tensor_names[0], info.mixed && is_half(a.operands) ? ", or of float32" : "",
                            name(t.dtype())));
  }
}

Analysis analyse(const RowsInfo& info, const RowsArguments& a) {
  Analysis made;
  const HeaderRef first = a.tensors[0];
  made.sizes = first.sizes().to_dims();
  made.operands = made.computed = first.dtype();
  check_arithmetic(made.operands, kThisCall);
  TENON_CHECK(
      !is_complex(made.operands) && !((info.refused_dtypes >> static_cast<uint8_t>(made.operands)) & 1u),
      NotImplemented,
      fmt::format(": not implemented for {}{}{}", name(made.operands), *info.refused_reason ? "; " : "",
                  info.refused_reason));
  if (a.dtype) {
    check_arithmetic(*a.dtype, kThisCall);
    TENON_CHECK(!is_complex(*a.dtype), NotImplemented,
                fmt::format(": a result of {} is not implemented; expected a real dtype", name(*a.dtype)));
  }
  if (info.to_float && is_integral(made.computed, true)) made.computed = default_dtype();
  made.type = *expr::compute_type(made.computed);
  made.over = over_of(info, a, made.sizes);
  for (size_t i = 1; i < a.tensors.size(); ++i) {
    if (a.tensors[i].defined()) check_operand(info, i, a.tensors[i], made);
  }
  if (info.needs_elements && reduced_extent(made.sizes, made.over) == 0) {
    throw_error(ErrorKind::Index, fmt::format(": a row of `{}` of shape {} has no elements",
                                              info.tensor_names[0], to_string(made.sizes)));
  }
  return made;
}

/// Bit i: tensor i is float32 beside a first one of half precision.
uint64_t wide_bits(const RowsArguments& a) {
  uint64_t bits = 0;
  for (size_t i = 1; i < a.tensors.size() && is_half(a.tensors[0].dtype()); ++i)
    bits |= a.tensors[i].defined() && a.tensors[i].dtype() == DType::Float32 ? uint64_t{1} << i : 0;
  return bits;
}

/// Results of places and of truth have their own dtypes; those of rows are as wide as what they are given.
DType result_dtype(const RowsInfo& info, const RowsArguments& a, const Analysis& made, size_t i) {
  const expr::Type t = (*info.written)[info.written->outputs()[i].node].type;
  if (t == expr::Type::Mask) return DType::Bool;
  if (t == expr::Type::I64) return DType::Int64;
  if (!varies_along(info.written->outputs()[i].rank) && wide_bits(a) != 0) return DType::Float32;
  return a.dtype.value_or(made.computed);
}

uint64_t absent_bits(const RowsArguments& a) {
  uint64_t bits = 0;
  for (size_t i = 0; i < a.tensors.size(); ++i) bits |= a.tensors[i].defined() ? 0 : uint64_t{1} << i;
  for (size_t i = 0; i < a.numbers.size(); ++i)
    bits |= a.numbers[i] ? 0 : uint64_t{1} << (RowsInfo::kMaxTensors + i);
  return bits;
}

std::unique_ptr<detail::RowsInstance> make_instance(const RowsInfo& info, const RowsArguments& a,
                                                    const Analysis& made, uint64_t binding) {
  const bool half = is_half(made.computed);
  DType inputs[RowsInfo::kMaxTensors], results[RowsInfo::kMaxTensors];
  for (size_t i = 0; i < a.tensors.size(); ++i)
    inputs[i] = a.tensors[i].defined() ? a.tensors[i].dtype() : made.operands;
  for (size_t i = 0; i < info.written->num_outputs; ++i) results[i] = result_dtype(info, a, made, i);
  const uint64_t absent = absent_bits(a);
  const expr::CallTypes types{.compute = made.type,
                              .wide = half ? expr::Type::F32 : expr::Type::Open,
                              .inputs = {inputs, a.tensors.size()},
                              .results = {results, info.written->num_outputs},
                              .absent_inputs = absent & ((uint64_t{1} << RowsInfo::kMaxTensors) - 1),
                              .absent_numbers = absent >> RowsInfo::kMaxTensors,
                              .dense = true};
  auto instance = std::make_unique<detail::RowsInstance>();
  instance->binding = binding;
  instance->expression = expr::instantiate(*info.written, types);
  return instance;
}

const detail::RowsInstance& instance_of(const RowsInfo& info, const RowsArguments& a, const Analysis& made) {
  const uint64_t binding = static_cast<uint64_t>(made.operands) | static_cast<uint64_t>(made.computed) << 8 |
                           static_cast<uint64_t>(a.dtype.value_or(made.computed)) << 16 |
                           absent_bits(a) << 24 | wide_bits(a) << 44;
  const detail::RowsInstance* first = info.instances.load(std::memory_order_acquire);
  for (const detail::RowsInstance* i = first; i; i = i->next) {
    if (i->binding == binding) return *i;
  }
  // Two threads may both add it; either one does.
  detail::RowsInstance* fresh = make_instance(info, a, made, binding).release();
  fresh->next = first;
  while (!info.instances.compare_exchange_weak(fresh->next, fresh, std::memory_order_acq_rel)) {
  }
  return *fresh;
}

uint64_t number_bits(const RowsInfo& info, const Scalar& s, const expr::Slot& slot) {
  uint64_t bits = 0;
  const auto put = [&](auto value) { std::memcpy(&bits, &value, sizeof value); };
  const char* name_of = info.scalar_names[slot.operand];
  TENON_CHECK(!s.is_complex(), Type,
              fmt::format(": `{}` is a complex number, a real one was expected", name_of));
  switch (expr::carrier(slot.dtype)) {
    case expr::Type::F32:
      // Integers round once: to float, not to double and then to float.
      put(s.is_integral() ? static_cast<float>(s.to_int()) : static_cast<float>(s.to_double()));
      break;
    case expr::Type::F64:
      put(s.to_double());
      break;
    default:
      TENON_CHECK(s.is_integral(), Type,
                  fmt::format(": `{}` is a float number, an integer was expected", name_of));
      if (slot.dtype == DType::Int32)
        put(static_cast<int32_t>(s.to_int()));
      else
        put(s.to_int());
  }
  return bits;
}

/// Strides in bytes over the loop's dimensions: zero where the tensor is broadcast.
RowsOperand operand_of(const Tensor& t, const Analysis& a, bool of_row) {
  RowsOperand o{static_cast<char*>(t.data_ptr()), t.dtype(), Dims(a.sizes.size(), 0)};
  const auto item = static_cast<int64_t>(t.itemsize());
  const IntArrayRef sizes = t.sizes(), strides = t.strides();
  if (of_row && !is_kept(sizes, a.sizes, a.over, true)) {
    size_t next = 0;
    for (size_t d = 0; d < a.sizes.size(); ++d) {
      if (!a.over[d]) o.strides[d] = strides[next++] * item;
    }
    return o;
  }
  const size_t lead = a.sizes.size() - sizes.size();
  for (size_t d = 0; d < sizes.size(); ++d) {
    const bool moves = sizes[d] != 1 && !(of_row && a.over[lead + d]);
    o.strides[lead + d] = moves ? strides[d] * item : 0;
  }
  return o;
}

}  // namespace

void rows_shape(const RowsInfo& info, const RowsArguments& arguments, OutputSpecs& out) {
  const Analysis made = analyse(info, arguments);
  const bool keepdim = info.keepdim || arguments.keepdim;
  const HeaderRef first = arguments.tensors[0];
  const bool channels_last = shape::lies_channels_last(first.sizes(), first.strides());
  for (size_t i = 0; i < info.written->num_outputs; ++i) {
    const DType dtype = result_dtype(info, arguments, made, i);
    if (varies_along(info.written->outputs()[i].rank) && channels_last)
      out.set_strided(i, made.sizes, shape::channels_last_strides(made.sizes), dtype);
    else if (varies_along(info.written->outputs()[i].rank))
      out.set(i, made.sizes, dtype);
    else
      out.set(i, reduced_sizes(made.sizes, made.over, keepdim), dtype);
  }
}

void rows_run(const RowsInfo& info, const RowsArguments& arguments, std::span<const Tensor* const> tensors,
              std::span<Tensor* const> results) {
  const Analysis made = analyse(info, arguments);
  const detail::RowsInstance& instance = instance_of(info, arguments, made);
  const expr::Expression& e = *instance.expression;
  RowsOperand inputs[RowsInfo::kMaxTensors], outputs[RowsInfo::kMaxTensors];
  uint64_t numbers[expr::kMaxSlots];
  for (size_t i = 0; i < e.num_inputs; ++i) {
    const size_t t = e.inputs()[i].operand;
    inputs[i] = operand_of(*tensors[t], made, !varies_along(rank_of(info, t)));
  }
  for (size_t i = 0; i < e.num_outputs; ++i)
    outputs[i] = operand_of(*results[i], made, !varies_along(info.written->outputs()[i].rank));
  for (size_t i = 0; i < e.num_numbers; ++i)
    numbers[i] = number_bits(info, *arguments.numbers[e.numbers()[i].operand], e.numbers()[i]);
  const RowsLaunch launch{
      info.name, e, instance.made, made.sizes, made.over, {inputs, e.num_inputs}, {outputs, e.num_outputs},
      numbers};
  rows_stub.call<void, const RowsLaunch&>(results[0]->device(), launch);
}

}  // namespace ops
}  // namespace tenon
