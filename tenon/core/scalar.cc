#include "tenon/core/scalar.h"

#include "tenon/core/error.h"

namespace tenon {

void Scalar::throw_beyond_int64() {
  throw_error(ErrorKind::Value, "Scalar: an integer beyond int64 is no element of any dtype");
}

DType Scalar::dtype() const noexcept {
  switch (kind_) {
    case Kind::Bool:
      return DType::Bool;
    case Kind::Int:
      return DType::Int64;
    case Kind::Float:
      return default_dtype();
    case Kind::Complex:
      break;
  }
  return default_dtype() == DType::Float64 ? DType::Complex128 : DType::Complex64;
}

}  // namespace tenon
