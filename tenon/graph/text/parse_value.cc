#include "tenon/graph/text/parse_value.h"

#include <fmt/format.h>

#include <complex>
#include <memory>

#include "tenon/dispatch/value_types.h"
#include "tenon/graph/text/words.h"

namespace tenon::graph {
namespace {

using schema::BaseType;

/// What a word denotes; `what` is what the error says was expected.
template <class F>
auto word_value(Lexer& lexer, F&& parse, std::string_view what, std::string_view others = "_") {
  const size_t at = lexer.position();
  const auto value = parse(lexer.word(others));
  if (!value) lexer.fail_at(at, fmt::format("expected {}", what));
  return *value;
}

bool boolean(Lexer& lexer) {
  if (lexer.take_word("true")) return true;
  if (!lexer.take_word("false")) lexer.fail("expected true or false");
  return false;
}

Scalar scalar(Lexer& lexer) {
  if (lexer.peek("true") || lexer.peek("false")) return boolean(lexer);
  if (lexer.take("(")) {
    const double real = lexer.number<double>("a number");
    lexer.expect(",");
    const double imag = lexer.number<double>("a number");
    lexer.expect(")");
    return std::complex<double>(real, imag);
  }
  // A real number has a point, an exponent or a name.
  Lexer ahead = lexer;
  if (ahead.word("+-.").find_first_of(".eni") == std::string_view::npos)
    return lexer.number<int64_t>("a number");
  return lexer.number<double>("a number");
}

template <BaseType b>
auto value(Lexer& lexer) {
  if constexpr (b == BaseType::Int) {
    return lexer.number<int64_t>("a whole number");
  } else if constexpr (b == BaseType::Float) {
    return lexer.number<double>("a number");
  } else if constexpr (b == BaseType::Bool) {
    return boolean(lexer);
  } else if constexpr (b == BaseType::Str) {
    return lexer.quoted();
  } else if constexpr (b == BaseType::Scalar) {
    return scalar(lexer);
  } else if constexpr (b == BaseType::ScalarType) {
    return word_value(lexer, parse_dtype, "a dtype");
  } else if constexpr (b == BaseType::Layout) {
    return word_value(lexer, parse_layout, "a layout");
  } else if constexpr (b == BaseType::MemoryFormat) {
    return word_value(lexer, parse_memory_format, "a memory format");
  } else {
    static_assert(b == BaseType::Device);
    return device_value(lexer);
  }
}

/// "[a, b]".
template <BaseType b>
void push_list(Lexer& lexer, Stack& stack) {
  std::vector<decltype(value<b>(lexer))> all;
  lexer.expect("[");
  if (!lexer.take("]")) {
    do all.push_back(value<b>(lexer));
    while (lexer.take(","));
    lexer.expect("]");
  }
  using Element = typename detail::ValueType<b>::Owned;
  const auto elements = std::make_unique<Element[]>(all.size());  // std::vector<bool> has none
  std::copy(all.begin(), all.end(), elements.get());
  stack.push(CellList<Element>(std::span<const Element>(elements.get(), all.size())));
}

}  // namespace

Device device_value(Lexer& lexer) { return word_value(lexer, parse_device, "a device that is there", "_:"); }

void push_value(Lexer& lexer, const schema::Type& type, Stack& stack) {
  bool found = false;
  detail::for_each_base([&]<BaseType b>() {
    if constexpr (b != BaseType::Tensor && b != BaseType::Generator && b != BaseType::Storage) {
      if (type.base != b) return;
      if (!type.list) {
        stack.push(value<b>(lexer));
        found = true;
      } else if constexpr (detail::ValueType<b>::list_tag != CellTag::None) {
        push_list<b>(lexer, stack);
        found = true;
      }
    }
  });
  if (!found) lexer.fail("a value of type " + to_string(type) + " has no text");
}

}  // namespace tenon::graph
