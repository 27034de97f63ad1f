#include "tenon/iter/lower.h"

#include <string>

#include "tenon/dispatch/operator.h"
#include "tenon/expr/builder.h"
#include "tenon/expr/instantiate.h"
#include "tenon/expr/scalar.h"
#include "tenon/expr/spec.h"
#include "tenon/expr/unsigned.h"
#include "tenon/iter/call_types.h"
#include "tenon/iter/pointwise_device.h"
#include "tenon/iter/pointwise_stub.h"

namespace tenon {

using expr::Op;
using expr::Type;

namespace {

[[noreturn]] void refuse_number(const LoweredNumber& n, const Scalar& s, const char* op) {
  TENON_CHECK(!s.is_integral(), Value,
              fmt::format("{}: `{}` is {}, which does not fit {}", op, n.name,
                          s.is_beyond_int64() ? std::to_string(s.to_uint()) : std::to_string(s.to_int()),
                          name(n.wanted)));
  throw_error(
      ErrorKind::Type,
      fmt::format("{}: `{}` is a {} number, but {} {}", op, n.name, s.is_complex() ? "complex" : "float",
                  n.as_operands ? "the operands are" : "the expression takes it as", name(n.wanted)));
}

// A number of a call in uint64, or one that int64 does not hold.
void put_unsigned(uint64_t& slot, const LoweredNumber& n, const Scalar& s, const char* op) {
  const bool whole = s.is_integral() && s.to_int() >= 0;
  if (n.wanted == DType::UInt64 && whole)
    slot = s.to_uint();
  else if (!expr::is_floating(n.type) || !whole || !detail::put_real(slot, Scalar(s.to_double()), n.type))
    refuse_number(n, s, op);
}

// What fill_ stores, as the carrier of the dtype; truth as an integer.
uint64_t filled(const LoweredNumber& n, const Scalar& s, const char* op) {
  check_fits(s, n.wanted, op);
  uint64_t slot = 0;
  if (n.wanted == DType::Bool)
    detail::put_real(slot, int64_t{s.to_bool()}, n.type);
  else if (expr::is_floating(n.type))
    // Not directly from an integer: fill_ goes by way of float64.
    detail::put_real(slot, n.part == expr::Part::Im ? s.to_complex().imag() : s.to_double(), n.type);
  else
    slot = expr::convert_scalar(s.to_uint(), Type::I64, n.type);
  return slot;
}

}  // namespace

void put_number(uint64_t& slot, const LoweredNumber& n, const Scalar& given, const char* op) {
  const bool cut = n.truncates && !expr::is_floating(n.type) && given.is_floating_point();
  if (cut) check_fits(given, DType::Int64, op);
  const Scalar s = cut ? Scalar(given.to_int()) : given;
  if (n.fills) {
    slot = filled(n, s, op);
    return;
  }
  TENON_CHECK(!n.nonzero || s.to_complex() != 0.0, Value, fmt::format("{}: `{}` must not be 0", op, n.name));
  if (n.of_complex) {
    detail::put_real(slot, n.part == expr::Part::Im ? Scalar(s.to_complex().imag()) : s, n.type);
    return;
  }
  TENON_CHECK(
      !n.nonnegative || expr::is_floating(n.type) || !s.is_integral() || s.to_int() >= 0, Value,
      fmt::format("{}: integers to negative integer powers are not allowed, got `{}` of {}; give a float", op,
                  n.name, s.to_int()));
  TENON_CHECK(!n.nonnegative_float || s.is_complex() || s.to_double() >= 0, Value,
              fmt::format("{}: `{}` must not be negative, got {}", op, n.name, s.to_double()));
  if (n.wanted == DType::UInt64 || s.is_beyond_int64()) [[unlikely]]
    return put_unsigned(slot, n, s, op);
  if (s.is_complex() || !detail::put_real(slot, s, n.type)) refuse_number(n, s, op);
}

namespace {

// The operands of a call that are there, and their places among all.
struct Present {
  const PointwiseInfo* info = nullptr;
  std::vector<HeaderRef> tensors;
  std::vector<Scalar::Kind> numbers;
  std::vector<uint16_t> tensor_places, number_places;

