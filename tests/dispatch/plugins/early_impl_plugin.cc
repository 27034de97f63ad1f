// A library that brings a kernel for an operator that another one declares.
#include "tenon/dispatch/library.h"

namespace {

int64_t thirty(const tenon::Tensor&) { return 30; }

TENON_LIBRARY_IMPL(lateplugin, CPU, m) { m.impl("op", &thirty); }

}  // namespace
