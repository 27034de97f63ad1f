#include "tenon/io/value.h"

#include <fmt/format.h>

#include <array>

#include "tenon/io/node.h"

namespace tenon {
namespace {

constexpr std::array kKindNames = {"None",     "a bool",
                                   "an int",   "an int beyond 64 bits",
                                   "a float",  "a complex number",
                                   "a text",   "bytes",
                                   "a tensor", "a dtype",
                                   "a device", "a list",
                                   "a tuple",  "a set",
                                   "a dict"};

[[noreturn]] void wrong(const Value& value, const char* wanted) {
  throw Error(ErrorKind::Type, fmt::format("Value: {} is wanted, and this is {}", wanted, value.kind_name()));
}

}  // namespace

Value::Kind Value::kind() const noexcept { return node_->kind; }
const char* Value::kind_name() const noexcept { return kKindNames[static_cast<size_t>(kind())]; }

bool Value::to_bool() const {
  if (kind() != Kind::Bool) wrong(*this, "a bool");
  return std::get<bool>(node_->value);
}
int64_t Value::to_int() const {
  if (kind() != Kind::Int) wrong(*this, "an int");
  return std::get<int64_t>(node_->value);
}
double Value::to_double() const {
  if (kind() == Kind::Int) return static_cast<double>(to_int());
  if (kind() != Kind::Float) wrong(*this, "a float");
  return std::get<double>(node_->value);
}
std::complex<double> Value::to_complex() const {
  if (kind() != Kind::Complex) return to_double();
  return std::get<std::complex<double>>(node_->value);
}
std::string Value::to_text() const {
  if (kind() != Kind::Text) wrong(*this, "a text");
  return std::string(node_->text());
}
std::string Value::to_bytes() const {
  if (kind() != Kind::Bytes) wrong(*this, "bytes");
  return std::string(node_->text());
}
Tensor Value::to_tensor() const {
  if (kind() != Kind::Tensor) wrong(*this, "a tensor");
  return std::get<Tensor>(node_->value);
}
DType Value::to_dtype() const {
  if (kind() != Kind::DType) wrong(*this, "a dtype");
  return std::get<DType>(node_->value);
}

size_t Value::size() const {
  if (kind() < Kind::List) wrong(*this, "a list or dict");
  return node_->list().size() / (kind() == Kind::Dict ? 2 : 1);
}

Value Value::element(int64_t i) const {
  if (kind() < Kind::List || kind() == Kind::Dict) wrong(*this, "a list");
  TENON_CHECK(std::cmp_less(i, size()) && i >= 0, Index,
              fmt::format("Value: there is no element {} in {} of {}", i, kind_name(), size()));
  return with(node_->list()[static_cast<size_t>(i)]);
}

const io::Node* Value::find(std::string_view key) const {
  if (kind() != Kind::Dict) wrong(*this, "a dict");
  const auto& list = node_->list();
  // Of a key that is there twice the last counts.
  for (size_t i = list.size(); i > 0; i -= 2)
    if (list[i - 2]->kind == Kind::Text && list[i - 2]->text() == key) return list[i - 1];
  return nullptr;
}

Value Value::operator[](std::string_view key) const {
  const io::Node* const found = find(key);
  TENON_CHECK(found, Value, fmt::format("Value: the dict has no key '{}'", key));
  return with(found);
}

bool Value::contains(std::string_view key) const { return find(key) != nullptr; }

std::vector<std::pair<Value, Value>> Value::items() const {
  if (kind() != Kind::Dict) wrong(*this, "a dict");
  std::vector<std::pair<Value, Value>> out;
  const auto& list = node_->list();
  for (size_t i = 0; i < list.size(); i += 2) out.emplace_back(with(list[i]), with(list[i + 1]));
  return out;
}

StateDict Value::state_dict() const {
  if (kind() != Kind::Dict) wrong(*this, "a dict of tensors");
  StateDict out;
  for (const auto& [key, value] : items()) {
    TENON_CHECK(key.kind() == Kind::Text, Type,
                fmt::format("Value: a dict of tensors is wanted, and a key is {}", key.kind_name()));
    TENON_CHECK(
        value.kind() == Kind::Tensor, Type,
        fmt::format(
            "Value: a dict of tensors is wanted, and '{}' is {}; where a checkpoint holds several things, "
            "take the one that is wanted, as in checkpoint[\"model\"]",
            key.to_text(), value.kind_name()));
    out.set(key.to_text(), value.to_tensor());
  }
  return out;
}

}  // namespace tenon
