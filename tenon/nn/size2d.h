// Size2d: what layers over images take for height and width.
#pragma once

#include <string>

#include "tenon/core/dims.h"

namespace tenon::nn {

/// One number for both, or {height, width}.
struct Size2d {
  Size2d(int64_t both) : height(both), width(both) {}
  Size2d(int64_t height, int64_t width) : height(height), width(width) {}

  Dims dims() const { return {height, width}; }
  friend bool operator==(const Size2d&, const Size2d&) = default;
  /// "(3, 5)"; `text` is "3" where both are 3. As Python prints layers.
  std::string pair_text() const { return "(" + std::to_string(height) + ", " + std::to_string(width) + ")"; }
  std::string text() const { return height == width ? std::to_string(height) : pair_text(); }

  int64_t height, width;
};

}  // namespace tenon::nn
