// Named results, as max(x, dim) has them: a tuple whose parts are also attributes.
#include <structmember.h>

#include <map>
#include <vector>

#include "python/src/call/typed_call.h"

namespace tenon::python {
namespace {

/// As PyTorch prints them: each part on a line of its own.
PyObject* representation(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Ref text(PyUnicode_FromFormat("%s(", type->tp_name));
  for (Py_ssize_t i = 0; text && i < Py_SIZE(o); ++i) {
    text = Ref(PyUnicode_FromFormat("%U%s\n%s=%R", text.get(), i == 0 ? "" : ",", type->tp_members[i].name,
                                    PyStructSequence_GetItem(o, i)));
  }
  return text ? PyUnicode_FromFormat("%U)", text.get()) : nullptr;
}

PyTypeObject* make_type(const Overload& o, Py_ssize_t count) {
  std::vector<PyStructSequence_Field> fields;
  for (Py_ssize_t i = 0; i < count; ++i) fields.push_back({o.result_names[i], nullptr});
  fields.push_back({nullptr, nullptr});
  static std::map<const char*, std::string> names;
  std::string& name = names[o.text];
  name = "tenon.return_types." + std::string(o.text, std::string_view(o.text).find('('));
  PyStructSequence_Desc desc{name.c_str(), nullptr, fields.data(), static_cast<int>(count)};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (type) type->tp_repr = &representation;
  return type;
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
