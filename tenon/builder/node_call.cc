#include "tenon/builder/node_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tenon/core/error.h"
#include "tenon/generated/functions.h"

namespace tenon::builder {
namespace {

bool is_half(DType t) { return t == DType::Float16 || t == DType::BFloat16; }
bool is_whole(DType t) { return is_integral(t, /*include_bool=*/true); }

/// Whole numbers of so many bits are exact in a floating-point dtype.
int significant_bits(DType t) {
  return t == DType::BFloat16 ? 8 : t == DType::Float16 ? 11 : t == DType::Float32 ? 24 : 53;
}

/// Whether `wide` has every value of `narrow`, and more.
bool holds(DType wide, DType narrow) {
  const auto is_real = [](DType t) { return has_arithmetic(t) && !is_complex(t); };
  if (wide == narrow || !is_real(wide) || !is_real(narrow) || promote_types(wide, narrow) != wide)
    return false;
  if (!is_floating_point(wide) || is_floating_point(narrow)) return true;
  return dtype_info(narrow).bits - (dtype_info(narrow).is_signed ? 1 : 0) <= significant_bits(wide);
}

/// An attribute as a message writes it.
std::string shown(const Attribute& attribute) {
  const auto text = [](const auto& value) -> std::string {
    using V = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<V, std::string>)
      return fmt::format("'{}'", value);
    else if constexpr (std::is_same_v<V, bool>)
      return value ? "True" : "False";
    else if constexpr (std::is_same_v<V, Dims>)
      return to_string(value);
    else
      return fmt::to_string(value);
  };
  return std::visit(text, attribute);
}

}  // namespace

bool holds_number(DType dtype, int64_t number) noexcept {
  if (dtype == DType::Bool) return number == 0 || number == 1;
  const bool has_sign = dtype_info(dtype).is_signed;
  const int bits = dtype_info(dtype).bits - (has_sign ? 1 : 0);
  if (number < 0) return has_sign && (bits >= 63 || number >= -(int64_t{1} << bits));
  return bits >= 63 || number < int64_t{1} << bits;
}

NodeCall::NodeCall(const Node& node, GraphWriter& writer, std::vector<Input> inputs,
                   std::vector<Wanted> wanted)
    : node_(node),
      writer_(writer),
      kinds_(inputs_of(*node.kind)),
      inputs_(std::move(inputs)),
      wanted_(std::move(wanted)),
      read_(inputs_.size()) {
  outputs.resize(wanted_.size());
  choose_compute_type();
}

// The type in which a node computes

void NodeCall::choose_compute_type() {
  const Computes computes = node_.kind->computes;
  if (computes == Computes::Logic || computes == Computes::Nothing) return;
  compute_ = node_.compute_type;
  if (!compute_ && computes != Computes::Truths) compute_ = declared_compute_type();
  // Operators on half types compute in float32 and round once.
  if (compute_ == DType::Float32 && is_of_one_half_type()) compute_.reset();
  // Operators convert a whole number to the integer type of the tensors next to it.
  whole_ = compute_;
  if (!whole_ && computes != Computes::Quotients) whole_ = operand_type();
  if (whole_ && (!is_whole(*whole_) || (!compute_ && whole_ == DType::Bool))) whole_.reset();
}

// What the tensors among the operands promote to.
std::optional<DType> NodeCall::operand_type() const {
  std::optional<DType> common;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].tensor.defined() || input_kind(i).is_number || input_kind(i).is_truth) continue;
    const DType own = inputs_[i].dtype;
    if (!has_arithmetic(own)) return std::nullopt;
    common = common ? promote_types(*common, own) : own;
  }
  return common;
}

// Without a compute type: the declared type of an output that holds more than the operands' types do, so that
// nothing is rounded, or wraps, before it is converted.
std::optional<DType> NodeCall::declared_compute_type() const {
  const std::optional<DType> operands = operand_type();
  std::optional<DType> widest;
  if (!operands) return std::nullopt;
  for (const Wanted& w : wanted_) {
    if (w.is_used && w.dtype && holds(*w.dtype, widest.value_or(*operands))) widest = w.dtype;
  }
  return widest;
}

