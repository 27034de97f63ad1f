// Half types as float32, vector by vector: by instructions where there are some and they give the same bits,
// else in integer arithmetic. Included by kernel files on every pass of foreach_target.
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

#undef TENON_NATIVE_FLOAT16
#define TENON_NATIVE_FLOAT16 (HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86)

/// float16 at `p`, with the bits of every NaN.
template <class D>
HWY_INLINE hn::Vec<D> load_float16_exactly(D df, const uint16_t* p) {
#if TENON_NATIVE_FLOAT16
  const auto v = hn::PromoteTo(
      df, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), hn::LoadU(hn::Rebind<uint16_t, D>(), p)));
  if (HWY_LIKELY(hn::AllTrue(df, hn::Eq(v, v)))) return v;
#endif
  const hn::RebindToSigned<D> d;
  const auto h = hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, D>(), p));
  const auto shifted = hn::ShiftLeft<13>(hn::And(h, hn::Set(d, 0x7FFF)));
  // The multiplication moves the exponent's bias and normalises denormals.
  const auto scaled = hn::BitCast(d, hn::Mul(hn::BitCast(df, shifted), hn::Set(df, 0x1p112f)));
  const auto special = hn::IfThenElseZero(hn::Gt(shifted, hn::Set(d, 0x0F7FFFFF)), hn::Set(d, 0x7F800000));
  const auto sign = hn::ShiftLeft<16>(hn::And(h, hn::Set(d, 0x8000)));
  return hn::BitCast(df, hn::Or(sign, hn::Or(scaled, special)));
}

/// float16 at `p` for arithmetic: where there is an instruction it makes a signalling NaN a quiet one, as the
/// first operation would.
template <class D>
HWY_INLINE hn::Vec<D> load_float16(D df, const uint16_t* p) {
#if TENON_NATIVE_FLOAT16
  return hn::PromoteTo(df,
                       hn::BitCast(hn::Rebind<hwy::float16_t, D>(), hn::LoadU(hn::Rebind<uint16_t, D>(), p)));
#else
  return load_float16_exactly(df, p);
#endif
}

/// bfloat16 at `p`.
template <class D>
HWY_INLINE hn::Vec<D> load_bfloat16(D df, const uint16_t* p) {
  const hn::RebindToUnsigned<D> d;
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(hn::Rebind<uint16_t, D>(), p))));
}

/// Stores float16, rounded to the nearest, ties to even; there is one NaN of each sign.
template <class D>
HWY_INLINE void store_float16(D df, hn::Vec<D> v, uint16_t* p) {
  const hn::Rebind<uint16_t, D> d16;
#if TENON_NATIVE_FLOAT16
  const auto nan = hn::CopySign(hn::BitCast(df, hn::Set(hn::RebindToUnsigned<D>(), 0x7FC00000u)), v);
  const auto known = hn::IfThenElse(hn::Eq(v, v), v, nan);
  hn::StoreU(hn::BitCast(d16, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), known)), d16, p);
#else
  const hn::RebindToSigned<D> d;
  const hn::RebindToUnsigned<D> du;
  const auto f = hn::BitCast(d, v);
  const auto magnitude = hn::And(f, hn::Set(d, 0x7FFFFFFF));
  // Below the smallest normal the addition aligns the mantissa and rounds in the last place of a half.
  const auto half = hn::Set(df, 0.5f);
  const auto tiny = hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(d, half));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, odd), hn::Set(d, 0xFFF - 0x38000000)));
  auto h = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000)), tiny, normal);
  h = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x477FEFFF)), hn::Set(d, 0x7C00), h);
  h = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000)), hn::Set(d, 0x7E00), h);
  h = hn::Or(h, hn::And(hn::ShiftRight<16>(f), hn::Set(d, 0x8000)));
  hn::StoreU(hn::TruncateTo(d16, hn::BitCast(du, h)), d16, p);
#endif
}

/// Stores bfloat16, rounded to the nearest, ties to even; a NaN keeps its upper bits and is quiet.
template <class D>
HWY_INLINE void store_bfloat16(D df, hn::Vec<D> v, uint16_t* p) {
  const hn::RebindToUnsigned<D> d;
  const hn::Rebind<uint16_t, D> d16;
  const auto f = hn::BitCast(d, v);
  const auto odd = hn::And(hn::ShiftRight<16>(f), hn::Set(d, 1));
  // Cannot reach the sign of a number; what it does to a NaN is not used.
  const auto rounded = hn::Add(f, hn::Add(odd, hn::Set(d, 0x7FFF)));
  const auto number = hn::RebindMask(d, hn::Eq(v, v));
  const auto bits = hn::IfThenElse(number, rounded, hn::Or(f, hn::Set(d, 0x400000)));
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(bits)), d16, p);
}

}  // namespace tenon::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
