// Whether AddressSanitizer looks for leaks when the test program ends.
#pragma once

namespace tenon::testing {

/// For programs with threads of a foreign library, which may end while the leak checker stops them.
void skip_leak_check() noexcept;

}  // namespace tenon::testing
