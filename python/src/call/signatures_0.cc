// The typed calls of one part of the operators' C++ signatures.
#include "python/src/call/typed_call.h"

namespace tenon::python {
#include "python/signatures_0.inc"
}  // namespace tenon::python
