// UTF-8 as Python's pickles have it, where lone surrogates are encoded like other characters. Of this room
// alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::io {

/// Where the first character begins that is not well-formed; the text's size where there is none. Lone
/// surrogates are permitted; longer forms than necessary and what is beyond U+10FFFF are not.
inline size_t first_not_utf8(std::string_view text) noexcept {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t i = 0;
  while (i < text.size()) {
    const unsigned char first = at(i);
    if (first < 0x80) {
      ++i;
      continue;
    }
    const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || length > text.size() - i) return i;
    for (size_t k = 1; k < length; ++k)
      if ((at(i + k) & 0xc0) != 0x80) return i;
    if ((first == 0xe0 && at(i + 1) < 0xa0) || (first == 0xf0 && at(i + 1) < 0x90) ||
        (first == 0xf4 && at(i + 1) >= 0x90))
      return i;
    i += length;
  }
  return i;
}

/// A text of a file as error messages show it: UTF-8 of at most about `most` bytes.
inline std::string shown(std::string_view text, size_t most = 120) {
  const bool is_cut = text.size() > most;
  text = text.substr(0, most);
  std::string out;
  while (!text.empty()) {
    const size_t good = first_not_utf8(text);
    out += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty() || (is_cut && text.size() < 4)) break;  // the end may be part of a character
    out += '?';
    text.remove_prefix(1);
  }
  return is_cut ? out + "..." : out;
}

}  // namespace tenon::io