// Whether all operands and results have the same half type.
bool NodeCall::is_of_one_half_type() const {
  const std::optional<DType> common = wanted_.empty() ? std::nullopt : wanted_[0].dtype;
  if (!common || !is_half(*common)) return false;
  const auto other_result = [&](const Wanted& w) { return w.is_used && w.dtype != common; };
  const auto other_operand = [&](const Input& input) {
    return input.tensor.defined() && input.dtype != *common && input.dtype != DType::Bool;
  };
  return std::ranges::none_of(wanted_, other_result) && std::ranges::none_of(inputs_, other_operand);
}

void NodeCall::check_computes(size_t i) const {
  if (!compute_ || !is_whole(*compute_)) return;
  const DType own = inputs_[i].dtype;
  const bool fits = *compute_ == DType::Bool ? own == DType::Bool : is_whole(own);
  TENON_CHECK(
      fits, Type,
      fmt::format("{}: it computes in {} (compute_data_type), and input `{}` is {}; convert the input "
                  "by an identity node, or compute in a type that holds it",
                  kind(), name(*compute_), input_name(i), name(own)));
}

void NodeCall::check_held(std::string_view what, std::string_view which, int64_t number) const {
  TENON_CHECK(!whole_ || holds_number(*whole_, number), Value,
              fmt::format("{}: it computes in {}, which cannot hold {} `{}` of {}; compute in a type that "
                          "holds it (compute_data_type)",
                          kind(), name(*whole_), what, which, number));
}

// A whole number becomes one of the type in which the node computes.
void NodeCall::check_number(size_t i) const {
  const Input& input = inputs_[i];
  if (!whole_ || !input.value || !is_whole(input.dtype)) return;
  if (!input.bound) return check_held("input", input_name(i), input.value->to_int());
  TENON_CHECK(input.dtype == *whole_ || holds(*whole_, input.dtype), Type,
              fmt::format("{}: it computes in {}, which cannot hold each {} that a run may bring for input "
                          "`{}`; declare the number as {} (set_data_type), or compute in a type that holds "
                          "it (compute_data_type)",
                          kind(), name(*whole_), name(input.dtype), input_name(i), name(*whole_)));
}

// Inputs

const InputKind& NodeCall::input_kind(size_t i) const { return kinds_[std::min(i, kinds_.size() - 1)]; }

bool NodeCall::is_value_for(size_t i, size_t other) const noexcept {
  return is_value(i) && other < inputs_.size() && inputs_[other].tensor.defined() &&
         inputs_[i].dim.size() <= inputs_[other].tensor.sizes().size();
}

tenon::Tensor NodeCall::raw(size_t i) {
  if (!has(i)) return {};
  read_[i] = true;
  const Input& input = inputs_[i];
  if (input.tensor.defined()) return input.tensor;
  if (input.bound) writer_.bind("fill_value", *input.bound);
  return tenon::full(input.dim, *input.value, tenon::TensorOptions().dtype(input.dtype));
}

tenon::Tensor NodeCall::tensor(size_t i) {
  tenon::Tensor t = raw(i);
  if (!t.defined()) return t;
  // Converted to the type of the tensor next to it, a number could become false.
  if (node_.kind->computes == Computes::Logic && is_value(i)) return tenon::ne(t, 0);
  check_number(i);
  if (!compute_ || t.dtype() == *compute_) return t;
  check_computes(i);
  return t.to(*compute_);
}

Scalar NodeCall::value(size_t i, std::string_view argument) {
  TENON_CHECK(
      is_value(i), Value,
      fmt::format("{}: input `{}` has to be a number: tensor_scalar, or a tensor that is passed by value",
                  kind(), input_name(i)));
  check_computes(i);
  check_number(i);
  read_[i] = true;
  if (inputs_[i].bound) writer_.bind(argument, *inputs_[i].bound);
  return *inputs_[i].value;
}

