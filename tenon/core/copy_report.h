// Hidden copies: every time an operator copies a tensor that its caller did not ask it to copy, it says so
// here. Used by operators and borders; TENON_SHOW_COPIES=1 prints them. Knows no tensors.
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

/// Counts a hidden copy and, where switched on, shows it. The texts need to live only during the call.
void report_copy(const char* op, const char* argument, const char* reason, size_t nbytes);

/// Hidden copies of the process so far, and their bytes.
int64_t hidden_copies() noexcept;
int64_t hidden_copy_bytes() noexcept;

/// Switches showing on or off; TENON_SHOW_COPIES=1 in the environment starts with it on.
void set_show_copies(bool on) noexcept;
/// Where copies are shown instead of stderr; null for stderr again.
void set_copy_sink(void (*sink)(const CopyReport&)) noexcept;

}  // namespace tenon
