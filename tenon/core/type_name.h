// type_name: the name of a type as the compiler prints it, in programs without RTTI, too.
// Used by what names a user's types in messages. Two compilers may spell one type differently.
#pragma once

#include <string_view>

namespace tenon {

/// "ns::Square".
template <class T>
constexpr std::string_view type_name() noexcept {
  // GCC: "... [with T = ns::Square; std::string_view = ...]"; clang: "... [T = ns::Square]".
  const std::string_view text = __PRETTY_FUNCTION__;
  const size_t begin = text.find("T = ") + 4, aliases = text.rfind("; std::string_view = ");
  return text.substr(begin, (aliases == text.npos ? text.size() - 1 : aliases) - begin);
}

}  // namespace tenon
