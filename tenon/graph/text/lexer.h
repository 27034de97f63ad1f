// Lexer: a position in a graph's text, the tokens read from it, and errors that name line and column. Used by
// the parser alone.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace tenon::graph {

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { skip_space(); }

  bool at_end() const noexcept { return at_ == text_.size(); }
  size_t position() const noexcept { return at_; }
  bool peek(std::string_view token) const noexcept { return text_.substr(at_).starts_with(token); }
  /// Consumes `token`, punctuation, if it comes next.
  bool take(std::string_view token) noexcept {
    if (!peek(token)) return false;
    at_ += token.size();
    skip_space();
    return true;
  }
  /// Consumes it or fails.
  void expect(std::string_view token) {
    if (!take(token)) fail("expected '" + std::string(token) + "'");
  }
  /// Consumes a word (letters, digits and what `others` has) if one comes next; else empty.
  std::string_view word(std::string_view others = "_") noexcept;
  /// Consumes that word if it comes next.
  bool take_word(std::string_view wanted) noexcept;
  /// Consumes a whole number or a real one, or fails, naming what was expected.
  template <class T>
  T number(std::string_view what) {
    T value{};
    const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (read.ec != std::errc()) fail("expected " + std::string(what));
    at_ = static_cast<size_t>(read.ptr - text_.data());
    skip_space();
    return value;
  }
  /// Consumes a quoted text.
  std::string quoted();
  /// Consumes the rest of the line.
  std::string_view rest_of_line() noexcept;

  /// Throws Error{Value} "graph: line 3, column 14: ...", with the line below.
  [[noreturn]] void fail(const std::string& problem) const { fail_at(at_, problem); }
  [[noreturn]] void fail_at(size_t position, const std::string& problem) const;

 private:
  /// Skips white space, new lines and comments.
  void skip_space() noexcept;

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace tenon::graph
