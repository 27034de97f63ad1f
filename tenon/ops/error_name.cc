#include "tenon/ops/error_name.h"

#include <string>
#include <typeinfo>

#include "tenon/core/error.h"

namespace tenon::detail {
namespace {

/// The length of the name in "name: what is wrong"; 0 where there is none.
size_t name_length(std::string_view text) noexcept {
  size_t n = 0;
  while (n < text.size() &&
         ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= '0' && text[n] <= '9') || text[n] == '_')) {
    ++n;
  }
  return text.substr(n).starts_with(": ") ? n : 0;
}

}  // namespace

void rethrow_naming(std::string_view op) {
  try {
    throw;
  } catch (const Error& e) {
    const std::string_view text = e.what();
    const size_t n = name_length(text);
    if (typeid(e) != typeid(Error) || n == 0 || text.substr(0, n) == op) throw;
    throw Error(e.kind(), std::string(op).append(text.substr(n)));
  }
}

}  // namespace tenon::detail
