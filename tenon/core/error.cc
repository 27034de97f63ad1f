#include "tenon/core/error.h"

#include <optional>
#include <typeinfo>

namespace tenon {
namespace {

/// The length of the name in "name: what is wrong"; nothing where the text does not begin so.
std::optional<size_t> name_length(std::string_view text) noexcept {
  size_t n = 0;
  while (n < text.size() &&
         ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= '0' && text[n] <= '9') || text[n] == '_')) {
    ++n;
  }
  return text.substr(n).starts_with(": ") ? std::optional(n) : std::nullopt;
}

std::string without_empty_name(const std::string& text) {
  return text.starts_with(": ") ? text.substr(2) : text;
}

}  // namespace

Error::Error(ErrorKind kind, const std::string& text)
    : std::runtime_error(without_empty_name(text)), kind_(kind) {
  const auto length = name_length(text);
  has_operator_ = length.has_value();
  name_length_ = length.value_or(0);
}

void Error::set_operator(std::string_view name) {
  // Of the derived classes, those of operators are of kind Runtime: LinAlgError.
  const bool own_text = typeid(*this) != typeid(Error) && kind_ != ErrorKind::Runtime;
  if (!has_operator_ || name == operator_name() || own_text) return;
  std::string text(name);
  text.append(": ").append(message());
  std::runtime_error::operator=(std::runtime_error(text));
  name_length_ = name.size();
}

void Error::append(std::string_view text) {
  if (typeid(*this) != typeid(Error)) return;
  std::runtime_error::operator=(std::runtime_error(std::string(what()).append(text)));
}

void throw_error(ErrorKind kind, const std::string& message) { throw Error(kind, message); }

}  // namespace tenon
