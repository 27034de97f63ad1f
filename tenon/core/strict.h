// Strict mode: no vendor's library computes, so that a program has the same bits on every CPU and with any
// number of threads. A step that would call a library asks when it runs: today oneDNN's, in programs that are
// compiled as relaxed, and LAPACK's, for spectra. Must not include operators.
#pragma once

namespace tenon {

/// Switches strict mode for the process. TENON_STRICT=1 starts with it on. What the thread has recorded runs
/// first, and throws what it throws.
void set_strict(bool on);
bool is_strict() noexcept;

}  // namespace tenon
