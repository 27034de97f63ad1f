// The check of a list of tensors that an operator joins. Used by what takes a TensorList and by shape
// functions of such operators.
#pragma once

#include <fmt/core.h>

#include "tenon/core/error.h"

namespace tenon::ops {

/// Throws Error{Type} where one of the tensors, or of their headers, is undefined.
template <class Tensors>
void check_defined(const Tensors& tensors, const char* op) {
  for (const auto& t : tensors) {
    TENON_CHECK(t.defined(), Type,
                fmt::format("{}: expected tensors, got an undefined one (None in Python)", op));
  }
}

}  // namespace tenon::ops
