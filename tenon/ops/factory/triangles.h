// How many places a triangle of a matrix has. Used by the shape functions of tril_indices and triu_indices.
// Knows numbers alone.
#pragma once

#include <cstdint>

namespace tenon::ops {

/// The places on or below (`low`), or on or above, the diagonal `offset`. Throws Error{Value} for negative
/// sizes, Error{Shape} for more places than int64 can count.
int64_t triangle_places(bool low, int64_t row, int64_t col, int64_t offset);

}  // namespace tenon::ops
