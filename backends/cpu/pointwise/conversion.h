// Conversions between dtypes as instructions of the tile interpreter.
// Used by the interpreter alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "backends/cpu/copy/convert.h"
#include "backends/cpu/pointwise/kernel.h"

namespace tenon::cpu {

/// One pair of dtypes.
struct Conversion {
  ConvertFn convert = nullptr;
  DType from = DType::Float32;
  DType to = DType::Float32;
};

/// The conversion between two real dtypes; lives as long as the process. Null where there is none.
const Conversion* conversion(DType from, DType to) noexcept;
/// A PointwiseFn that converts: its "numbers" are the Conversion.
void run_conversion(void* const* ptrs, size_t n, const void* conversion, uint32_t repeated = 0);

}  // namespace tenon::cpu
