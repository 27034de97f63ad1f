// The modes of grid_sampler, as numbers of a call. Used by its operators and by the kernels of devices.
#pragma once

#include <cstdint>

namespace tenon::ops {

enum class Sampling : int64_t { Bilinear, Nearest, Bicubic };
/// What is outside of the image: zeros, the nearest element, or the image's reflection.
enum class GridPadding : int64_t { Zeros, Border, Reflection };

}  // namespace tenon::ops
