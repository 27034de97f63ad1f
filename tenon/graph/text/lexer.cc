#include "tenon/graph/text/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tenon/core/error.h"

namespace tenon::graph {

void Lexer::skip_space() noexcept {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '#')
      at_ = std::min(text_.find('\n', at_), text_.size());
    else if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
      ++at_;
    else
      return;
  }
}

std::string_view Lexer::word(std::string_view others) noexcept {
  size_t end = at_;
  const auto belongs = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
  };
  while (end < text_.size() && belongs(text_[end])) ++end;
  const std::string_view found = text_.substr(at_, end - at_);
  at_ = end;
  skip_space();
  return found;
}

bool Lexer::take_word(std::string_view wanted) noexcept {
  const size_t start = at_;
  if (word() == wanted) return true;
  at_ = start;
  return false;
}

std::string Lexer::quoted() {
  if (!peek("\"")) fail("expected a quoted text");
  std::string text;
  for (size_t i = at_ + 1; i < text_.size(); ++i) {
    char c = text_[i];
    if (c == '"') {
      at_ = i + 1;
      skip_space();
      return text;
    }
    if (c == '\\') {
      if (++i == text_.size()) break;
      c = text_[i];
      if (c == 'x') {
        uint8_t code = 0;
        const std::string_view digits = text_.substr(i + 1, 2);
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (digits.size() != 2 || read.ptr != digits.data() + 2)
          fail_at(i, "expected two hexadecimal digits");
        c = static_cast<char>(code);
        i += 2;
      }
    }
    text += c;
  }
  fail("a quoted text has no end");
}

std::string_view Lexer::rest_of_line() noexcept {
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  const std::string_view rest = text_.substr(at_, end - at_);
  at_ = end;
  skip_space();
  return rest;
}

void Lexer::fail_at(size_t position, const std::string& problem) const {
  position = std::min(position, text_.size());
  const std::string_view before = text_.substr(0, position);
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const size_t column = position - start;
  // A line of an expression may be long: what is around the place.
  constexpr size_t kBefore = 60, kShown = 100;
  const size_t from = column > kBefore ? position - kBefore : start;
  std::string_view shown = text_.substr(from, kShown);
  shown = shown.substr(0, shown.find('\n'));
  throw_error(ErrorKind::Value, fmt::format("graph: line {}, column {}: {}\n  {}\n  {:>{}}", line, column + 1,
                                            problem, shown, '^', position - from + 1));
}

}  // namespace tenon::graph