  Present(const PointwiseInfo& all, std::span<const HeaderRef> given, NumberKinds kinds) {
    uint32_t absent_tensors = 0, absent_numbers = 0;
    for (size_t i = 0; i < given.size(); ++i) {
      if (!given[i].defined() && ((all.optional_tensors >> i) & 1u)) {
        absent_tensors |= 1u << i;
        continue;
      }
      tensors.push_back(given[i]);
      tensor_places.push_back(static_cast<uint16_t>(i));
    }
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (!kinds[i]) {
        absent_numbers |= 1u << i;
        continue;
      }
      numbers.push_back(*kinds[i]);
      number_places.push_back(static_cast<uint16_t>(i));
    }
    info = &info_without(all, absent_tensors, absent_numbers);
  }
};

// Whether the host computes the call by its expression, and nothing but dtypes decides what that is.
bool is_expressions(const PointwiseInfo& info, const detail::BorrowedHeaders& tensors,
                    const detail::Types& types) {
  if (info.stub && info.stub->has_own(kCpuBackend)) return false;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorHeader& t = tensors[i];
    if (!t.device().is_cpu() || t.layout() != Layout::Strided) return false;
    // Its value must fit, as that of a number with the tensors.
    const bool may_not_fit = types.type == Type::I32 || types.computed == DType::UInt64;
    if (t.is_wrapped_number() && t.dtype() == DType::Int64 && may_not_fit) return false;
  }
  return true;
}

}  // namespace

std::optional<Lowered> lower_pointwise(const PointwiseInfo& all, std::span<const HeaderRef> given,
                                       NumberKinds kinds, std::span<const std::optional<DType>> outs,
                                       bool in_place) {
  const Present present(all, given, kinds);
  const PointwiseInfo& info = *present.info;
  const std::string op = std::string(info.name) + (in_place ? "_" : "");
  const detail::BorrowedHeaders tensors(present.tensors);
  detail::check_operands(info, op.c_str(), tensors, present.numbers.size());
  const detail::Types types = detail::decide_types(info, op.c_str(), tensors, present.numbers);
  if (types.common == DType::Bool && info.bool_form)
    return lower_pointwise(*info.bool_form, present.tensors, kinds, outs, in_place);
  detail::check_in_place(info, op.c_str(), types, in_place);
  if (!is_expressions(info, tensors, types)) return std::nullopt;

  detail::Binding binding = detail::binding_of(types, tensors, present.numbers);
  // A complex number among real operands is refused with its value.
  if (!types.complex()) binding.complex_numbers = 0;
  Lowered made;
  made.results.resize(info.num_outputs());
  expr::CallTypes call = detail::call_types_of(info, binding, made.results);
  std::vector<DType> stored = made.results;
  for (size_t i = 0; i < stored.size(); ++i) {
    const int8_t operand = info.outputs.empty() ? PointwiseOutput::kNew : info.outputs[i].operand;
    if (operand >= 0)
      stored[i] = tensors[static_cast<size_t>(operand)].dtype();
    else if (i < outs.size() && outs[i])
      stored[i] = *outs[i];
    else
      continue;
    const char* name_of = !info.outputs.empty() ? info.outputs[i].name
                          : in_place            ? info.tensor_names[0]
                                                : "out";
    detail::check_out(info, op.c_str(), types, in_place, made.results[i], name_of, stored[i]);
  }
  call.outs = stored;
  expr::ExpressionParts parts = expr::parts_of(*detail::Written(info).instantiate(call));
  for (expr::Slot& s : parts.numbers) {
    made.numbers.push_back(detail::number_of(info, types, s));
    s.operand = present.number_places[s.operand];
    made.numbers.back().scalar = static_cast<uint8_t>(s.operand);
  }
  for (expr::Slot& s : parts.inputs) s.operand = present.tensor_places[s.operand];
  made.expression = expr::make_expression(parts);
  return made;
}

namespace {

// Stores one value: each part of it, where it is complex.
class OneValue {
 public:
  explicit OneValue(DType to) : to_(to) {}

  expr::Builder g;
  expr::ExpressionParts parts;

