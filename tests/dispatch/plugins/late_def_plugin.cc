// A library that declares an operator whose kernel another one brings, before it or after it.
#include "tenon/dispatch/library.h"

TENON_LIBRARY(lateplugin, m) { m.def("op(Tensor a) -> int"); }
