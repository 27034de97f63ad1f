// switch_dtype: from a dtype at run time to a C++ type at compile time.
// Used by operators and kernels that move or compare elements of every dtype, half types included.
#pragma once

#include <string>

#include "tenon/core/dtype.h"
#include "tenon/core/error.h"
#include "tenon/core/half.h"

namespace tenon {

[[noreturn]] inline void unsupported_dtype(const char* op, DType dtype) {
  throw_error(ErrorKind::NotImplemented,
              std::string(op) + ": not implemented for " + std::string(name(dtype)));
}

/// Calls f.operator()<T>() with the element type of `dtype`: bool, integers, real floating types down to 16
/// bits.
template <class F>
decltype(auto) switch_dtype(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::Bool:
      return f.template operator()<bool>();
    case DType::UInt8:
      return f.template operator()<uint8_t>();
    case DType::Int8:
      return f.template operator()<int8_t>();
    case DType::Int16:
      return f.template operator()<int16_t>();
    case DType::Int32:
      return f.template operator()<int32_t>();
    case DType::Int64:
      return f.template operator()<int64_t>();
    case DType::Float16:
      return f.template operator()<Half>();
    case DType::BFloat16:
      return f.template operator()<BFloat16>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    default:
      unsupported_dtype(op, dtype);
  }
}

/// The same over the real floating types alone.
template <class F>
decltype(auto) switch_floating_dtype(DType dtype, const char* op, F&& f) {
  switch (dtype) {
    case DType::Float16:
      return f.template operator()<Half>();
    case DType::BFloat16:
      return f.template operator()<BFloat16>();
    case DType::Float32:
      return f.template operator()<float>();
    case DType::Float64:
      return f.template operator()<double>();
    default:
      unsupported_dtype(op, dtype);
  }
}

}  // namespace tenon
