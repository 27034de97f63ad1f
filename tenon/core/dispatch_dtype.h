// TENON_DISPATCH_*: a switch over dtypes that runs a lambda in which `scalar_t` is the C++ type of the
// elements. switch_dtype does the same for a lambda that takes the type as a template parameter. Used by the
// kernels of the library and of users. Knows no tensors; half.h has the element types.
#pragma once

#include "tenon/core/require_cxx20.h"

#include <string>
#include <utility>

#include "tenon/core/device.h"
#include "tenon/core/dtype.h"
#include "tenon/core/half.h"

namespace tenon {

/// "not implemented for float8_e5m2", which is so on the host too: on another device the text names both.
std::string not_implemented_for(DType dtype, Device device);

namespace detail {
template <DType t>
struct CppTypeOf;
#define TENON_CPP_TYPE(DTYPE, TYPE) \
  template <>                       \
  struct CppTypeOf<DType::DTYPE> {  \
    using type = TYPE;              \
  };
TENON_CPP_TYPE(Bool, bool)
TENON_CPP_TYPE(UInt8, uint8_t)
TENON_CPP_TYPE(Int8, int8_t)
TENON_CPP_TYPE(Int16, int16_t)
TENON_CPP_TYPE(Int32, int32_t)
TENON_CPP_TYPE(Int64, int64_t)
TENON_CPP_TYPE(UInt16, uint16_t)
TENON_CPP_TYPE(UInt32, uint32_t)
TENON_CPP_TYPE(UInt64, uint64_t)
TENON_CPP_TYPE(Float16, Half)
TENON_CPP_TYPE(BFloat16, BFloat16)
TENON_CPP_TYPE(Float32, float)
TENON_CPP_TYPE(Float64, double)
TENON_CPP_TYPE(Complex64, std::complex<float>)
TENON_CPP_TYPE(Complex128, std::complex<double>)
#undef TENON_CPP_TYPE

/// Throws Error{NotImplemented}: "scaled_abs: not implemented for int64, only for float32, float64".
[[noreturn]] void throw_unsupported_dtype(const char* op, DType got, const char* supported);
}  // namespace detail

/// The C++ type of the elements of a dtype: cpp_type<DType::Float16> is Half.
template <DType t>
using cpp_type = typename detail::CppTypeOf<t>::type;

}  // namespace tenon

#define TENON_DISPATCH_CASE(DTYPE, ...)                         \
  case DTYPE: {                                                 \
    using scalar_t [[maybe_unused]] = ::tenon::cpp_type<DTYPE>; \
    return __VA_ARGS__();                                       \
  }

/// The switch that the macros below fill with cases. The error for any other dtype names the operator,
/// `NAME`, and the supported dtypes, `SUPPORTED`.
#define TENON_DISPATCH_SWITCH(TYPE, NAME, SUPPORTED, CASES)                                         \
  [&] {                                                                                             \
    const ::tenon::DType dispatched_dtype_ = (TYPE);                                                \
    switch (dispatched_dtype_) {                                                                    \
      CASES default : ::tenon::detail::throw_unsupported_dtype(NAME, dispatched_dtype_, SUPPORTED); \
    }                                                                                               \
  }()

#define TENON_CASES_FLOATING(...)                           \
  TENON_DISPATCH_CASE(::tenon::DType::Float32, __VA_ARGS__) \
  TENON_DISPATCH_CASE(::tenon::DType::Float64, __VA_ARGS__)
#define TENON_CASES_INTEGRAL(...)                         \
  TENON_DISPATCH_CASE(::tenon::DType::UInt8, __VA_ARGS__) \
  TENON_DISPATCH_CASE(::tenon::DType::Int8, __VA_ARGS__)  \
  TENON_DISPATCH_CASE(::tenon::DType::Int16, __VA_ARGS__) \
  TENON_DISPATCH_CASE(::tenon::DType::Int32, __VA_ARGS__) \
  TENON_DISPATCH_CASE(::tenon::DType::Int64, __VA_ARGS__)

#define TENON_CASES_UNSIGNED(...)                          \
  TENON_DISPATCH_CASE(::tenon::DType::UInt16, __VA_ARGS__) \
  TENON_DISPATCH_CASE(::tenon::DType::UInt32, __VA_ARGS__) \
  TENON_DISPATCH_CASE(::tenon::DType::UInt64, __VA_ARGS__)

