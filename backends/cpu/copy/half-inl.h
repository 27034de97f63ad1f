// Half types as float32, vector by vector, in integer arithmetic, which is the same everywhere: instructions
// that convert them differ in NaN. Included by kernel files on every pass of foreach_target.
#if defined(TENON_CPU_HALF_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_HALF_INL
#undef TENON_CPU_HALF_INL
#else
#define TENON_CPU_HALF_INL
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// float16 at `p`.
template <class D>
HWY_INLINE hn::Vec<D> load_float16(D df, const uint16_t* p) {
  const hn::RebindToSigned<D> d;
  const auto h = hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, D>(), p));
  const auto shifted = hn::ShiftLeft<13>(hn::And(h, hn::Set(d, 0x7FFF)));
  // The multiplication moves the exponent's bias and normalises denormals.
  const auto scaled = hn::BitCast(d, hn::Mul(hn::BitCast(df, shifted), hn::Set(df, 0x1p112f)));
  const auto special = hn::IfThenElseZero(hn::Gt(shifted, hn::Set(d, 0x0F7FFFFF)), hn::Set(d, 0x7F800000));
  const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(d, 0x8000)));
  return hn::BitCast(df, hn::Or(sign, hn::Or(scaled, special)));
}

/// bfloat16 at `p`.
template <class D>
HWY_INLINE hn::Vec<D> load_bfloat16(D df, const uint16_t* p) {
  const hn::RebindToUnsigned<D> d;
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, D>(), p))));
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
