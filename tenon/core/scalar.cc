#include "tenon/core/scalar.h"

namespace tenon {

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
