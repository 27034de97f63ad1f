// Single values of programs, as bits: what loading, casting, rounding and storing are. Used by program.h, and
// by plug-ins that read or write elements of their own. A value of 4 bytes is in the low half, a mask is 1
// or 0.
#pragma once

#include "tenon/abi/definitions.h"
#include "tenon/abi/tenon_program.h"

namespace tenon::abi {

/// Bytes of one element; 0 for dtypes that this header does not know.
inline size_t item_size(TenonDType t) noexcept {
  constexpr uint8_t kSizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 1, 1, 2, 4, 8};
  return t < sizeof kSizes ? kSizes[t] : 0;
}

/// What elements of a dtype are once they are loaded; TENON_TYPE_U64, which no value is, where there is none,
/// and for uint16, uint32 and uint64, which no program loads.
inline TenonType carrier(TenonDType t) noexcept {
  constexpr TenonType kCarriers[] = {TENON_TYPE_MASK, TENON_TYPE_I64, TENON_TYPE_I64, TENON_TYPE_I64,
                                     TENON_TYPE_I32,  TENON_TYPE_I64, TENON_TYPE_F32, TENON_TYPE_F32,
                                     TENON_TYPE_F32,  TENON_TYPE_F64};
  return t < sizeof kCarriers ? kCarriers[t] : static_cast<TenonType>(TENON_TYPE_U64);
}

namespace detail {

inline uint64_t of_integer(int64_t i, TenonType to) noexcept {
  using namespace defined;
  switch (to) {
    case TENON_TYPE_MASK:
      return i != 0;
    case TENON_TYPE_F32:
      return tenon_bits_f32(static_cast<f32>(i));
    case TENON_TYPE_F64:
      return tenon_bits_f64(static_cast<f64>(i));
    case TENON_TYPE_I32:
      return static_cast<u32>(i);
    default:
      return static_cast<u64>(i);
  }
}

template <class T>
T read(const void* p) noexcept {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void write(void* p, uint64_t bits) noexcept {
  const T v = static_cast<T>(bits);
  std::memcpy(p, &v, sizeof v);
}

}  // namespace detail

/// TENON_OP_CAST.
inline uint64_t cast_bits(uint64_t bits, TenonType from, TenonType to) noexcept {
  using namespace defined;
  if (from == to) return bits;
  switch (from) {
    case TENON_TYPE_F32: {
      const f32 x = tenon_f32_of(static_cast<u32>(bits));
      if (to == TENON_TYPE_F64) return tenon_bits_f64(static_cast<f64>(x));
      return to == TENON_TYPE_MASK ? x != 0 : detail::of_integer(tenon_f32_to_i64(x), to);
    }
    case TENON_TYPE_F64: {
      const f64 x = tenon_f64_of(bits);
      if (to == TENON_TYPE_F32) return tenon_bits_f32(static_cast<f32>(x));
      return to == TENON_TYPE_MASK ? x != 0 : detail::of_integer(tenon_f64_to_i64(x), to);
    }
    case TENON_TYPE_I32:
      return detail::of_integer(static_cast<i32>(bits), to);
    default:  // a mask is 1 or 0
      return detail::of_integer(static_cast<i64>(bits), to);
  }
}

/// The element of dtype `t` at `p`, as its carrier.
inline uint64_t load_bits(const void* p, TenonDType t) noexcept {
  using namespace defined;
  switch (t) {
    case TENON_DTYPE_BOOL:
      return detail::read<u8>(p) != 0;
    case TENON_DTYPE_UINT8:
      return detail::read<u8>(p);
    case TENON_DTYPE_INT8:
      return static_cast<u64>(i64{detail::read<i8>(p)});
    case TENON_DTYPE_INT16:
      return static_cast<u64>(i64{detail::read<i16>(p)});
    case TENON_DTYPE_FLOAT16:
      return tenon_bits_f32(tenon_half_to_f32(detail::read<u16>(p)));
    case TENON_DTYPE_BFLOAT16:
      return tenon_bits_f32(tenon_bfloat16_to_f32(detail::read<u16>(p)));
    default:
      return item_size(t) == 4 ? detail::read<u32>(p) : detail::read<u64>(p);
  }
}

/// The reverse, rounding or wrapping.
inline void store_bits(void* p, TenonDType t, uint64_t bits) noexcept {
  using namespace defined;
  switch (t) {
    case TENON_DTYPE_BOOL:
      return detail::write<u8>(p, bits != 0);
    case TENON_DTYPE_UINT8:
    case TENON_DTYPE_INT8:
      return detail::write<u8>(p, bits);
    case TENON_DTYPE_INT16:
      return detail::write<u16>(p, bits);
    case TENON_DTYPE_FLOAT16:
      return detail::write<u16>(p, tenon_f32_to_half(tenon_f32_of(static_cast<u32>(bits))));
    case TENON_DTYPE_BFLOAT16:
      return detail::write<u16>(p, tenon_f32_to_bfloat16(tenon_f32_of(static_cast<u32>(bits))));
    default:
      return item_size(t) == 4 ? detail::write<u32>(p, bits) : detail::write<u64>(p, bits);
  }
}

/// TENON_OP_ROUND_TO: what storing as `t` and loading again gives.
inline uint64_t round_bits(uint64_t bits, TenonDType t) noexcept {
  unsigned char stored[8];
  store_bits(stored, t, bits);
  return load_bits(stored, t);
}

}  // namespace tenon::abi
