// Single values of expressions, as bits: the scalar definitions of conversion and rounding.
// Used by instantiate for literals, by the evaluator and by tests. A float32 and an int32 are in the low 32
// bits, a mask is 1 or 0.
#pragma once

#include <cstdint>

#include "tenon/expr/type.h"

namespace tenon::expr {

/// The value as another type: integers wrap or extend; an integer becomes a float with one rounding; a float
/// is truncated to int64, INT64_MIN where it is NaN or out of range, and wraps to narrower integers from
/// there, to U64 also from 2^63 to 2^64; anything but zero is true, NaN included.
uint64_t convert_scalar(uint64_t bits, Type from, Type to) noexcept;
/// What storing a value of `d`'s carrier as `d` and loading it again gives.
uint64_t round_scalar(uint64_t bits, DType d) noexcept;
/// The element of dtype `d` (of a complex one, the part) at `p`, as its carrier; true is any byte but 0.
uint64_t load_scalar(const void* p, DType d) noexcept;
/// The reverse, rounding or wrapping.
void store_scalar(void* p, DType d, uint64_t bits) noexcept;

}  // namespace tenon::expr
