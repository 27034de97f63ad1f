// A library that overrides a kernel of the program and declares an operator of its own.
#include "tenon/dispatch/library.h"

namespace {

int64_t twenty(const tenon::Tensor&) { return 20; }

TENON_LIBRARY(goodplugin, m) { m.def("own(Tensor a) -> int", &twenty); }
TENON_LIBRARY_IMPL(loading, CPU, m) { m.impl("op", &twenty); }

}  // namespace
