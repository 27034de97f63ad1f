// The operations of programs that no language has built in, defined once: as functions of C++ for the
// evaluator, and as the text of the same functions for printers. Used by program.h and print_c.h.
//
// TENON_DEFINE(text, code) defines the code, and `text` as its source. The code is a subset of C, C++, OpenCL
// C and CUDA C++: its types are i8 to u64, f32 and f64, and TENON_FUNCTION begins a function. What it asks of
// a language is the bits of floats, fused multiply-add and nothing else.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace tenon::abi::defined {

using i8 = int8_t;
using u8 = uint8_t;
using i16 = int16_t;
using u16 = uint16_t;
using i32 = int32_t;
using u32 = uint32_t;
using i64 = int64_t;
using u64 = uint64_t;
using f32 = float;
using f64 = double;

template <class To, class From>
To tenon_same_bits(From from) noexcept {
  static_assert(sizeof(To) == sizeof(From), "bits of one width");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline u32 tenon_bits_f32(f32 x) noexcept { return tenon_same_bits<u32>(x); }
inline f32 tenon_f32_of(u32 bits) noexcept { return tenon_same_bits<f32>(bits); }
inline u64 tenon_bits_f64(f64 x) noexcept { return tenon_same_bits<u64>(x); }
inline f64 tenon_f64_of(u64 bits) noexcept { return tenon_same_bits<f64>(bits); }
inline f64 tenon_fma_f64(f64 x, f64 y, f64 z) noexcept { return std::fma(x, y, z); }

#define TENON_DEFINE(text, ...) __VA_ARGS__ inline constexpr char text[] = #__VA_ARGS__;
#define TENON_FUNCTION inline
#define TENON_TABLE inline constexpr

// Integers, and what f32 and the half types need of them. Operations of i32 are those of i64, which wrap to
// the same.
// clang-format off
TENON_DEFINE(kIntegers,
  TENON_FUNCTION i64 tenon_trunc_div(i64 x, i64 y) {
    return y == 0 ? 0 : y == -1 ? (i64)(0 - (u64)x) : x / y;
  }
  TENON_FUNCTION i64 tenon_mod(i64 x, i64 y) { return y == 0 || y == -1 ? 0 : x % y; }
  TENON_FUNCTION i64 tenon_int_pow(i64 x, i64 y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
    u64 power = 1;
    u64 base = (u64)x;
    for (u64 left = (u64)y; left != 0; left >>= 1) {
      if ((left & 1) != 0) power *= base;
      base *= base;
    }
    return (i64)power;
  }
  TENON_FUNCTION u64 tenon_high_mul(u64 a, u64 b) {
    const u64 a0 = a & 0xFFFFFFFFu;
    const u64 a1 = a >> 32;
    const u64 b0 = b & 0xFFFFFFFFu;
    const u64 b1 = b >> 32;
    const u64 middle = a1 * b0 + (a0 * b0 >> 32);
    const u64 rest = a0 * b1 + (middle & 0xFFFFFFFFu);
    return a1 * b1 + (middle >> 32) + (rest >> 32);
  }
)

// Of half types: by way of f32, to nearest even; below the smallest normal half the addition of 0.5 aligns the
// mantissa and rounds in the last place.
TENON_DEFINE(kHalves,
  TENON_FUNCTION f32 tenon_half_to_f32(u32 h) {
    const u32 sign = (h & 0x8000u) << 16;
    const u32 exponent = h >> 10 & 0x1Fu;
    const u32 mantissa = h & 0x3FFu;
    if (exponent == 0x1Fu) return tenon_f32_of(sign | 0x7F800000u | mantissa << 13);
    if (exponent == 0) return tenon_f32_of(sign | tenon_bits_f32((f32)mantissa * 5.9604644775390625e-8f));
    return tenon_f32_of(sign | (exponent + 112u) << 23 | mantissa << 13);
  }
  TENON_FUNCTION u32 tenon_f32_to_half(f32 x) {
    const u32 bits = tenon_bits_f32(x);
    const u32 sign = bits >> 16 & 0x8000u;
    const u32 magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return sign | 0x7E00u;
    if (magnitude >= 0x477FF000u) return sign | 0x7C00u;
    if (magnitude < 0x38800000u) return sign | (tenon_bits_f32(tenon_f32_of(magnitude) + 0.5f) - 0x3F000000u);
    return sign | (magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1u)) >> 13;
  }
  TENON_FUNCTION f32 tenon_bfloat16_to_f32(u32 h) { return tenon_f32_of(h << 16); }
  TENON_FUNCTION u32 tenon_f32_to_bfloat16(f32 x) {
    const u32 bits = tenon_bits_f32(x);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bits >> 16 | 0x40u;
    return (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  }
)

// |x| mod |y| as bits without signs, by long division of the mantissas, which have `places` bits after the
// point; a is not below b, and b not 0.
TENON_DEFINE(kFloats,
  TENON_FUNCTION i64 tenon_f32_to_i64(f32 x) {
    return x >= -9223372036854775808.0f && x < 9223372036854775808.0f ? (i64)x : (i64)0x8000000000000000;
  }
  TENON_FUNCTION u64 tenon_mod_of_bits(u64 a, u64 b, i32 places) {
    const u64 hidden = (u64)1 << places;
    const i32 exponent_a = (i32)(a >> places);
    i32 exponent = (i32)(b >> places);
    const u64 dividend = (a & (hidden - 1)) | (exponent_a == 0 ? 0 : hidden);
    const u64 divisor = (b & (hidden - 1)) | (exponent == 0 ? 0 : hidden);
    if (exponent == 0) exponent = 1;
    u64 rest = dividend % divisor;
    i32 left = (exponent_a == 0 ? 1 : exponent_a) - exponent;
    while (left > 0 && rest != 0) {
      const i32 step = left < 63 - places ? left : 63 - places;
      rest = (rest << step) % divisor;
      left -= step;
    }
    if (rest == 0) return 0;
    while (rest < hidden && exponent > 1) {
      rest <<= 1;
      exponent -= 1;
    }
    return rest < hidden ? rest : (rest & (hidden - 1)) | (u64)exponent << places;
  }
  TENON_FUNCTION f32 tenon_fmod_f32(f32 x, f32 y) {
    const u32 sign = tenon_bits_f32(x) & 0x80000000u;
    const u32 a = tenon_bits_f32(x) & 0x7FFFFFFFu;
    const u32 b = tenon_bits_f32(y) & 0x7FFFFFFFu;
    if (a >= 0x7F800000u || b == 0 || b > 0x7F800000u) return tenon_f32_of(0x7FC00000u);
    return a < b ? x : tenon_f32_of(sign | (u32)tenon_mod_of_bits(a, b, 23));
  }
)

TENON_DEFINE(kDoubles,
  TENON_FUNCTION i64 tenon_f64_to_i64(f64 x) {
    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (i64)x : (i64)0x8000000000000000;
  }
  TENON_FUNCTION f64 tenon_fmod_f64(f64 x, f64 y) {
    const u64 sign = tenon_bits_f64(x) & 0x8000000000000000;
    const u64 a = tenon_bits_f64(x) & 0x7FFFFFFFFFFFFFFF;
    const u64 b = tenon_bits_f64(y) & 0x7FFFFFFFFFFFFFFF;
    if (a >= 0x7FF0000000000000 || b == 0 || b > 0x7FF0000000000000) return tenon_f64_of(0x7FF8000000000000);
    return a < b ? x : tenon_f64_of(sign | tenon_mod_of_bits(a, b, 52));
  }
)

// Payne and Hanek, Radian Reduction for Trigonometric Functions (1983). The table is 2 / pi in binary, after
// two words of zeros for arguments whose last bit is below 1. What is before the window of bits that is
// multiplied contributes multiples of 4, two bits of the product are before its point, and the rest of it is
// what is left of x, in units of pi / 2.
TENON_DEFINE(kCircles,
  TENON_TABLE u64 tenon_two_over_pi[22] = {
      0, 0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
      0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41,
      0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
      0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab,
      0xf0cfbc209af4361d};
  TENON_FUNCTION u64 tenon_two_over_pi_from(i32 bit) {
    const u64 high = tenon_two_over_pi[bit / 64] << bit % 64;
    return bit % 64 == 0 ? high : high | tenon_two_over_pi[bit / 64 + 1] >> (64 - bit % 64);
  }
  TENON_FUNCTION f64 tenon_power_of_two(i32 exponent) { return tenon_f64_of((u64)(exponent + 1023) << 52); }

  TENON_FUNCTION f32 tenon_pi_reduce_f32(f32 x, i32 part) {
    const u32 bits = tenon_bits_f32(x);
    if ((bits & 0x7FFFFFFFu) >= 0x7F800000u) return tenon_f32_of(0x7FC00000u);
    if (x >= -16384.0f && x <= 16384.0f) return 0.0f;
    const i32 first = 126 + (i32)(bits >> 23 & 0xFFu) - 150;
    const u64 mantissa = (bits & 0x7FFFFFu) | 0x800000u;
    const u64 next = tenon_two_over_pi_from(first + 64);
    const u64 low = next * mantissa;
    const u64 high = tenon_two_over_pi_from(first) * mantissa + tenon_high_mul(next, mantissa);
    const i32 quadrant = (i32)((high + ((u64)1 << 61)) >> 62);
    if (part == 2) return (f32)((bits >> 31 != 0 ? -quadrant : quadrant) & 3);
    const i64 fraction = (i64)(high << 2 | low >> 62);
    const i64 beyond = (i64)((low & 0x3FFFFFFFFFFFFFFF) << 1);
    const f64 turn = (f64)fraction * tenon_power_of_two(-64) + (f64)beyond * tenon_power_of_two(-127);
    const f64 rest = turn * tenon_f64_of(0x3FF921FB54442D18);
    const f64 signed_rest = bits >> 31 != 0 ? -rest : rest;
    const f32 nearest = (f32)signed_rest;
    return part == 0 ? nearest : (f32)(signed_rest - (f64)nearest);
  }

  TENON_FUNCTION f64 tenon_pi_reduce_f64(f64 x, i32 part) {
    const u64 bits = tenon_bits_f64(x);
    if ((bits & 0x7FFFFFFFFFFFFFFF) >= 0x7FF0000000000000) return tenon_f64_of(0x7FF8000000000000);
    if (x >= -16384.0 && x <= 16384.0) return 0.0;
    const i32 negative = (i32)(bits >> 63);
    const i32 first = 126 + (i32)(bits >> 52 & 0x7FFu) - 1075;
    const u64 mantissa = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000;
    const u64 w1 = tenon_two_over_pi_from(first + 64);
    const u64 w0 = tenon_two_over_pi_from(first + 128);
    const u64 carried = tenon_high_mul(w0, mantissa);
    u64 p0 = w0 * mantissa;
    u64 p1 = w1 * mantissa + carried;
    u64 p2 = tenon_two_over_pi_from(first) * mantissa + tenon_high_mul(w1, mantissa) + (p1 < carried ? 1 : 0);
    i32 quadrant = (i32)(p2 >> 62);
    p2 &= 0x3FFFFFFFFFFFFFFF;
    const i32 above_half = (i32)(p2 >> 61);
    if (above_half != 0) {
      quadrant += 1;
      p0 = 0 - p0;
      p1 = 0 - p1 - (p0 != 0 ? 1 : 0);
      p2 = 0x3FFFFFFFFFFFFFFF - p2 + (p0 == 0 && p1 == 0 ? 1 : 0);
    }
    if (part == 2) return (f64)((negative != 0 ? -quadrant : quadrant) & 3);
    i32 shift = 0;
    while (p2 >> 62 == 0 && shift < 128) {
      p2 = p2 << 1 | p1 >> 63;
      p1 = p1 << 1 | p0 >> 63;
      p0 <<= 1;
      shift += 1;
    }
    const f64 a = (f64)(p2 >> 15) * tenon_power_of_two(-47 - shift);
    const f64 b = (f64)((p2 << 33 | p1 >> 31) & 0xFFFFFFFFFFFF) * tenon_power_of_two(-95 - shift);
    const f64 c = (f64)(p1 & 0x7FFFFFFF) * tenon_power_of_two(-126 - shift);
    const f64 sum = a + b;
    const f64 lost = (b - (sum - a)) + c;
    const f64 half_pi = tenon_f64_of(0x3FF921FB54442D18);
    const f64 half_pi_low = tenon_f64_of(0x3C91A62633145C07);
    const f64 product = sum * half_pi;
    const f64 low = tenon_fma_f64(sum, half_pi, -product) + (sum * half_pi_low + lost * half_pi);
    const f64 nearest = product + low;
    const f64 result = part == 0 ? nearest : low - (nearest - product);
    return (above_half != 0) != (negative != 0) ? -result : result;
  }
)
// clang-format on

#undef TENON_TABLE
#undef TENON_FUNCTION
#undef TENON_DEFINE

}  // namespace tenon::abi::defined
