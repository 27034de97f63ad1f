#include "python/src/call/spread.h"

#include "python/src/call/python_value.h"

namespace tenon::python {
void spread_into(PyObject** out, const char* function, const char* const* names, size_t count,
                 size_t positional, PyObject* const* args, Py_ssize_t num_args, PyObject* keywords) {
  const std::string who = std::string(function) + "()";
  if (static_cast<size_t>(num_args) > positional) {
    throw_error(ErrorKind::Type, who + " takes " + std::to_string(positional) +
                                     " positional arguments, got " + std::to_string(num_args));
  }
  for (Py_ssize_t i = 0; i < num_args; ++i) out[i] = args[i];
  const Py_ssize_t num_keywords = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t k = 0; k < num_keywords; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, k);
    size_t i = 0;
    while (i < count && PyUnicode_CompareWithASCIIString(keyword, names[i]) != 0) ++i;
    const char* utf8 = PyUnicode_AsUTF8(keyword);
    if (!utf8) PyErr_Clear();
    const std::string text = utf8 ? utf8 : "?";
    if (i == count) throw_error(ErrorKind::Type, who + " got an unexpected keyword argument '" + text + "'");
    if (out[i]) throw_error(ErrorKind::Type, who + " got two values for argument '" + text + "'");
    out[i] = args[num_args + k];
  }
}

void check_count(const char* function, Py_ssize_t given, Py_ssize_t expected) {
  TENON_CHECK(given == expected, Type,
              std::string(function) + "() takes " + std::to_string(expected) + " arguments, got " +
                  std::to_string(given));
}

}  // namespace tenon::python
