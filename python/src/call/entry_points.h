// Entry points: CPython calls a function of the module, or a method, without saying which it is, so each has
// a few instructions of its own. They know their number alone: which operator it stands for is data, so that
// entry_points.cc is not compiled again for every operator.
#pragma once

#include <array>

#include "python/entries.inc"
#include "python/src/call/overload.h"

namespace tenon::python {

/// By number; function_tables.cc fills them.
extern Function g_functions[kFunctionEntries];
extern Function g_methods[kMethodEntries];

extern const std::array<FastFunction, kFunctionEntries> kFunctionEntryPoints;
extern const std::array<FastFunction, kMethodEntries> kMethodEntryPoints;

}  // namespace tenon::python
