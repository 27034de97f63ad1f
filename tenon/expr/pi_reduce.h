// pi_reduce: large arguments of sin, cos and tan, less a multiple of pi/2.
// Used by printed kernels, one lane at a time, and only beyond the range that vectors reduce themselves.
#pragma once

namespace tenon::expr {

/// Kernels may skip the call for |x| up to here.
inline constexpr double kPiReduceFrom = 16384;

/// x - n * pi/2 for the nearest integer n, rounded (part 0), what that rounding lost (part 1), or n mod 4
/// (part 2). Exact to more bits than parts 0 and 1 hold (Payne and Hanek, 1983). NaN for infinities and NaN;
/// |x| at least 1.
double pi_reduce(double x, int part) noexcept;
float pi_reduce(float x, int part) noexcept;

}  // namespace tenon::expr
