// Named results, as max(x, dim) has them: a tuple whose parts are also attributes.
#include <map>
#include <vector>

#include "python/src/call/typed_call.h"

namespace tenon::python {
namespace {

PyTypeObject* make_type(const Overload& o, Py_ssize_t count) {
  std::vector<PyStructSequence_Field> fields;
  for (Py_ssize_t i = 0; i < count; ++i) fields.push_back({o.result_names[i], nullptr});
  fields.push_back({nullptr, nullptr});
  static std::map<const char*, std::string> names;
  std::string& name = names[o.text];
  name = "tenon.return_types." + std::string(o.text, std::string_view(o.text).find('('));
  PyStructSequence_Desc desc{name.c_str(), nullptr, fields.data(), static_cast<int>(count)};
  return PyStructSequence_NewType(&desc);
}

}  // namespace

PyObject* named_tuple(const Overload& overload, PyObject* tuple) noexcept {
  const Ref owner(tuple);
  // One type for each operator, for the life of the process. Guarded by the interpreter lock.
  static std::map<const char* const*, PyTypeObject*> types;
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  PyTypeObject*& type = types[overload.result_names];
  if (!type && !(type = make_type(overload, count))) return nullptr;
  PyObject* out = PyStructSequence_New(type);
  for (Py_ssize_t i = 0; out && i < count; ++i) {
    PyStructSequence_SetItem(out, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  }
  return out;
}

}  // namespace tenon::python
