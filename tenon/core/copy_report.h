// Hidden copies: an operator that copies a tensor although its caller did not ask for a copy reports it here.
// Used by operators and by data exchange with NumPy and others; TENON_SHOW_COPIES=1 prints the reports. Knows
// no tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

/// A copy of `nbytes` that `op` made of its argument, and why ("the last dimension has stride 3, BLAS needs
/// 1").
struct CopyReport {
  const char* op;
  const char* argument;
  const char* reason;
  size_t nbytes;
};

/// Counts a hidden copy and, if showing is switched on, shows it. The texts need to live only during the
/// call.
void report_copy(const char* op, const char* argument, const char* reason, size_t nbytes);

/// The number of hidden copies that the process has made so far.
int64_t hidden_copies() noexcept;

/// Switches showing on or off; TENON_SHOW_COPIES=1 in the environment starts with it on.
void set_show_copies(bool on) noexcept;
/// Sets a function that is called with each copy instead of printing to stderr; null restores stderr.
void set_copy_sink(void (*sink)(const CopyReport&)) noexcept;

}  // namespace tenon
