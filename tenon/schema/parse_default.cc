#include "tenon/schema/parse_default.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>

#include "tenon/schema/words.h"

namespace tenon::schema {
namespace {

struct Word {
  std::string text;
};

/// One literal before anybody asks for its type.
struct Literal {
  std::variant<int64_t, double, std::string, Word> value;
  size_t position = 0;
  size_t length = 0;

  const Word* word() const noexcept { return std::get_if<Word>(&value); }
};

void take_digits(Cursor& cursor) {
  while (is_digit(cursor.peek_raw())) cursor.take_raw();
}

/// digits [. digits] [e [+-] digits]; the sign, if any, is already taken.
Literal read_number(Cursor& cursor, size_t start) {
  bool real = false;
  take_digits(cursor);
  if (cursor.peek_raw() == '.') {
    real = true;
    cursor.take_raw();
    take_digits(cursor);
  }
  if (cursor.peek_raw() == 'e' || cursor.peek_raw() == 'E') {
    real = true;
    cursor.take_raw();
    if (cursor.peek_raw() == '+' || cursor.peek_raw() == '-') cursor.take_raw();
    if (!is_digit(cursor.peek_raw())) cursor.fail_expected_at(cursor.position_raw(), "an exponent");
    take_digits(cursor);
  }
  const std::string_view text = cursor.since(start);
  const char* end = text.data() + text.size();
  Literal literal{int64_t{0}, start, text.size()};
  std::from_chars_result result;
  if (real) {
    double value = 0;
    result = std::from_chars(text.data(), end, value);
    literal.value = value;
  } else {
    int64_t value = 0;
    result = std::from_chars(text.data(), end, value);
    literal.value = value;
  }
  if (result.ec == std::errc::result_out_of_range) {
    cursor.fail_at(start, fmt::format("number '{}' out of range", text),
                   real ? "; a float holds 64 bits" : "; an int holds 64 bits");
  }
  if (result.ec != std::errc() || result.ptr != end) cursor.fail_expected_at(start, "a number");
  return literal;
}

Literal read_string(Cursor& cursor) {
  const size_t start = cursor.position();
  const char quote = cursor.take_raw();
  std::string out;
  while (true) {
    if (cursor.at_end_raw()) cursor.fail_at(start, "unterminated string");
    const size_t at = cursor.position_raw();
    const char c = cursor.take_raw();
    if (c == quote) return {std::move(out), start, cursor.position_raw() - start};
    if (c != '\\') {
      out += c;
      continue;
    }
    const char escaped = cursor.take_raw();
    switch (escaped) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case '\\':
      case '\'':
      case '"':
        out += escaped;
        break;
      default:
        cursor.fail_at(at, "unknown escape in a string", "; known are \\n \\t \\r \\\\ \\' \\\"");
    }
  }
}

Literal read_literal(Cursor& cursor, std::string_view wanted) {
  const size_t start = cursor.position();
  const char first = cursor.peek();
  if (first == '"' || first == '\'') return read_string(cursor);
  if (is_digit(first) || first == '.') return read_number(cursor, start);
  if (first == '-') {
    cursor.take_raw();
    if (is_digit(cursor.peek_raw()) || cursor.peek_raw() == '.') return read_number(cursor, start);
    if (cursor.accept_identifier() == "inf") return {-std::numeric_limits<double>::infinity(), start, 4};
    cursor.fail_expected_at(start + 1, "a number after '-'");
  }
  const std::string_view word = cursor.accept_identifier();
  if (word.empty()) cursor.fail_expected(wanted);
  if (word == "inf") return {std::numeric_limits<double>::infinity(), start, word.size()};
  if (word == "nan") return {std::numeric_limits<double>::quiet_NaN(), start, word.size()};
  std::string text(word);
  // `cuda:1`, the one word with an index.
  if (cursor.peek_raw() == ':') {
    cursor.take_raw();
    if (!is_digit(cursor.peek_raw())) cursor.fail_expected_at(cursor.position_raw(), "a device index");
    take_digits(cursor);
    text = cursor.since(start);
  }
  const size_t length = text.size();
  return {Word{std::move(text)}, start, length};
}

/// "a default of type int": what a failure says was expected.
std::string wanted(const Type& type) { return fmt::format("a default of type {}", to_string(type)); }

[[noreturn]] void fail_fit(const Cursor& cursor, const Literal& literal, const Type& type) {
  cursor.fail_expected_at(literal.position, literal.length, wanted(type));
}

int64_t as_int(const Cursor& cursor, const Literal& literal, const Type& type) {
  if (const auto* i = std::get_if<int64_t>(&literal.value)) return *i;
  if (const Word* word = literal.word()) {
    if (const auto named = find_int_word(word->text)) return *named;
  }
  fail_fit(cursor, literal, type);
}

double as_float(const Cursor& cursor, const Literal& literal, const Type& type) {
  if (const auto* d = std::get_if<double>(&literal.value)) return *d;
  if (const auto* i = std::get_if<int64_t>(&literal.value)) return static_cast<double>(*i);
  fail_fit(cursor, literal, type);
}

std::optional<bool> as_bool(const Literal& literal) {
  const Word* word = literal.word();
  if (word && word->text == "True") return true;
  if (word && word->text == "False") return false;
  return std::nullopt;
}

std::string as_word(const Cursor& cursor, const Literal& literal, const Type& type) {
  std::optional<std::string> canonical;
  const bool device = type.base == BaseType::Device;
  const bool boolean_or_none = as_bool(literal) || (literal.word() && literal.word()->text == "None");
  if (const Word* word = literal.word()) {
    // Only a device has an index; only it may be quoted.
    if (!boolean_or_none) canonical = find_word(type.base, word->text);
  } else if (const auto* s = std::get_if<std::string>(&literal.value); s && device && !s->empty()) {
    canonical = *s;
  } else if (const auto* i = std::get_if<int64_t>(&literal.value)) {
    canonical = find_numbered_word(type.base, *i);
  }
  if (!canonical) fail_fit(cursor, literal, type);
  return *canonical;
}

DefaultValue::Value fit_one(const Cursor& cursor, const Literal& literal, const Type& type) {
  switch (type.base) {
    case BaseType::Int:
      return as_int(cursor, literal, type);
    case BaseType::Float:
      return as_float(cursor, literal, type);
    case BaseType::Bool:
      if (const auto b = as_bool(literal)) return *b;
      break;
    case BaseType::Str:
      if (const auto* s = std::get_if<std::string>(&literal.value)) return *s;
      break;
    case BaseType::Scalar:
      if (const auto b = as_bool(literal)) return *b;
      if (const auto* i = std::get_if<int64_t>(&literal.value)) return *i;
      if (const auto* d = std::get_if<double>(&literal.value)) return *d;
      break;
    case BaseType::ScalarType:
    case BaseType::Layout:
    case BaseType::MemoryFormat:
    case BaseType::Device:
      return as_word(cursor, literal, type);
    default:
      cursor.fail_at(literal.position,
                     fmt::format("type {} has no default but None", base_name(type.base, type.symbolic)));
  }
  fail_fit(cursor, literal, type);
}

DefaultValue::Value fit_list(const Cursor& cursor, const std::vector<Literal>& items, const Type& type) {
  const bool all_ints = [&] {
    for (const Literal& item : items) {
      if (!std::holds_alternative<int64_t>(item.value)) return false;
    }
    return true;
  }();
  if (type.base == BaseType::Float || (type.base == BaseType::Scalar && !all_ints)) {
    std::vector<double> out;
    for (const Literal& item : items) out.push_back(as_float(cursor, item, type));
    return out;
  }
  if (type.base == BaseType::Bool) {
    std::vector<bool> out;
    for (const Literal& item : items) {
      const auto b = as_bool(item);
      if (!b) fail_fit(cursor, item, type);
      out.push_back(*b);
    }
    return out;
  }
  if (type.base != BaseType::Int && type.base != BaseType::Scalar && !items.empty()) {
    cursor.fail_at(items[0].position, fmt::format("a list of {} has no default but [] or None",
                                                  base_name(type.base, type.symbolic)));
  }
  std::vector<int64_t> out;
  for (const Literal& item : items) out.push_back(as_int(cursor, item, type));
  return out;
}

std::vector<Literal> read_list(Cursor& cursor, const Type& type) {
  std::vector<Literal> items;
  cursor.expect("[");
  if (cursor.accept("]")) return items;
  const std::string what = fmt::format("a {} in the list", base_name(type.base, type.symbolic));
  do {
    items.push_back(read_literal(cursor, what));
  } while (cursor.accept(","));
  if (!cursor.accept("]")) cursor.fail_expected("',' or ']'");
  return items;
}

}  // namespace

