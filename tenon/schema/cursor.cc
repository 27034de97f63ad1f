#include "tenon/schema/cursor.h"

#include <fmt/core.h>

#include "tenon/core/error.h"

namespace tenon::schema {
namespace {

// Not <cctype>: its answers depend on the process's locale, and on char's sign.
bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }
bool continues_utf8(char c) noexcept { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Line breaks and tabs would part the caret from its column.
std::string without_controls(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (is_control(c)) c = ' ';
  }
  return out;
}

}  // namespace

bool Cursor::is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

void Cursor::skip_space() noexcept {
  while (next_ < text_.size() && is_space(text_[next_])) ++next_;
}

size_t Cursor::position() {
  skip_space();
  return next_;
}

bool Cursor::at_end() { return position() == text_.size(); }

char Cursor::peek() {
  skip_space();
  return peek_raw();
}

bool Cursor::accept(std::string_view token) {
  skip_space();
  if (text_.substr(next_, token.size()) != token) return false;
  next_ += token.size();
  return true;
}

void Cursor::expect(std::string_view token) {
  if (!accept(token)) fail_expected(fmt::format("'{}'", token));
}

std::string_view Cursor::accept_identifier() {
  const size_t start = position();
  if (is_digit(peek_raw())) return {};
  while (is_word(peek_raw())) ++next_;
  return since(start);
}

std::string_view Cursor::identifier(std::string_view what) {
  const std::string_view word = accept_identifier();
  if (word.empty()) fail_expected(what);
  return word;
}

size_t Cursor::token_length(size_t position) const noexcept {
  size_t end = position;
  while (end < text_.size() && is_word(text_[end])) ++end;
  if (end == position && end < text_.size()) {
    ++end;
    // A character of several bytes is shown whole.
    while (end < text_.size() && continues_utf8(text_[end])) ++end;
  }
  return end - position;
}

void Cursor::fail_expected(std::string_view what) { fail_expected_at(position(), what); }

void Cursor::fail_expected_at(size_t position, std::string_view what) const {
  fail_expected_at(position, token_length(position), what);
}

void Cursor::fail_expected_at(size_t position, size_t length, std::string_view what) const {
  std::string got = fmt::format("'{}'", without_controls(text_.substr(position, length)));
  if (length == 0) {
    got = "the end of the text";
  } else if (length == 1 && is_control(text_[position])) {
    got = fmt::format("the character 0x{:02x}", static_cast<unsigned char>(text_[position]));
  }
  fail_at(position, fmt::format("expected {}", what), fmt::format(", got {}", got));
}

void Cursor::fail_at(size_t position, std::string_view problem, std::string_view hint) const {
  size_t width = 0;
  for (const char c : text_.substr(0, position)) width += continues_utf8(c) ? 0 : 1;
  throw_error(ErrorKind::Value, fmt::format("schema: {} at column {}{}\n  {}\n  {}^", problem, width + 1,
                                            hint, without_controls(text_), std::string(width, ' ')));
}

}  // namespace tenon::schema
