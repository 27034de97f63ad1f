// Fallbacks: an operator, a stub or an expression that a device does not have runs on host copies of its
// tensors and reports it here. Used by what runs them (ops/fallback); read by users, tests and tools.
// TENON_LOG_FALLBACK=1 prints the reports. Knows no tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/core/device.h"

namespace tenon {

/// One call that ran on host copies.
struct FallbackReport {
  std::string_view name;  ///< "aten::abs", "stub reduce", "expression add"
  Device device;
  size_t nbytes;  ///< Copied, both ways together.
};

/// What fell back under one name on the devices of one backend.
struct FallbackCount {
  std::string name;
  Backend backend;
  int64_t calls = 0;
  int64_t nbytes = 0;
};

/// Counts a call and, if logging is switched on, shows it. The name needs to live only during the call.
void report_fallback(const FallbackReport& report);

/// What has fallen back so far, by name and then by backend.
std::vector<FallbackCount> fallbacks();
void reset_fallbacks();

/// Switches logging on or off; TENON_LOG_FALLBACK=1 in the environment starts with it on.
void set_log_fallbacks(bool on) noexcept;
/// Sets a function that is called with each logged call instead of printing to stderr; null restores stderr.
void set_fallback_sink(void (*sink)(const FallbackReport&)) noexcept;

}  // namespace tenon
