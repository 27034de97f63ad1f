// A library that brings a fallback, which every operator's table may hold.
#include "tenon/dispatch/library.h"

namespace {

void fifty(const tenon::OperatorHandle&, tenon::DispatchKeySet, tenon::Stack& stack) {
  stack.clear();
  stack.push(int64_t{50});
}

TENON_LIBRARY_IMPL(_, CPU, m) { m.fallback(tenon::CppFunction::make_from_boxed_function<&fifty>()); }

}  // namespace
