// exact_mod: the remainder of floats of any size, exactly, by integers. Used where the quotient is too large
// for a vector's arithmetic; the C library's fmod would do, but is another one on each machine.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tenon::cpu {

/// x - y * trunc(x / y), with the sign of x.
template <class T>
inline T exact_mod(T x, T y) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1), kHidden = Bits{1} << kMantissa;
  // How many binary places may be appended to a remainder before it leaves 64 bits.
  constexpr int kPlaces = 63 - kMantissa;
  if (!(std::abs(x) < std::numeric_limits<T>::infinity()) || y == 0 || y != y)
    return std::numeric_limits<T>::quiet_NaN();
  const Bits bits_x = std::bit_cast<Bits>(x), a = bits_x & ~kSign, b = std::bit_cast<Bits>(y) & ~kSign;
  if (a < b) return x;
  // A float is mantissa * 2^(exponent - c); denormals have exponent 1 without the hidden bit.
  const auto exponent = [](Bits v) { return static_cast<int>(v >> kMantissa) + ((v >> kMantissa) == 0); };
  const auto mantissa = [](Bits v) -> uint64_t {
    return (v & (kHidden - 1)) | ((v >> kMantissa) == 0 ? 0 : kHidden);
  };
  const uint64_t divisor = mantissa(b);
  uint64_t rest = mantissa(a) % divisor;
  for (int left = exponent(a) - exponent(b); left > 0 && rest != 0;) {
    const int places = left < kPlaces ? left : kPlaces;
    rest = (rest << places) % divisor;
    left -= places;
  }
  if (rest == 0) return std::bit_cast<T>(bits_x & kSign);
  // Below the divisor, so it fits the divisor's exponent or a smaller one.
  int e = exponent(b);
  const int up = std::countl_zero(rest) - (63 - kMantissa);
  const int shift = up < e - 1 ? up : e - 1;
  rest <<= shift;
  e -= shift;
  const Bits made = static_cast<Bits>(rest) < kHidden
                        ? static_cast<Bits>(rest)
                        : (static_cast<Bits>(rest) & (kHidden - 1)) | static_cast<Bits>(e) << kMantissa;
  return std::bit_cast<T>(made | (bits_x & kSign));
}

}  // namespace tenon::cpu
