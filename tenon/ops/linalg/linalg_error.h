// LinAlgError: what operators of linear algebra throw for matrices that have no factorization, inverse or
// spectrum. Used by their kernels and bodies, and by Python, whose exception of the name it is.
#pragma once

#include "tenon/core/error.h"

namespace tenon {

/// A matrix is singular or not positive definite, or an iteration did not converge. In Python a RuntimeError.
/// A text that begins with a colon gets the name of the called operator (Error::set_operator).
class LinAlgError : public Error {
 public:
  explicit LinAlgError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

}  // namespace tenon