/// TENON_DISPATCH_FLOATING_TYPES(x.dtype(), "scaled_abs", [&] { ... scalar_t ... }): float32 and float64.
#define TENON_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  TENON_DISPATCH_SWITCH(TYPE, NAME, "float32, float64", TENON_CASES_FLOATING(__VA_ARGS__))
/// float32, float64 and two more dtypes: (DType::Float16, DType::BFloat16, x.dtype(), "op", lambda).
#define TENON_DISPATCH_FLOATING_TYPES_AND2(DTYPE1, DTYPE2, TYPE, NAME, ...)                        \
  TENON_DISPATCH_SWITCH(TYPE, NAME, "float32, float64, " #DTYPE1 ", " #DTYPE2,                     \
                        TENON_CASES_FLOATING(__VA_ARGS__) TENON_DISPATCH_CASE(DTYPE1, __VA_ARGS__) \
                            TENON_DISPATCH_CASE(DTYPE2, __VA_ARGS__))
/// uint8, int8, int16, int32, int64.
#define TENON_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  TENON_DISPATCH_SWITCH(TYPE, NAME, "uint8, int8, int16, int32, int64", TENON_CASES_INTEGRAL(__VA_ARGS__))
/// The integers, float32 and float64.
#define TENON_DISPATCH_ALL_TYPES(TYPE, NAME, ...)                                         \
  TENON_DISPATCH_SWITCH(TYPE, NAME, "uint8, int8, int16, int32, int64, float32, float64", \
                        TENON_CASES_INTEGRAL(__VA_ARGS__) TENON_CASES_FLOATING(__VA_ARGS__))
/// The integers, float32, float64 and one more dtype, such as DType::Bool.
#define TENON_DISPATCH_ALL_TYPES_AND(DTYPE, TYPE, NAME, ...)                                       \
  TENON_DISPATCH_SWITCH(TYPE, NAME, "uint8, int8, int16, int32, int64, float32, float64, " #DTYPE, \
                        TENON_CASES_INTEGRAL(__VA_ARGS__) TENON_CASES_FLOATING(__VA_ARGS__)        \
                            TENON_DISPATCH_CASE(DTYPE, __VA_ARGS__))
/// Every real dtype that is computed with: bool, the integers (the wider unsigned ones too), float16,
/// bfloat16, float32, float64.
#define TENON_DISPATCH_REAL_TYPES(TYPE, NAME, ...)                                             \
  TENON_DISPATCH_SWITCH(TYPE, NAME, "bool, the integers, float16, bfloat16, float32, float64", \
                        TENON_CASES_INTEGRAL(__VA_ARGS__) TENON_CASES_FLOATING(__VA_ARGS__)    \
                            TENON_CASES_UNSIGNED(__VA_ARGS__)                                  \
                                TENON_DISPATCH_CASE(::tenon::DType::Bool, __VA_ARGS__)         \
                                    TENON_DISPATCH_CASE(::tenon::DType::Float16, __VA_ARGS__)  \
                                        TENON_DISPATCH_CASE(::tenon::DType::BFloat16, __VA_ARGS__))

namespace tenon {

/// Whether T is std::complex<float> or std::complex<double>.
template <class T>
inline constexpr bool kIsComplex =
    std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>;

/// Calls f.operator()<T>() with the element type of `dtype`, one of TENON_DISPATCH_REAL_TYPES.
template <class F>
decltype(auto) switch_dtype(DType dtype, const char* op, F&& f) {
  return TENON_DISPATCH_REAL_TYPES(dtype, op,
                                   [&]() -> decltype(auto) { return f.template operator()<scalar_t>(); });
}

/// As switch_dtype, but also for std::complex<float> and std::complex<double>.
template <class F>
decltype(auto) switch_any_dtype(DType dtype, const char* op, F&& f) {
  if (dtype == DType::Complex64) return f.template operator()<std::complex<float>>();
  if (dtype == DType::Complex128) return f.template operator()<std::complex<double>>();
  return switch_dtype(dtype, op, std::forward<F>(f));
}

/// As switch_dtype, but for the real floating-point types alone.
template <class F>
decltype(auto) switch_floating_dtype(DType dtype, const char* op, F&& f) {
  return TENON_DISPATCH_FLOATING_TYPES_AND2(
      DType::Float16, DType::BFloat16, dtype, op,
      [&]() -> decltype(auto) { return f.template operator()<scalar_t>(); });
}

}  // namespace tenon
