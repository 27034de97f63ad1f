// Strict mode: only Tenon's own kernels, so that a program has the same bits on every CPU and thread count.
// Used by operators that would otherwise hand large work to a vendor's library. Knows no operators.
#pragma once

namespace tenon {

/// Switches strict mode for the process. TENON_STRICT=1 starts with it on.
void set_strict(bool on) noexcept;
bool is_strict() noexcept;

}  // namespace tenon
