// Blocks of memory above those of small_alloc.h from per-thread free lists, eight sizes for each doubling:
// the C library joins and splits its blocks of these sizes at each call. Used by the host allocator alone;
// builds for a sanitizer do not.
#pragma once

#include <cstddef>

#include "tenon/core/small_alloc.h"

namespace tenon {

inline constexpr size_t kMediumBlockMax = size_t{64} << 10;

/// At least `nbytes` (more than kSmallBlockMax, at most kMediumBlockMax) bytes at a 64-byte boundary,
/// uninitialised; null where no memory is left.
void* medium_allocate(size_t nbytes) noexcept;
/// Gives back a block of `medium_allocate(nbytes)`, from any thread, which keeps a few megabytes of them.
void medium_free(void* p, size_t nbytes) noexcept;

}  // namespace tenon