DefaultValue parse_default(Cursor& cursor, const Type& type) {
  const size_t start = cursor.position();
  DefaultValue out;
  if (type.list && cursor.peek() == '[') {
    const std::vector<Literal> items = read_list(cursor, type);
    // One value may stand for all N, and [] for "not given": PyTorch has int[1] dim=[] and int[2] stride=[].
    // A list of "1" has any number of values, and may be given as one: int[1] dim=[-2, -1].
    const bool fits =
        type.list_size <= 1 || items.size() <= 1 || items.size() == static_cast<size_t>(type.list_size);
    if (!fits) {
      cursor.fail_at(start, fmt::format("default of {} values for {}", items.size(), to_string(type)));
    }
    out.value = fit_list(cursor, items, type);
  } else {
    const Literal literal = read_literal(cursor, wanted(type));
    if (const Word* word = literal.word(); word && word->text == "None") {
      if (!type.optional) {
        cursor.fail_at(start, "default None",
                       fmt::format(" needs an optional type; write {}?", to_string(type)));
      }
      out.value = NoneDefault{};
    } else if (!type.list) {
      out.value = fit_one(cursor, literal, type);
    } else if (type.list_size > 0) {
      out.value = fit_list(cursor, std::vector<Literal>(static_cast<size_t>(type.list_size), literal), type);
    } else {
      fail_fit(cursor, literal, type);
    }
  }
  out.text = cursor.since(start);
  return out;
}

}  // namespace tenon::schema
