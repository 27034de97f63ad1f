#include "tenon/ops/forms/rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "tenon/dispatch/operator.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/plain_reduction.h"
#include "tenon/expr/spec.h"
#include "tenon/iter/geometry.h"
#include "tenon/ops/device_stubs.h"
#include "tenon/ops/elements/elements.h"
#include "tenon/ops/forms/memory_format.h"
#include "tenon/ops/forms/reduced_dims.h"
#include "tenon/ops/forms/structured.h"

namespace tenon {

/// The typed expression for calls of one kind: of a dtype, with some of the optional arguments.
struct detail::RowsInstance {
  uint64_t binding;
  expr::ExpressionPtr expression;
  std::optional<expr::PlainReduction> plain;
  mutable std::atomic<void*> made{nullptr};  ///< What the host compiled it to.
  const RowsInstance* next = nullptr;
};

namespace ops {
namespace {

using Over = RowsInfo::Over;
using Computes = RowsInfo::Computes;
using Rank = expr::Rank;

/// What follows from a call's arguments.
struct Analysis {
  IntArrayRef sizes;
  Dims over;       // 1 for the dimensions of a row
  DType operands;  // of all tensors but places and truth values
  DType computed;
};

Rank rank_of(const RowsInfo& info, size_t i) { return info.written->inputs()[i].rank; }
bool is_half(DType d) { return d == DType::Float16 || d == DType::BFloat16; }
DType slot_dtype(const RowsInfo& info, size_t i) { return info.written->inputs()[i].dtype; }

Dims other_over(const RowsInfo& info, const RowsArguments& a, IntArrayRef sizes) {
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

Dims over_of(const RowsInfo& info, const RowsArguments& a, IntArrayRef sizes) {
  const bool all = info.over == Over::All || (info.over == Over::Dims && (!a.dims || a.dims->empty()));
  return all ? Dims(sizes.size(), 1) : other_over(info, a, sizes);
}

/// Whether `sizes` are those of row values: with the row's dimensions of size 1, or without them.
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

/// What a call computes in: the dtype that it gives, or its operands'.
DType computed_dtype(const RowsInfo& info, const RowsArguments& a) {
  const bool sums = info.computes == Computes::Sum || info.computes == Computes::Mean;
  if (sums && a.dtype) return *a.dtype;
  const DType own = a.tensors[0].dtype();
  if (info.computes == Computes::Sum) return is_integral(own, true) ? DType::Int64 : own;
  if (info.computes == Computes::Float) return is_integral(own, true) ? default_dtype() : own;
  return own;
}

Analysis analyse(const RowsInfo& info, const RowsArguments& a) {
  const HeaderRef first = a.tensors[0];
  return {.sizes = first.sizes(),
          .over = over_of(info, a, first.sizes()),
          .operands = first.dtype(),
          .computed = computed_dtype(info, a)};
}

/// The type of `computed`. Integers of every width add up as int64.
expr::Type type_of(const RowsInfo& info, const Analysis& made) {
  const bool integral = info.computes == Computes::Sum && is_integral(made.computed, true);
  return integral ? expr::Type::I64 : *expr::compute_type(made.computed);
}

void check_dtypes(const RowsInfo& info, const RowsArguments& a) {
  const DType own = a.tensors[0].dtype();
  check_arithmetic(a.tensors[0], kThisCall);
  if (a.dtype) check_arithmetic(*a.dtype, a.tensors[0].device(), kThisCall);
  TENON_CHECK(
      (info.complex || !is_complex(own)) && !((info.refused_dtypes >> static_cast<uint8_t>(own)) & 1u),
      NotImplemented,
      fmt::format(": not implemented for {}{}{}", name(own), *info.refused_reason ? "; " : "",
                  info.refused_reason));
  TENON_CHECK(info.complex || !a.dtype || !is_complex(*a.dtype), NotImplemented,
              fmt::format(": a result of {} is not implemented; expected a real dtype", name(*a.dtype)));
  TENON_CHECK(info.computes != Computes::Mean || !is_integral(a.dtype.value_or(own), true), Type,
              fmt::format(": could not infer output dtype. `self` must be of a floating point dtype, got {}; "
                          "convert it, or give dtype",
                          name(a.dtype.value_or(own))));
}

/// Every dimension of a row must have elements.
void check_has_elements(const RowsInfo& info, const RowsArguments& a, const Analysis& made) {
  if (!info.needs_elements || reduced_extent(made.sizes, made.over) > 0) return;
  const bool all = info.over == Over::All || (info.over == Over::Dims && (!a.dims || a.dims->empty()));
  TENON_CHECK(!all, Index,
              fmt::format(": expected reduction dim to be specified for `{}` of {} (no elements)",
                          info.tensor_names[0], to_string(made.sizes)));
  for (size_t d = 0; d < made.sizes.size(); ++d) {
    TENON_CHECK(!made.over[d] || made.sizes[d] > 0, Index,
                fmt::format(": expected reduction dim {} to have non-zero size, `{}` is {}", d,
                            info.tensor_names[0], to_string(made.sizes)));
  }
}

/// `analyse` of arguments that are checked.
Analysis checked(const RowsInfo& info, const RowsArguments& a) {
  check_dtypes(info, a);
  Analysis made = analyse(info, a);
  for (size_t i = 1; i < a.tensors.size(); ++i) {
    if (a.tensors[i].defined()) check_operand(info, i, a.tensors[i], made);
  }
  check_has_elements(info, a, made);
  return made;
}

/// Bit i: tensor i is float32 and the first one has half precision.
uint64_t wide_bits(const RowsArguments& a) {
  uint64_t bits = 0;
  for (size_t i = 1; i < a.tensors.size() && is_half(a.tensors[0].dtype()); ++i)
    bits |= a.tensors[i].defined() && a.tensors[i].dtype() == DType::Float32 ? uint64_t{1} << i : 0;
  return bits;
}

/// Results of places and of truth have their own dtypes; those of rows are as wide as what they are given.
DType result_dtype(const RowsInfo& info, const RowsArguments& a, const Analysis& made, size_t i) {
  const expr::Type t = (*info.written)[info.written->outputs()[i].node].type;
  // Truth is bool; of bytes it is bytes, as PyTorch's.
  if (t == expr::Type::Mask) return made.operands == DType::UInt8 ? DType::UInt8 : DType::Bool;
  if (t == expr::Type::I64) return DType::Int64;
  if (!varies_along(info.written->outputs()[i].rank) && wide_bits(a) != 0) return DType::Float32;
  return a.dtype.value_or(made.computed);
}

/// What an operand is to the expression: real, with its real parts, where real numbers are computed.
DType operand_dtype(const Analysis& made, DType stored) {
  return is_complex(made.computed) ? stored : real_dtype(stored);
}

uint64_t absent_bits(const RowsArguments& a) {
  uint64_t bits = 0;
  for (size_t i = 0; i < a.tensors.size(); ++i) bits |= a.tensors[i].defined() ? 0 : uint64_t{1} << i;
  for (size_t i = 0; i < a.numbers.size(); ++i)
    bits |= a.numbers[i] ? 0 : uint64_t{1} << (RowsInfo::kMaxTensors + i);
  return bits;
}

/// `dense`: with slots of the compute type, else of the operands' dtypes.
expr::ExpressionPtr instantiate(const RowsInfo& info, const RowsArguments& a, const Analysis& made,
                                bool dense) {
  const bool half = is_half(made.computed);
  DType inputs[RowsInfo::kMaxTensors], results[RowsInfo::kMaxTensors];
  for (size_t i = 0; i < a.tensors.size(); ++i)
    inputs[i] = operand_dtype(made, a.tensors[i].defined() ? a.tensors[i].dtype() : made.operands);
  for (size_t i = 0; i < info.written->num_outputs; ++i) results[i] = result_dtype(info, a, made, i);
  const uint64_t absent = absent_bits(a);
  return expr::instantiate(*info.written,
                           {.compute = made.computed == DType::UInt64 ? expr::Type::U64 : type_of(info, made),
                            .wide = half ? expr::Type::F32 : expr::Type::Open,
                            .inputs = {inputs, a.tensors.size()},
                            .results = {results, info.written->num_outputs},
                            .complex_inputs = is_complex(made.computed),
                            .absent_inputs = absent & ((uint64_t{1} << RowsInfo::kMaxTensors) - 1),
                            .absent_numbers = absent >> RowsInfo::kMaxTensors,
                            .dense = dense});
}

std::unique_ptr<detail::RowsInstance> make_instance(const RowsInfo& info, const RowsArguments& a,
                                                    const Analysis& made, uint64_t binding) {
  auto instance = std::make_unique<detail::RowsInstance>();
  instance->binding = binding;
  instance->expression = instantiate(info, a, made, true);
  instance->plain = expr::plain_reduction(*instance->expression);
  return instance;
}

const detail::RowsInstance& instance_of(const RowsInfo& info, const RowsArguments& a, const Analysis& made) {
  uint64_t binding = static_cast<uint64_t>(made.operands) | static_cast<uint64_t>(made.computed) << 8 |
                     static_cast<uint64_t>(a.dtype.value_or(made.computed)) << 16;
  if (a.tensors.size() + a.numbers.size() > 1) binding |= absent_bits(a) << 24 | wide_bits(a) << 44;
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

/// A tensor as an operand. Its strides in bytes go to `strides`: zero where it is broadcast.
RowsOperand operand_of(const Tensor& t, const Analysis& a, bool of_row, expr::Part part, int64_t* strides) {
  const TensorHeader& header = *t.impl();
  const DType dtype = header.dtype();
  RowsOperand o{static_cast<char*>(t.data_ptr()), real_dtype(dtype), strides};
  if (part == expr::Part::Im) o.data += item_size(o.dtype);
  const auto item = static_cast<int64_t>(item_size(dtype));
  const int64_t *sizes = header.sizes().data(), *steps = header.strides().data();
  const size_t n = a.sizes.size(), own = header.sizes().size();
  const Dims& over = a.over;
  if (of_row && !is_kept(header.sizes(), a.sizes, over, true)) {
    for (size_t d = 0, next = 0; d < n; ++d) strides[d] = over[d] ? 0 : steps[next++] * item;
    return o;
  }
  const size_t lead = n - own;
  std::fill_n(strides, lead, 0);
  for (size_t d = 0; d < own; ++d) {
    const bool still = sizes[d] == 1 || (of_row && over[lead + d]);
    strides[lead + d] = still ? 0 : steps[d] * item;
  }
  return o;
}

}  // namespace

void rows_shape(const RowsInfo& info, const RowsArguments& arguments, OutputSpecs& out) {
  const Analysis made = checked(info, arguments);
  const bool keepdim = info.keepdim || arguments.keepdim;
  const HeaderRef first = arguments.tensors[0];
  for (size_t i = 0; i < info.written->num_outputs; ++i) {
    const DType dtype = result_dtype(info, arguments, made, i);
    if (!varies_along(info.written->outputs()[i].rank))
      out.set(i, reduced_sizes(made.sizes, made.over, keepdim), dtype);
    else if (shape::lies_channels_last(first.sizes(), first.strides()))
      out.set_strided(i, made.sizes, shape::channels_last_strides(made.sizes), dtype);
    else
      out.set(i, made.sizes, dtype);
  }
}

/// A call with what follows from it.
struct RowsCall {
  const RowsInfo& info;
  const RowsArguments& arguments;
  std::span<const Tensor* const> tensors;
  std::span<Tensor* const> results;
  const Analysis& made;
  const detail::RowsInstance& instance;
};

namespace {

void run_expression(const RowsCall& call) {
  const auto& [info, arguments, tensors, results, made, instance] = call;
  const expr::Expression& e = *instance.expression;
  RowsOperand inputs[RowsInfo::kMaxTensors], outputs[RowsInfo::kMaxTensors];
  // Not a vector that is empty at first: that would cost as much as the walk of a small operand.
  constexpr size_t kInline = 128;
  const size_t ndim = made.sizes.size(), all = (size_t{e.num_inputs} + e.num_outputs) * ndim;
  int64_t some[kInline];
  std::unique_ptr<int64_t[]> many;
  if (all > kInline) many = std::make_unique_for_overwrite<int64_t[]>(all);
  int64_t* strides = many ? many.get() : some;
  uint64_t numbers[expr::kMaxSlots];
  for (size_t i = 0; i < e.num_inputs; ++i, strides += ndim) {
    const expr::Slot& s = e.inputs()[i];
    inputs[i] = operand_of(*tensors[s.operand], made, !varies_along(s.rank), s.part, strides);
  }
  for (size_t i = 0; i < e.num_outputs; ++i, strides += ndim) {
    const expr::Slot& s = e.outputs()[i];
    const bool of_row = !varies_along(info.written->outputs()[s.operand].rank);
    outputs[i] = operand_of(*results[s.operand], made, of_row, s.part, strides);
  }
  for (size_t i = 0; i < e.num_numbers; ++i)
    numbers[i] = number_bits(info, *arguments.numbers[e.numbers()[i].operand], e.numbers()[i]);
  const RowsLaunch launch{.name = info.name,
                          .expression = e,
                          .made = instance.made,
                          .sizes = made.sizes,
                          .over = made.over,
                          .inputs = {inputs, e.num_inputs},
                          .outputs = {outputs, e.num_outputs},
                          .numbers = numbers};
  rows_stub.call<void, const RowsLaunch&>(results[0]->device(), launch);
}

const bool kReducesByRows =
    (reduce_stub.set_otherwise([](const ReduceCall& call) { run_expression(*call.rows); },
                               [](Backend b) { return rows_stub.has_own(b); }),
     true);

}  // namespace

void rows_run(const RowsInfo& info, const RowsArguments& arguments, std::span<const Tensor* const> tensors,
              std::span<Tensor* const> results) {
  const Analysis made = analyse(info, arguments);
  const detail::RowsInstance& instance = instance_of(info, arguments, made);
  const RowsCall call{info, arguments, tensors, results, made, instance};
  if (!instance.plain) return run_expression(call);
  reduce_stub(results[0]->device(),
              ReduceCall{info.name, *instance.plain, *tensors[0], made.over, results, &call});
}

std::optional<LoweredRows> lower_rows(const RowsInfo& info, const RowsArguments& arguments,
                                      NumberKinds kinds) {
  for (const HeaderRef& t : arguments.tensors) {
    if (t.defined() && (!t.device().is_cpu() || t.layout() != Layout::Strided)) return std::nullopt;
  }
  OutputSpec specs[RowsInfo::kMaxTensors];
  OutputSpecs checked_only(specs);
  rows_shape(info, arguments, checked_only);
  const Analysis made = analyse(info, arguments);
  LoweredRows lowered;
  lowered.sizes = made.sizes.to_dims();
  lowered.over = made.over;
  lowered.keepdim = info.keepdim || arguments.keepdim;
  lowered.expression = instantiate(info, arguments, made, false);
  const expr::Expression& e = *lowered.expression;
  for (const expr::Slot& s : e.inputs()) {
    // Places of int32 are read as int64; complex operands are taken by their real parts.
    if (arguments.tensors[s.operand].dtype() != s.dtype) return std::nullopt;
  }
  for (size_t i = 0; i < info.written->num_outputs; ++i) lowered.results.push_back(specs[i].dtype);
  for (const expr::Slot& s : e.numbers()) {
    const expr::Type type = expr::carrier(s.dtype);
    const Scalar::Kind kind = *kinds[s.operand];
    const bool fits = expr::is_floating(type) ? kind != Scalar::Kind::Complex
                                              : type == expr::Type::I64 && kind <= Scalar::Kind::Int;
    if (!fits) return std::nullopt;
    lowered.numbers.push_back({.scalar = static_cast<uint8_t>(s.operand),
                               .type = type,
                               .wanted = s.dtype,
                               .name = info.scalar_names[s.operand]});
  }
  return lowered;
}

const RowsInfo* rows_info_of(const OperatorEntry& entry) {
  const Kernel& kernel = detail::find_kernel(entry, DispatchKeySet(Functionality::Dense, kCpuBackend));
  if (detail::probe_of(entry, kernel).serves != &detail::structured_serves || entry.written != 0)
    return nullptr;
  return static_cast<const StructuredInfo*>(kernel.data)->rows;
}

}  // namespace ops
}  // namespace tenon
