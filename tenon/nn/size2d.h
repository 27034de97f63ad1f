// Size2d: what layers over images take for height and width.
#pragma once

#include "tenon/core/dims.h"

namespace tenon::nn {

/// One number for both, or {height, width}.
struct Size2d {
  Size2d(int64_t both) : height(both), width(both) {}
  Size2d(int64_t height, int64_t width) : height(height), width(width) {}

  Dims dims() const { return {height, width}; }

  int64_t height, width;
};

}  // namespace tenon::nn
