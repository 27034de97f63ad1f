#include "tenon/builder/node_call.h"

#include <fmt/format.h>

#include "tenon/core/error.h"
#include "tenon/generated/functions.h"

namespace tenon::builder {

// Operators on half types compute in float32 and round once, so that operands of the result's type need no
// conversion for that.
void NodeCall::choose_compute_type() {
  compute_ = node_.compute_type;
  if (compute_ != DType::Float32) return;
  const auto half = [](DType t) { return t == DType::Float16 || t == DType::BFloat16; };
  std::optional<DType> common = wanted_.empty() ? std::nullopt : wanted_[0].dtype;
  if (!common || !half(*common)) return;
  for (const Input& input : inputs_) {
    if (input.tensor.defined() && is_floating_point(input.dtype) && input.dtype != *common) return;
  }
  compute_.reset();
}

tenon::Tensor NodeCall::raw(size_t i) {
  if (!has(i)) return {};
  const Input& input = inputs_[i];
  if (input.tensor.defined()) return input.tensor;
  if (input.bound) trace_.bind("fill_value", *input.bound);
  return tenon::full({}, *input.value, tenon::TensorOptions().dtype(input.dtype));
}

tenon::Tensor NodeCall::tensor(size_t i) {
  tenon::Tensor t = raw(i);
  const bool converts = t.defined() && compute_ && is_floating_point(t.dtype()) && t.dtype() != *compute_;
  return converts ? t.to(*compute_) : t;
}

Scalar NodeCall::value(size_t i, std::string_view argument) {
  TENON_CHECK(
      is_value(i), Value,
      fmt::format("{}: input {} has to be a number: tensor_scalar, or a tensor that is passed by value",
                  kind(), i));
  if (inputs_[i].bound) trace_.bind(argument, *inputs_[i].bound);
  return *inputs_[i].value;
}

template <class T>
const T* NodeCall::attribute(std::string_view name, const char* type) const {
  const auto found = node_.attributes.find(name);
  if (found == node_.attributes.end()) return nullptr;
  const T* const value = std::get_if<T>(&found->second);
  TENON_CHECK(value, Type, fmt::format("{}: `{}` has to be {}", kind(), name, type));
  return value;
}

bool NodeCall::flag(std::string_view name, bool other) const {
  const bool* const value = attribute<bool>(name, "a bool");
  return value ? *value : other;
}
int64_t NodeCall::integer(std::string_view name, int64_t other) const {
  const int64_t* const value = attribute<int64_t>(name, "an int");
  return value ? *value : other;
}
double NodeCall::real(std::string_view name, double other) const {
  const auto found = node_.attributes.find(name);
  if (found != node_.attributes.end()) {
    if (const int64_t* const whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  }
  const double* const value = attribute<double>(name, "a float");
  return value ? *value : other;
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

}  // namespace tenon::builder
