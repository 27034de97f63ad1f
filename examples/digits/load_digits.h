// Reads the handwritten digits: a gzipped table of 64 pixels (0 to 16) and a label (0 to 9) in each row.
#pragma once

#include <tenon/tenon.h>

#include <string>

/// The whole file as tensors, and which of its rows train.
struct Digits {
  tenon::Tensor pixels;  ///< [N, 64] float32, scaled to 0 ... 1
  tenon::Tensor labels;  ///< [N] int64
};

/// Throws tenon::Error{Value}, naming file and line, for a file that is missing or malformed.
Digits load_digits(const std::string& path);
