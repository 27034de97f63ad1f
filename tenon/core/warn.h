// Warnings to the author of a program: a call did what it was asked, which may not be what was meant. Used by
// operators; the extension module makes them warnings of Python. Knows no tensors.
#pragma once

namespace tenon {

/// Warns, on stderr unless a program has set a function for it. May throw what that function throws, so call
/// it before anything is changed.
void warn(const char* message);

/// Sets the function that `warn` calls; null restores stderr.
void set_warning_function(void (*function)(const char* message)) noexcept;

}  // namespace tenon
