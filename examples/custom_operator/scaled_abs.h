// scaled_abs: |self| * scale as an operator of the namespace `example`. Used by main.cc; Python loads the
// library.
#pragma once

#include <tenon/core/tensor.h>

namespace example {

/// |self| * scale, element by element. Shape: any; float32 or float64, the result is of the same dtype.
/// Throws Error{NotImplemented} for other dtypes, naming them.
tenon::Tensor scaled_abs(const tenon::Tensor& self, double scale = 1.0);

}  // namespace example
