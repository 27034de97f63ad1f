// StubSignature: the type of a stub's functions on boxed values, as types of the schema language. Read from a
// text, or made from C++ types, at compile time. Used by stubs and by plug-ins' registrations (tenon/plugin).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "tenon/dispatch/signature.h"

namespace tenon::detail {

/// A type of the schema language. What has an undefined value (Tensor, Generator) is never optional here.
struct StubType {
  std::string_view base;  ///< "Tensor"; empty: no value.
  bool list = false, optional = false;
  /// As many of them as the operator has, one at least: the tensors of a pointwise operator, outputs first.
  bool several = false;
  friend constexpr bool operator==(const StubType&, const StubType&) = default;
};

struct StubSignature {
  static constexpr size_t kMost = 24;
  std::array<StubType, kMost> arguments{};
  size_t count = 0;
  StubType result;
  bool valid = false;  ///< Not: a text that is no signature, or a type that is not boxed.

  constexpr void add(const StubType& t) {
    if (count < kMost) arguments[count] = t;
    ++count;
  }
};

/// The type that a C++ parameter or result has as a cell.
template <class T>
constexpr StubType stub_type_of() {
  if constexpr (std::is_void_v<T>) {
    return {};
  } else if constexpr (std::is_same_v<T, Tensor&>) {
    return {"Tensor"};
  } else if constexpr (kBorrowedBase<T>.found) {
    return {schema::base_type_info(kBorrowedBase<T>.base).name};
  } else if constexpr (kOwnedBase<T>.found) {
    return {schema::base_type_info(kOwnedBase<T>.base).name};
  } else if constexpr (kListBase<T>.found) {
    return {schema::base_type_info(kListBase<T>.base).name, true};
  } else {
    using Inner = typename T::value_type;  // of an std::optional
    StubType t = stub_type_of<typename Borrowing<Inner>::type>();
    t.optional = t.list || !kHasUndefined<Inner>;
    return t;
  }
}

constexpr std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// "Tensor(a!) out" or "int[2]? dim=None": the type of a parameter.
constexpr StubType parse_stub_type(std::string_view text) {
  text = trimmed(text);
  const size_t end = text.find_first_of(" ([?");
  StubType t{text.substr(0, end)};
  if (t.base == "SymInt") t.base = "int";
  const bool undefined = t.base == "Tensor" || t.base == "Generator";
  for (size_t i = end; i < text.size() && text[i] != ' '; ++i) {
    if (text[i] == '(') i = text.find(')', i);
    if (i >= text.size()) break;
    if (text[i] == '[') {
      t.list = true;
      t.optional = false;
      i = text.find(']', i);
      if (i >= text.size()) break;
    }
    if (text[i] == '?') t.optional = t.list || !undefined;
  }
  return t;
}

/// "(Tensor self, Scalar value) -> ()"; names and defaults may be left out.
constexpr StubSignature parse_stub_signature(std::string_view text) {
  StubSignature signature;
  text = trimmed(text);
  const size_t arrow = text.rfind("->");
  if (!text.starts_with('(') || arrow == std::string_view::npos) return signature;
  std::string_view parameters = trimmed(text.substr(0, arrow));
  if (!parameters.ends_with(')')) return signature;
  parameters = parameters.substr(1, parameters.size() - 2);
  int depth = 0;
  size_t first = 0;
  for (size_t i = 0; i <= parameters.size(); ++i) {
    if (i < parameters.size() && (parameters[i] == '(' || parameters[i] == '[')) ++depth;
    if (i < parameters.size() && (parameters[i] == ')' || parameters[i] == ']')) --depth;
    if (i < parameters.size() && (parameters[i] != ',' || depth != 0)) continue;
    const std::string_view parameter = trimmed(parameters.substr(first, i - first));
    first = i + 1;
    if (parameter != "*" && !parameter.empty()) signature.add(parse_stub_type(parameter));
  }
  const std::string_view result = trimmed(text.substr(arrow + 2));
  if (result != "()") signature.result = parse_stub_type(result);
  signature.valid = signature.count <= StubSignature::kMost;
  return signature;
}

/// Whether arguments and results have the same types; `b` may have several tensors in one place.
constexpr bool same_types(const StubSignature& a, const StubSignature& b) {
  if (!a.valid || !b.valid || a.result != b.result) return false;
  size_t i = 0;
  for (size_t k = 0; k < b.count; ++k) {
    if (b.arguments[k].several) {
      if (i == a.count || a.arguments[i].base != b.arguments[k].base) return false;
      while (i < a.count && a.arguments[i] == StubType{b.arguments[k].base}) ++i;
    } else if (i == a.count || a.arguments[i++] != b.arguments[k]) {
      return false;
    }
  }
  return i == a.count;
}

}  // namespace tenon::detail
