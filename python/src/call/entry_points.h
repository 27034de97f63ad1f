// Entry points: CPython does not tell a C function under which name it was called, so each function of the
// module and each method has an entry point with a few instructions. An entry point knows its number only;
// data says which operator that is, so that adding an operator does not recompile entry_points.cc.
#pragma once

#include <array>

#include "python/entries.inc"
#include "python/src/call/overload.h"

namespace tenon::python {

/// The functions and methods by number; filled in by function_tables.cc.
extern Function g_functions[kFunctionEntries];
extern Function g_methods[kMethodEntries];

extern const std::array<FastFunction, kFunctionEntries> kFunctionEntryPoints;
extern const std::array<FastFunction, kMethodEntries> kMethodEntryPoints;

}  // namespace tenon::python
