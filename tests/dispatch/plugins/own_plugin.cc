// A library that touches nothing of the program: an operator of its own, a kernel for it, and a fragment.
#include "tenon/dispatch/library.h"

namespace {

int64_t forty(const tenon::Tensor&) { return 40; }

TENON_LIBRARY(ownplugin, m) { m.def("op(Tensor a) -> int"); }
TENON_LIBRARY_IMPL(ownplugin, CPU, m) { m.impl("op", &forty); }
TENON_LIBRARY_FRAGMENT(ownplugin, m) { m.def("late(Tensor a) -> int", &forty); }

}  // namespace
