// The calls of a share of the operators' C++ signatures.
#include "python/src/call.h"

namespace tenon::python {
#include "python/signatures_3.inc"
}  // namespace tenon::python
