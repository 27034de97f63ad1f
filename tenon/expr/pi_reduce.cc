#include "tenon/expr/pi_reduce.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon::expr {

namespace {

using u128 = unsigned __int128;

// 2 / pi in binary, most significant word first, after two words of zeros for arguments whose last bit is
// below 1.
constexpr uint64_t kTwoOverPi[] = {
    0,
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
};

struct Reduced {
  double hi, lo;
  int quadrant;
};

// 64 bits of the table from bit `from` (the first of kTwoOverPi is bit 0).
uint64_t bits_from(int from) {
  const int word = from / 64, shift = from % 64;
  const uint64_t high = kTwoOverPi[word] << shift;
  return shift == 0 ? high : high | kTwoOverPi[word + 1] >> (64 - shift);
}

// 2^exponent, of a normal number.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

Reduced reduce(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1075;  // |x| = mantissa * 2^exponent
  const uint64_t mantissa = (bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  // Bits of 2/pi before weight 2^(1 - exponent) contribute multiples of 4. Of the 192 after it, the product's
  // low 192 bits are x * 2/pi mod 4, two bits before the point.
  const int first = 128 + exponent - 2;
  const uint64_t w2 = bits_from(first), w1 = bits_from(first + 64), w0 = bits_from(first + 128);
  const u128 low = u128{w0} * mantissa;
  const u128 middle = u128{w1} * mantissa + static_cast<uint64_t>(low >> 64);
  uint64_t p0 = static_cast<uint64_t>(low), p1 = static_cast<uint64_t>(middle);
  uint64_t p2 = w2 * mantissa + static_cast<uint64_t>(middle >> 64);
  int quadrant = static_cast<int>(p2 >> 62);
  p2 &= ~uint64_t{0} >> 2;
  const bool above_half = (p2 >> 61) != 0;
  if (above_half) {  // nearest: fraction - 1, as a magnitude
    ++quadrant;
    p0 = ~p0 + 1;
    p1 = ~p1 + (p0 == 0);
    p2 = ((uint64_t{1} << 62) - 1 - p2) + (p0 == 0 && p1 == 0);
  }
  // Normalise to 128 bits after the leading one, then to three doubles without loss.
  int shift = 0;
  while (p2 >> 62 == 0 && shift < 128) {
    const int step = p2 == 0 ? 62 : std::countl_zero(p2) - 1;
    p2 = p2 << step | p1 >> (64 - step);
    p1 = p1 << step | p0 >> (64 - step);
    p0 <<= step;
    shift += step;
  }
  const u128 top = u128{p2} << 64 | p1;
  const double a = static_cast<double>(static_cast<uint64_t>(top >> 79)) * power_of_two(-47 - shift);
  const double b = static_cast<double>(static_cast<uint64_t>(top >> 31) & ((uint64_t{1} << 48) - 1)) *
                   power_of_two(-95 - shift);
  const double c = static_cast<double>(static_cast<uint64_t>(top) & ((uint64_t{1} << 31) - 1)) *
                   power_of_two(-126 - shift);
  const double sum = a + b, rest = (b - (sum - a)) + c;
  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
  const double r = sum * kHalfPi;
  const double r_low = std::fma(sum, kHalfPi, -r) + (sum * kHalfPiLow + rest * kHalfPi);
  const double hi = r + r_low, lo = r_low - (hi - r);
  const bool negate = above_half != std::signbit(x);
  return {negate ? -hi : hi, negate ? -lo : lo, (std::signbit(x) ? -quadrant : quadrant) & 3};
}

// Callers that are compiled for size leave the upper halves of vector registers in use. Every SSE instruction
// below would wait for them.
void free_upper_halves() {
#ifdef __x86_64__
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) asm volatile("vzeroupper");
#endif
}

}  // namespace

double pi_reduce(double x, int part) noexcept {
  free_upper_halves();
  if (!std::isfinite(x)) return std::numeric_limits<double>::quiet_NaN();
  if (!(std::abs(x) >= 1)) return 0;
  const Reduced r = reduce(x);
  return part == 0 ? r.hi : part == 1 ? r.lo : r.quadrant;
}

// A float's 24 bits need one window of 128 bits of 2/pi, two of them before the product's point. No float is
// nearer than 2^-30 to a multiple of pi/2, so that more digits are left than two floats hold.
float pi_reduce(float x, int part) noexcept {
  free_upper_halves();
  if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
  if (!(std::abs(x) >= 1)) return 0;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const int exponent = static_cast<int>(bits >> 23 & 0xFF) - 150;  // |x| = mantissa * 2^exponent
  const uint64_t mantissa = (bits & 0x7FFFFF) | 0x800000;
  const int first = 128 + exponent - 2;
  const u128 low = u128{bits_from(first + 64)} * mantissa;
  const uint64_t high = bits_from(first) * mantissa + static_cast<uint64_t>(low >> 64);
  // x * 2/pi mod 4, two bits before the point: the nearest integer, and what is left as a signed fraction.
  const int quadrant = static_cast<int>((high + (uint64_t{1} << 61)) >> 62);
  if (part == 2) return static_cast<float>((std::signbit(x) ? -quadrant : quadrant) & 3);
  const auto fraction = static_cast<int64_t>(high << 2 | static_cast<uint64_t>(low) >> 62);
  const auto beyond = static_cast<int64_t>((static_cast<uint64_t>(low) & ~uint64_t{0} >> 2) << 1);
  const double turn = static_cast<double>(fraction) * 0x1p-64 + static_cast<double>(beyond) * 0x1p-127;
  const double rest = turn * 0x1.921fb54442d18p+0;
  const double r = std::signbit(x) ? -rest : rest;
  const float hi = static_cast<float>(r);
  return part == 0 ? hi : static_cast<float>(r - hi);
}

}  // namespace tenon::expr
