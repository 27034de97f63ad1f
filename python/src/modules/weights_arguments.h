// Arguments of the functions of tenon._C._weights, and those that have files of their own.
#pragma once

#include <string>

#include "python/src/interpreter/errors.h"

namespace tenon::python {

/// What os.fsencode returned. Errors name the function of the package.
std::string path_argument(const char* function, PyObject* o);

/// The first of `attributes` that would hide an attribute of the type of `object`, which has none of its own;
/// empty if there is none.
std::string hiding_attribute(PyObject* object, PyObject* attributes);

/// load(path or file, name, place or None, mmap): the value, and how many bytes of the file were read after
/// it.
PyObject* load(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*);
/// save(value, path or file)
PyObject* save(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*);

}  // namespace tenon::python
