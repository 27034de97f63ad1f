// The line of Python that is calling, for error messages. Used by module.cc and by code that releases the
// interpreter lock.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/core/source_mark.h"

namespace tenon::python {

/// Makes source marks (core/source_mark.h) and warnings (core/warn.h) name lines of Python.
bool add_source_language(PyObject* module);

/// The line of the innermost function of this thread that is not Tenon's own. Empty if there is none, and on
/// a thread that does not hold the interpreter lock. Runs no Python.
SourceMark mark_of_program() noexcept;

/// Notes the line that is calling before the lock is released, so that error messages can name it.
void note_line_before_release() noexcept;

}  // namespace tenon::python
