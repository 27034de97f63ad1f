// Strict mode: only Tenon's own kernels run, so that a program computes the same bits on every CPU and with
// any number of threads. Used by operators that would otherwise pass large work to a vendor's library. Knows
// no operators.
#pragma once

namespace tenon {

/// Switches strict mode for the process. TENON_STRICT=1 starts with it on. What the thread has recorded runs
/// first, and throws what it throws.
void set_strict(bool on);
bool is_strict() noexcept;

}  // namespace tenon