const NodeCall::Input* NodeCall::number_input(size_t i, std::string_view argument, bool whole) {
  if (!has(i)) return nullptr;
  const Input& input = inputs_[i];
  const std::string_view own = input_name(i);
  TENON_CHECK(!has(own), Value,
              fmt::format("{}: `{}` is given as an input and as an attribute", kind(), own));
  TENON_CHECK(
      input.value, Value,
      fmt::format("{}: input `{}` has to be a number: tensor_scalar, or a tensor that is passed by value",
                  kind(), own));
  const bool is_constant = !input.bound;
  const bool fits = is_constant ? !whole || input.value->to_double() == std::trunc(input.value->to_double())
                    : whole     ? is_integral(input.dtype, /*include_bool=*/false)
                                : is_floating_point(input.dtype);
  TENON_CHECK(fits, Type,
              fmt::format("{}: input `{}` has to be a {} number, and is {}", kind(), own,
                          whole ? "whole" : "floating-point", name(input.dtype)));
  read_[i] = true;
  if (input.bound) writer_.bind(argument, *input.bound);
  return &input;
}

double NodeCall::number(size_t i, std::string_view argument, double other) {
  const Input* const input = number_input(i, argument, false);
  if (!input) return real(input_name(i), other);
  TENON_CHECK(!std::isnan(input->value->to_double()), Value,
              fmt::format("{}: input `{}` is NaN, expected a number", kind(), input_name(i)));
  return input->value->to_double();
}
int64_t NodeCall::whole_number(size_t i, std::string_view argument, int64_t other) {
  const Input* const input = number_input(i, argument, true);
  return input ? input->value->to_int() : integer(input_name(i), other);
}

// Attributes

template <class T>
const T* NodeCall::attribute(std::string_view name, const char* type) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  read_attributes_.insert(found->first);
  const T* const value = std::get_if<T>(&found->second);
  TENON_CHECK(value, Type,
              fmt::format("{}: `{}` has to be {}, and is {}", kind(), name, type, shown(found->second)));
  return value;
}

bool NodeCall::flag(std::string_view name, bool other) const {
  const bool* const value = attribute<bool>(name, "a bool");
  return value ? *value : other;
}
int64_t NodeCall::integer(std::string_view name, int64_t other) const {
  const int64_t* const value = attribute<int64_t>(name, "an int of at most 64 bits");
  return value ? *value : other;
}
double NodeCall::real(std::string_view name, double other) const {
  const auto found = node_.attributes.find(name);
  if (found != node_.attributes.end()) {
    if (std::holds_alternative<int64_t>(found->second))
      return static_cast<double>(*attribute<int64_t>(name, "an int"));
  }
  const double* const value = attribute<double>(name, "a float");
  TENON_CHECK(!value || !std::isnan(*value), Value,
              fmt::format("{}: `{}` is NaN, expected a number", kind(), name));
  return value ? *value : other;
}
Scalar NodeCall::scalar(std::string_view name, int64_t other) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end() || std::holds_alternative<int64_t>(found->second)) {
    const int64_t value = integer(name, other);
    check_held("attribute", name, value);
    return value;
  }
  const double value = real(name, 0);
  TENON_CHECK(
      !compute_ || !whole_, Type,
      fmt::format("{}: it computes in {} (compute_data_type), and attribute `{}` is the float {}; give "
                  "an int, or compute in a type that holds it",
                  kind(), tenon::name(*compute_), name, value));
  return value;
}
Dims NodeCall::dims(std::string_view name, Dims other) const {
  const Dims* const value = attribute<Dims>(name, "a list of ints");
  return value ? *value : std::move(other);
}
std::string NodeCall::text(std::string_view name, std::string_view other) const {
  const std::string* const value = attribute<std::string>(name, "a str");
  return value ? *value : std::string(other);
}

const Dims& NodeCall::wanted_dim(size_t i) const {
  TENON_CHECK(
      wanted_[i].dim, Value,
      fmt::format("{}: the sizes of its output do not follow from its inputs; set_dim() says them", kind()));
  return *wanted_[i].dim;
}

void NodeCall::check_used() const {
  const auto refuse = [&](std::string_view what, std::string_view which) {
    throw_error(ErrorKind::Value,
                fmt::format("{}: {} `{}` has no effect next to the others of this node; leave it out", kind(),
                            what, which));
  };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (has(i) && !read_[i]) refuse("input", input_name(i));
  }
  for (const auto& [name, value] : node_.attributes) {
    if (!read_attributes_.contains(name)) refuse("attribute", name);
  }
  TENON_CHECK(
      writer_.unbound().empty(), NotImplemented,
      fmt::format("{}: its operators need `{}` before a run; use tensor_scalar", kind(), writer_.unbound()));
}

}  // namespace tenon::builder
