// Halves to floats and back without branches, for one element or for several lanes at a time.
// Used by convert.cc only; the same values as the conversions of tenon/core/half.h.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace tenon::cpu {

/// Four lanes, a register of every processor; the functions below take them or a single int32_t and float.
typedef int32_t Int4 __attribute__((vector_size(16)));
typedef float Float4 __attribute__((vector_size(16)));

/// Bits of a binary16 in the low half of `h` -> bits of the binary32.
template <class Int, class Float>
Int float_from_half(Int h) {
  const Int sign = (h & 0x8000) << 16;
  const Int shifted = (h & 0x7FFF) << 13;
  // The multiplication moves the exponent's bias and normalises denormals.
  const Int scaled = std::bit_cast<Int>(std::bit_cast<Float>(shifted) * 0x1p112f);
  const Int special = shifted >= 0x0F800000 ? Int{} + 0x7F800000 : Int{};
  return sign | scaled | special;
}

/// Bits of a binary32 -> bits of the nearest binary16, ties to even. The sign bit's copies above bit 15 are
/// to be cut.
template <class Int, class Float>
Int half_from_float(Int f) {
  const Int magnitude = f & 0x7FFFFFFF;
  // Below the smallest normal the addition aligns the mantissa and rounds in the last place of a half.
  const Int tiny = std::bit_cast<Int>(std::bit_cast<Float>(magnitude) + 0.5f) - std::bit_cast<int32_t>(0.5f);
  const Int normal = (magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  Int h = magnitude < 0x38800000 ? tiny : normal;
  h = magnitude >= 0x477FF000 ? Int{} + 0x7C00 : h;
  h = magnitude > 0x7F800000 ? Int{} + 0x7E00 : h;
  return h | ((f >> 16) & 0x8000);
}

/// Bits of a binary32 -> bits of the nearest bfloat16, ties to even; a NaN stays one. The low 16 bits count.
template <class Int, class Float>
Int bfloat16_from_float(Int f) {
  const Int kept = f & 0x7FFFFFFF;
  const Int odd = (kept >> 16) & 1;
  const Int rounded = (kept >> 16) + (((kept & 0xFFFF) + 0x7FFF + odd) >> 16);
  const Int bits = kept > 0x7F800000 ? (kept >> 16) | 0x40 : rounded;
  return bits | ((f >> 16) & 0x8000);
}

/// Calls `f` on the bits of 16 elements, four lanes at a time.
template <class F>
void map16(int32_t (&bits)[16], F f) {
  for (int i = 0; i < 16; i += 4) {
    Int4 lanes;
    std::memcpy(&lanes, bits + i, sizeof lanes);
    lanes = f(lanes);
    std::memcpy(bits + i, &lanes, sizeof lanes);
  }
}

/// 16 floats from 16 halves: a loop that compilers turn into vectors as it is.
template <bool kBrain>
void floats_from_halves(float (&out)[16], const uint16_t (&in)[16]) {
  for (int k = 0; k < 16; ++k) {
    const int32_t h = in[k];
    out[k] = std::bit_cast<float>(kBrain ? h << 16 : float_from_half<int32_t, float>(h));
  }
}
/// 16 halves from 16 floats.
template <bool kBrain>
void halves_from_floats(uint16_t (&out)[16], const float (&in)[16]) {
  int32_t bits[16];
  std::memcpy(bits, in, sizeof bits);
  map16(bits, [](Int4 f) {
    return kBrain ? bfloat16_from_float<Int4, Float4>(f) : half_from_float<Int4, Float4>(f);
  });
  for (int k = 0; k < 16; ++k) out[k] = static_cast<uint16_t>(bits[k]);
}

}  // namespace tenon::cpu
