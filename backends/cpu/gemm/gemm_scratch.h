// Per-thread memory for packed operands, kept between calls so that a large product allocates nothing the
// second time. Used by the matrix products of this folder. Independent of what is packed.
#pragma once

#include <cstddef>

namespace tenon::cpu {

/// Uses of the scratch memory that may be live at the same time.
enum class GemmScratch { PackedA, PackedB, Totals, FloatA, FloatB, FloatC, Band, Weights };
inline constexpr int kNumGemmScratch = 8;

/// At least `bytes` bytes, aligned to 64, valid until this thread asks for the same slot again.
/// Throws Error{OutOfMemory}.
void* gemm_scratch(GemmScratch slot, size_t bytes);

}  // namespace tenon::cpu
