// What comes before printed kernels: the language's names for what definitions.h asks for, and those
// definitions. Also the options with which sources must be compiled. Used by print_c.h; plug-ins include
// that.
#pragma once

#include <string>
#include <vector>

#include "tenon/abi/definitions.h"

namespace tenon::abi {

enum class Language : uint8_t { OpenCL, Cuda, C };

/// What of arithmetic a device has; what a language always has is not asked for.
struct Arithmetic {
  bool f64 = true;
  /// Quotients and square roots of f32 that are correctly rounded. Without them, they are computed in f64,
  /// which rounds to the same (Figueroa, When is double rounding innocuous?, 1995).
  bool f32_division = true;
};

/// The options that results with the same bits need; of Cuda those of NVRTC and nvcc.
inline std::vector<std::string> compiler_options(Language language, Arithmetic has = {}) {
  switch (language) {
    case Language::OpenCL:
      if (!has.f32_division) return {"-cl-std=CL1.2"};
      return {"-cl-std=CL1.2", "-cl-fp32-correctly-rounded-divide-sqrt"};
    case Language::Cuda:
      return {"-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-ftz=false"};
    default:
      return {"-std=c11", "-ffp-contract=off", "-fno-fast-math", "-fno-strict-aliasing"};
  }
}

namespace detail {

// clang-format off
inline constexpr char kOpenClTypes[] = R"(#pragma OPENCL FP_CONTRACT OFF
#define TENON_GLOBAL __global
#define TENON_TABLE __constant const
#define TENON_FUNCTION static inline
typedef char i8; typedef uchar u8; typedef short i16; typedef ushort u16;
typedef int i32; typedef uint u32; typedef long i64; typedef ulong u64; typedef float f32;
#define tenon_bits_f32(x) as_uint(x)
#define tenon_f32_of(x) as_float((uint)(x))
#define tenon_fma_f32 fma
#define tenon_fabs_f32 fabs
#define tenon_floor_f32 floor
#define tenon_ceil_f32 ceil
#define tenon_trunc_f32 trunc
#define tenon_rint_f32 rint
)";
inline constexpr char kOpenClDivision[] = R"(#define tenon_div_f32(x, y) ((x) / (y))
#define tenon_sqrt_f32 sqrt
)";
inline constexpr char kOpenClDivisionInDoubles[] =
    R"(#define tenon_div_f32(x, y) ((f32)((f64)(x) / (f64)(y)))
#define tenon_sqrt_f32(x) ((f32)sqrt((f64)(x)))
)";
inline constexpr char kOpenClDoubles[] = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#define tenon_bits_f64(x) as_ulong(x)
#define tenon_f64_of(x) as_double((ulong)(x))
#define tenon_div_f64(x, y) ((x) / (y))
#define tenon_fma_f64 fma
#define tenon_sqrt_f64 sqrt
#define tenon_fabs_f64 fabs
#define tenon_floor_f64 floor
#define tenon_ceil_f64 ceil
#define tenon_trunc_f64 trunc
#define tenon_rint_f64 rint
)";
inline constexpr char kCudaTypes[] = R"(#define TENON_GLOBAL
#define TENON_TABLE __device__ const
#define TENON_FUNCTION static __device__ __forceinline__
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
typedef float f32; typedef double f64;
#define tenon_bits_f32(x) __float_as_uint(x)
#define tenon_f32_of(x) __uint_as_float(x)
#define tenon_bits_f64(x) ((u64)__double_as_longlong(x))
#define tenon_f64_of(x) __longlong_as_double((i64)(x))
#define tenon_div_f32 __fdiv_rn
#define tenon_div_f64 __ddiv_rn
#define tenon_fma_f32 __fmaf_rn
#define tenon_fma_f64 __fma_rn
#define tenon_sqrt_f32 __fsqrt_rn
#define tenon_sqrt_f64 __dsqrt_rn
#define tenon_fabs_f32 fabsf
#define tenon_fabs_f64 fabs
#define tenon_floor_f32 floorf
#define tenon_floor_f64 floor
#define tenon_ceil_f32 ceilf
#define tenon_ceil_f64 ceil
#define tenon_trunc_f32 truncf
#define tenon_trunc_f64 trunc
#define tenon_rint_f32 rintf
#define tenon_rint_f64 rint
)";
inline constexpr char kCTypes[] = R"(#include <math.h>
#include <stdint.h>
#define TENON_GLOBAL
#define TENON_TABLE static const
#define TENON_FUNCTION static inline
typedef int8_t i8; typedef uint8_t u8; typedef int16_t i16; typedef uint16_t u16;
typedef int32_t i32; typedef uint32_t u32; typedef int64_t i64; typedef uint64_t u64;
typedef float f32; typedef double f64;
typedef union { f32 x; u32 bits; } tenon_f32_bits;
typedef union { f64 x; u64 bits; } tenon_f64_bits;
TENON_FUNCTION u32 tenon_bits_f32(f32 x) { tenon_f32_bits u; u.x = x; return u.bits; }
TENON_FUNCTION f32 tenon_f32_of(u32 x) { tenon_f32_bits u; u.bits = x; return u.x; }
TENON_FUNCTION u64 tenon_bits_f64(f64 x) { tenon_f64_bits u; u.x = x; return u.bits; }
TENON_FUNCTION f64 tenon_f64_of(u64 x) { tenon_f64_bits u; u.bits = x; return u.x; }
#define tenon_div_f32(x, y) ((x) / (y))
#define tenon_div_f64(x, y) ((x) / (y))
#define tenon_fma_f32 fmaf
#define tenon_fma_f64 fma
#define tenon_sqrt_f32 sqrtf
#define tenon_sqrt_f64 sqrt
#define tenon_fabs_f32 fabsf
#define tenon_fabs_f64 fabs
#define tenon_floor_f32 floorf
#define tenon_floor_f64 floor
#define tenon_ceil_f32 ceilf
#define tenon_ceil_f64 ceil
#define tenon_trunc_f32 truncf
#define tenon_trunc_f64 trunc
#define tenon_rint_f32 rintf
#define tenon_rint_f64 rint
)";
// clang-format on

}  // namespace detail

/// What a source of kernels begins with. Without `has.f64` it has nothing of doubles, for devices that refuse
/// them.
inline std::string print_prelude(Language language, Arithmetic has = {}) {
  std::string text = language == Language::OpenCL ? detail::kOpenClTypes
                     : language == Language::Cuda ? detail::kCudaTypes
                                                  : detail::kCTypes;
  if (language == Language::OpenCL) {
    if (has.f64) text += detail::kOpenClDoubles;
    text += has.f32_division ? detail::kOpenClDivision : detail::kOpenClDivisionInDoubles;
  }
  std::vector<const char*> definitions = {defined::kIntegers, defined::kHalves, defined::kFloats};
  if (has.f64) definitions.insert(definitions.end(), {defined::kDoubles, defined::kCircles});
  for (const char* d : definitions) text += std::string(d) + "\n";
  return text;
}

}  // namespace tenon::abi
