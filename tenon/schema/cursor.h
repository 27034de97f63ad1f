// Cursor: a position in a schema's text, the tokens read from it, and errors that point at a column.
// Used by the schema parser only.
#pragma once

#include <string>
#include <string_view>

namespace tenon::schema {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Reads tokens from left to right; white space between tokens is skipped. Every failure throws Error{Value}.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  /// Start of the next token, counted from 0.
  size_t position();
  bool at_end();
  /// The next token's first character, or 0 at the end.
  char peek();
  /// Consumes `token` if it comes next.
  bool accept(std::string_view token);
  /// Consumes `token` or fails, naming it.
  void expect(std::string_view token);
  /// Consumes an identifier if one comes next; otherwise empty.
  std::string_view accept_identifier();
  /// Consumes an identifier or fails with "expected <what>".
  std::string_view identifier(std::string_view what);
  /// Whether a character may be part of an identifier or a number.
  static bool is_word(char c) noexcept;

  /// Consumes one character of the token being read, without skipping white space. 0 at the end.
  char take_raw() noexcept { return next_ < text_.size() ? text_[next_++] : '\0'; }
  char peek_raw() const noexcept { return next_ < text_.size() ? text_[next_] : '\0'; }
  bool at_end_raw() const noexcept { return next_ >= text_.size(); }
  size_t position_raw() const noexcept { return next_; }
  std::string_view since(size_t start) const noexcept { return text_.substr(start, next_ - start); }

  /// "expected <what> at column C, got <next token>".
  [[noreturn]] void fail_expected(std::string_view what);
  [[noreturn]] void fail_expected_at(size_t position, std::string_view what) const;
  /// As fail_expected, for a token at `position` of `length` characters.
  [[noreturn]] void fail_expected_at(size_t position, size_t length, std::string_view what) const;
  /// "<problem> at column C<hint>", with the text and a caret below.
  [[noreturn]] void fail_at(size_t position, std::string_view problem, std::string_view hint = {}) const;

 private:
  void skip_space() noexcept;
  /// Length of the word or character at `position`; 0 at the end.
  size_t token_length(size_t position) const noexcept;

  std::string_view text_;
  size_t next_ = 0;
};

}  // namespace tenon::schema
