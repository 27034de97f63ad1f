// A library with a good block, then one whose kernel does not fit its schema.
#include "tenon/dispatch/library.h"

namespace {

int64_t thirty(const tenon::Tensor&) { return 30; }
int64_t misfit(double) { return 0; }

TENON_LIBRARY(badplugin, m) { m.def("own(Tensor a) -> int", &thirty); }
TENON_LIBRARY_IMPL(loading, CPU, m) {
  m.impl("op", &thirty);
  m.impl("op", &misfit);
}

}  // namespace
