// Kernels whose results go past the caches. Used by pointwise calls that touch more memory than the caches
// hold, through the host's table.
#pragma once

#include <cstddef>

#include "tenon/iter/host.h"

namespace tenon::cpu {

/// Half of the last-level cache of this processor.
size_t streams_from() noexcept;

/// See HostBackend.
void run_streaming(const HostKernel& kernel, void* const* ptrs, size_t count, size_t item, size_t n,
                   const void* numbers);

}  // namespace tenon::cpu
