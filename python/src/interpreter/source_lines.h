// Python's lines for error messages: which line of Python is calling. Used by module.cc and by whoever gives
// the interpreter lock away.
#pragma once

#include "python/src/interpreter/reference.h"

namespace tenon::python {

/// Has marks (core/source_mark.h) name Python's lines.
bool add_source_language(PyObject* module);

/// Notes the line that makes a call which gives the lock away, so that error messages can name it.
void note_line_before_release() noexcept;

}  // namespace tenon::python
