// KernelReport: which kernel an operator ran, recorded only while reporting is switched on. Used by every
// room that runs kernels, and by programs that check which kernels computed their results. Knows no
// operators.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// One operator and the kernel that it ran: "simd:AVX2", "interpreter:AVX2", "gemm:AVX2", "copy",
/// ... Both texts live as long as the process.
struct KernelReport {
  const char* op = nullptr;
  const char* kernel = nullptr;
};
/// How often an operator ran a kernel since reporting was switched on.
struct KernelCount {
  KernelReport report;
  uint64_t calls = 0;
  /// How many of these ran outside any traced call. While the dispatch trace is on, that means the kernel was
  /// reached without the dispatcher.
  uint64_t outside = 0;
};

namespace detail {
extern std::atomic<bool> kernel_reporting_on;
void record_kernel(const char* op, const char* kernel);
}  // namespace detail

/// Switches recording on or off for the process; switching it on forgets what was recorded before.
void set_kernel_reporting(bool on);
inline bool kernel_reporting() noexcept {
  return detail::kernel_reporting_on.load(std::memory_order_relaxed);
}

/// A text that was made at run time, to be reported: it lives as long as the process.
const char* lasting_text(std::string text);

/// Called when a kernel runs; costs one relaxed read while reporting is off.
inline void report_kernel(const char* op, const char* kernel) {
  if (kernel_reporting()) [[unlikely]]
    detail::record_kernel(op, kernel);
}

/// The last kernel that this thread ran while reporting was on; its members are null if there was none.
KernelReport last_kernel() noexcept;
/// Every pair of operator and kernel that any thread has run, in the order in which each first ran.
std::vector<KernelCount> kernel_counts();

}  // namespace tenon
