// Named results, as max(x, dim) has them: a tuple whose parts are also attributes.
#include <structmember.h>

#include <map>
#include <string>
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

PyTypeObject* make_type(const Overload& o, Py_ssize_t count, const char* name) {
  std::vector<PyStructSequence_Field> fields;
  for (Py_ssize_t i = 0; i < count; ++i) fields.push_back({o.result_names[i], nullptr});
  fields.push_back({nullptr, nullptr});
  PyStructSequence_Desc desc{name, nullptr, fields.data(), static_cast<int>(count)};
  PyTypeObject* type = PyStructSequence_NewType(&desc);
  if (type) type->tp_repr = &representation;
  return type;
}

/// One type for each operator, which its function and its method share, for the life of the process. Guarded
/// by the interpreter lock.
PyTypeObject* type_of(const Overload& o, Py_ssize_t count) {
  static auto& known = *new std::map<const char* const*, PyTypeObject*>;
  PyTypeObject*& type = known[o.result_names];
  if (type) return type;
  static auto& types = *new std::map<std::string, PyTypeObject*>;
  const std::string_view text = o.text;
  // Up to CPython 3.10, a type keeps pointing to its name.
  const auto at =
      types.emplace("tenon.return_types." + std::string(text.substr(0, text.find('('))), nullptr).first;
  if (!at->second) at->second = make_type(o, count, at->first.c_str());
  return type = at->second;
}

}  // namespace

PyObject* named_tuple(const Overload& overload, PyObject* tuple) noexcept {
  const Ref owner(tuple);
  const Py_ssize_t count = PyTuple_GET_SIZE(tuple);
  PyTypeObject* const type = type_of(overload, count);
  if (!type) return nullptr;
  PyObject* out = PyStructSequence_New(type);
  for (Py_ssize_t i = 0; out && i < count; ++i) {
    PyStructSequence_SetItem(out, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
  }
  return out;
}

}  // namespace tenon::python
