#include "tenon/expr/type.h"

namespace tenon::expr {

namespace {

constexpr std::string_view kSuffixes[] = {"mask", "f32", "f64", "i32", "i64", "i8",
                                          "u8",   "i16", "u16", "u32", "u64"};
constexpr std::string_view kWritten[] = {"same", "wide", "pattern", "open"};

}  // namespace

std::string_view suffix(Type t) noexcept {
  const auto i = static_cast<size_t>(t);
  return t >= Type::Same ? kWritten[i - static_cast<size_t>(Type::Same)] : kSuffixes[i];
}

Type parse_suffix(std::string_view text) noexcept {
  for (int i = 0; i <= static_cast<int>(Type::I64); ++i) {
    if (kSuffixes[i] == text) return static_cast<Type>(i);
  }
  return Type::Open;
}

std::string_view name(Type t) noexcept { return t <= Type::I64 ? tenon::name(dtype(t)) : suffix(t); }

}  // namespace tenon::expr
