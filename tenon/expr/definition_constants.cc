#include "tenon/expr/definition_constants.h"

namespace tenon::expr {

namespace {

constexpr Literal whole(int64_t value) { return {.integer = true, .i = value}; }
constexpr Literal real(double value) { return {.integer = false, .d = value}; }

// `_low` is what its neighbour leaves of the true value; `_short` ones have enough zero bits at the end that
// a product with any exponent is exact.
constexpr DefinitionConstant kConstants[] = {
    // The format.
    {"mantissa_bits", whole(23), whole(52)},
    {"bias", whole(127), whole(1023)},
    {"mantissa_mask", whole(0x007fffff), whole(0x000fffffffffffff)},
    {"magnitude_mask", whole(0x7fffffff), whole(0x7fffffffffffffff)},
    {"sign_mask", whole(0x80000000), whole(INT64_MIN)},
    {"smallest_normal", real(0x1p-126), real(0x1p-1022)},
    // Where squares leave the finite and the normal numbers, and what brings them back.
    {"square_above", real(0x1p+60), real(0x1p+500)},
    {"square_below", real(0x1p-60), real(0x1p-500)},
    {"square_shrink", real(0x1p-70), real(0x1p-530)},
    {"square_grow", real(0x1p+90), real(0x1p+600)},
    // Makes denormals normal.
    {"denormal_scale", real(0x1p+25), real(0x1p+54)},
    {"denormal_exponent", whole(-25), whole(-54)},
    // 1.5 * 2^mantissa_bits: added, it leaves the nearest integer in the low bits.
    {"rounder", real(0x1.8p+23), real(0x1.8p+52)},
    {"rounder_bits", whole(0x4b400000), whole(0x4338000000000000)},
    {"rounder_plus_bias", real(12583039.0), real(6755399441056767.0)},
    // The bits of sqrt(1/2), and of 1 less those.
    {"sqrt_half_bits", whole(0x3f3504f3), whole(0x3fe6a09e667f3bcd)},
    {"above_sqrt_half", whole(0x004afb0d), whole(0x00095f619980c433)},
    // Where exp and 2^x leave the finite and the nonzero numbers, rounded outward.
    {"exp_above", real(89.0), real(710.0)},
    {"exp_below", real(-104.0), real(-746.0)},
    {"exp2_above", real(128.0), real(1024.0)},
    {"exp2_below", real(-151.0), real(-1076.0)},
    {"expm1_below", real(-18.0), real(-40.0)},
    {"erf_above", real(4.0), real(6.0)},
    // Beyond, erfc and the normal distribution's tail round to 0.
    {"erfc_below", real(11.0), real(28.0)},
    {"normal_below", real(16.0), real(40.0)},
    // e^(x^2) * erfc(x) at 1, and e^(x^2/2) times the normal distribution's tail at 1.5, both in one number.
    {"erfc_middle", real(0x1.b5d878p-2), real(0x1.b5d8780f956b2p-2)},
    {"tail_middle", real(0x1.a57056p-3), real(0x1.a5705596892b7p-3)},
    // 2 * sqrt(2/pi) and 0.044715.
    {"gelu_slope", real(0x1.9884540000000p+0), real(0x1.9884533d43651p+0)},
    {"gelu_slope_low", real(-0x1.8579360000000p-25), real(-0x1.cbc0d30ebfd15p-54)},
    {"gelu_cubic", real(0x1.6e4e260000000p-5), real(0x1.6e4e26d4801f7p-5)},
    {"gelu_cubic_low", real(0x1.a9003e0000000p-30), real(0x1.441355475a31ap-59)},
    // Logarithms.
    {"log2_e", real(0x1.715476p+0), real(0x1.71547652b82fep+0)},
    {"log2_e_low", real(0x1.4ae0cp-26), real(0x1.777d0ffda0d24p-56)},
    {"ln_2_short", real(0x1.62e4p-1), real(0x1.62e42fefa38p-1)},
    {"ln_2_short_low", real(0x1.7f7d1cp-20), real(0x1.ef35793c7673p-45)},
    {"log10_e", real(0x1.bcb7b2p-2), real(0x1.bcb7b1526e50ep-2)},
    {"log10_e_low", real(-0x1.5b235ep-27), real(0x1.95355baaafad3p-57)},
    {"log10_2_short", real(0x1.344p-2), real(0x1.34413509f78p-2)},
    {"log10_2_short_low", real(0x1.3509f8p-18), real(0x1.fef311f12b358p-46)},
    {"two_thirds", real(0x1.555556p-1), real(0x1.5555555555555p-1)},
    {"two_thirds_low", real(-0x1.555556p-26), real(0x1.5555555555555p-55)},
    // Circles: pi/2 in three parts, each the nearest number to what the others leave.
    {"two_over_pi", real(0x1.45f306p-1), real(0x1.45f306dc9c883p-1)},
    {"half_pi", real(0x1.921fb6p+0), real(0x1.921fb54442d18p+0)},
    {"half_pi_low", real(-0x1.777a5cp-25), real(0x1.1a62633145c07p-54)},
    {"half_pi_rest", real(-0x1.ee59dap-50), real(-0x1.f1976b7ed8fbcp-110)},
    // Up to here sin and its kind reduce in vectors; no more than kPiReduceFrom of
    // tenon/expr/pi_reduce.h
    // may be below it.
    {"circle_bound", real(20000.0), real(131072.0)},
    {"two_over_sqrt_pi", real(0x1.20dd76p+0), real(0x1.20dd750429b6dp+0)},
    {"two_over_sqrt_pi_low", real(-0x1.f7ac92p-25), real(0x1.1ae3a914fed8p-56)},
};

}  // namespace

std::span<const DefinitionConstant> definition_constants() noexcept { return kConstants; }

}  // namespace tenon::expr
