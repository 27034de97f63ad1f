// Names of kernels with the instruction set that they ran on, as kernel reports show them.
// Used by the kernels of this room.
#pragma once

#include "backends/cpu/cpu_target.h"
#include "tenon/core/kernel_report.h"

namespace tenon::cpu {

/// One text for each CpuTarget, in its order.
struct KernelNames {
  const char* by_target[kNumCpuTargets];
};
#if defined(__x86_64__)
#define TENON_KERNEL_NAMES(kernel)                     \
  ::tenon::cpu::KernelNames {                          \
    { kernel ":SSE4", kernel ":AVX2", kernel ":AVX3" } \
  }
#else
#define TENON_KERNEL_NAMES(kernel) \
  ::tenon::cpu::KernelNames {      \
    { kernel ":NEON" }             \
  }
#endif

inline void report_kernel(const char* op, const KernelNames& names) {
  if (kernel_reporting()) [[unlikely]]
    tenon::report_kernel(op, names.by_target[static_cast<int>(cpu_target())]);
}

}  // namespace tenon::cpu
