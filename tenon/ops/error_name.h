// Errors in the name of the operator that was called: one operator is often made of others, and what those
// refuse is the caller's mistake. Used by the entries of built-in kernels. Knows nothing of operators.
#pragma once

#include <string_view>

namespace tenon::detail {

/// In a handler of Error: throws it on with `op` in place of the operator that its message begins with
/// ("empty:
/// ..." becomes "zeros: ..."). A message that begins with none goes on as it is, and so does what a caller's
/// own code has thrown (a type derived from Error).
[[noreturn]] void rethrow_naming(std::string_view op);

}  // namespace tenon::detail