  expr::NodeId load(DType from, expr::Part part) {
    parts.inputs.push_back({.dtype = from, .part = part});
    return g.add({.op = Op::Load,
                  .type = expr::carrier(from),
                  .flags = static_cast<uint8_t>(expr::Rank::Element),
                  .bits = parts.inputs.size() - 1});
  }
  expr::NodeId number(Type type, expr::Part part) {
    parts.numbers.push_back({.dtype = dtype(type), .rank = expr::Rank::Number, .part = part});
    return g.add({.op = Op::Number, .type = type, .bits = parts.numbers.size() - 1});
  }
  expr::NodeId literal_zero(Type type) { return g.add({.op = Op::Literal, .type = type}); }
  /// `from` may be U64, whose values are in nodes of I64.
  expr::NodeId cast(expr::NodeId value, Type from, Type type) {
    if (from == Type::U64) return expr::convert_from_unsigned(g, value, type);
    if (type == Type::U64) return expr::convert_to_unsigned(g, value);
    return cast(value, type);
  }
  expr::NodeId cast(expr::NodeId value, Type type) {
    if (g[value].type == type) return value;
    if (type == Type::Mask)
      return g.add({.op = Op::Ne,
                    .type = Type::Mask,
                    .arity = 2,
                    .args = {value, literal_zero(g[value].type), expr::kNoNode}});
    return g.add({.op = Op::Cast, .type = type, .arity = 1, .args = {value, expr::kNoNode, expr::kNoNode}});
  }
  void store(expr::NodeId value, expr::Part part, Type from) {
    value = cast(value, from, expr::number_type(to_));
    if (!expr::holds(g.nodes(), parts.inputs, value, to_))
      value = g.add({.op = Op::RoundTo,
                     .type = expr::carrier(to_),
                     .arity = 1,
                     .args = {value, expr::kNoNode, expr::kNoNode},
                     .bits = static_cast<uint64_t>(to_)});
    parts.outputs.push_back({.dtype = to_, .rank = g[value].rank(), .part = part, .node = value});
  }
  Lowered take(std::vector<LoweredNumber> numbers = {}) {
    return {g.finish(std::move(parts)), {to_}, std::move(numbers)};
  }

 private:
  DType to_;
};

constexpr expr::Part kParts[] = {expr::Part::Re, expr::Part::Im};

}  // namespace

std::optional<Lowered> lower_copy(DType from, DType to) {
  if (!has_arithmetic(from) || !has_arithmetic(to)) return std::nullopt;
  OneValue v(to);
  if (!is_complex(from)) {
    const expr::NodeId value = v.load(from, expr::Part::Whole);
    if (!is_complex(to)) {
      v.store(value, expr::Part::Whole, expr::number_type(from));
    } else {
      v.store(value, expr::Part::Re, expr::number_type(from));
      v.store(v.literal_zero(expr::carrier(to)), expr::Part::Im, expr::carrier(to));
    }
    return v.take();
  }
  const expr::NodeId re = v.load(from, expr::Part::Re), im = v.load(from, expr::Part::Im);
  if (is_complex(to)) {
    v.store(re, expr::Part::Re, expr::carrier(from));
    v.store(im, expr::Part::Im, expr::carrier(from));
  } else if (to == DType::Bool) {
    v.store(v.g.add({.op = Op::Or,
                     .type = Type::Mask,
                     .arity = 2,
                     .args = {v.cast(re, Type::Mask), v.cast(im, Type::Mask), expr::kNoNode}}),
            expr::Part::Whole, Type::Mask);
  } else {
    v.store(re, expr::Part::Whole, expr::carrier(from));
  }
  return v.take();
}

std::optional<Lowered> lower_fill(DType to) {
  if (!has_arithmetic(to)) return std::nullopt;
  OneValue v(to);
  std::vector<LoweredNumber> numbers;
  const Type carrier = expr::carrier(to);
  const auto fill = [&](expr::Part part) {
    const Type type = carrier == Type::Mask ? Type::I64 : carrier;
    v.store(v.number(type, part), part, type);
    numbers.push_back({.type = type, .part = part, .fills = true, .wanted = to, .name = "value"});
  };
  if (is_complex(to))
    for (const expr::Part part : kParts) fill(part);
  else
    fill(expr::Part::Whole);
  return v.take(std::move(numbers));
}

const PointwiseInfo* pointwise_info_of(const OperatorEntry& entry, Backend backend) {
  const Kernel& kernel = detail::find_kernel(entry, DispatchKeySet(Functionality::Dense, backend));
  if (detail::probe_of(entry, kernel).serves != &detail::pointwise_serves) return nullptr;
  const auto* const info = static_cast<const PointwiseInfo*>(kernel.data);
  // What a library has filled in computes something of its own.
  return info->stub && info->stub->has_own(backend) ? nullptr : info;
}

}  // namespace tenon
