#include "python/src/pure/guards.h"

#include <bit>

#include "python/src/interpreter/errors.h"
#include "tenon/core/error.h"

namespace tenon::python::pure {
namespace {

/// A number that changes with every change of the class or of its bases; 0 if there is none.
int64_t version_of(PyObject* type) noexcept {
  const auto* const t = reinterpret_cast<PyTypeObject*>(type);
#if PY_VERSION_HEX < 0x030D0000
  if (!PyType_HasFeature(const_cast<PyTypeObject*>(t), Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return t->tp_version_tag;
}

bool is_scalar(PyObject* o) noexcept {
  return PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
}

Py_ssize_t size_of(PyObject* o) noexcept {
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  if (PyList_Check(o)) return PyList_GET_SIZE(o);
  return PySet_GET_SIZE(o);
}

bool holds(const Guard& g) noexcept {
  PyObject* const o = g.object.get();
  PyObject* const expected = g.expected.get();
  switch (g.kind) {
    case Guard::Kind::Entry: {
      PyObject* const now = PyDict_GetItemWithError(o, g.key.get());
      return now && is_same(now, expected);
    }
    case Guard::Kind::NoEntry:
      return PyDict_Contains(o, g.key.get()) == 0;
    case Guard::Kind::Size:
      return size_of(o) == g.number;
    case Guard::Kind::Item:
      return g.number < PyList_GET_SIZE(o) && is_same(PyList_GET_ITEM(o, g.number), expected);
    case Guard::Kind::Cell: {
      PyObject* const now = PyCell_GET(o);
      return now ? expected && is_same(now, expected) : !expected;
    }
    case Guard::Kind::Code:
      return PyFunction_GET_CODE(o) == expected;
    case Guard::Kind::Defaults:
      return (g.number == 0 ? PyFunction_GET_DEFAULTS(o) : PyFunction_GET_KW_DEFAULTS(o)) == expected;
    case Guard::Kind::Type:
      return version_of(o) == g.number;
    case Guard::Kind::Dict: {
      const Ref now(PyObject_GenericGetDict(o, nullptr));
      return now.get() == expected;
    }
    case Guard::Kind::Class:
      return reinterpret_cast<PyObject*>(Py_TYPE(o)) == expected;
    case Guard::Kind::Equal:
      return PyObject_RichCompareBool(o, expected, Py_EQ) == 1;
  }
  return false;
}

}  // namespace

bool is_same(PyObject* now, PyObject* expected) noexcept {
  if (now == expected) return true;
  if (!now || !expected || Py_TYPE(now) != Py_TYPE(expected)) return false;
  if (PyFloat_CheckExact(now)) {
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(now)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(expected));
  }
  return is_scalar(now) && PyObject_RichCompareBool(now, expected, Py_EQ) == 1;
}

Guards::Guards(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject *object, *key, *expected, *path;
    int kind = 0;
    long long number = 0;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "iOOOLO", &kind, &object, &key, &expected, &number,
                          &path))
      throw PythonError();
    TENON_CHECK(0 <= kind && kind < Guard::kKinds, Internal, "a guard of an unknown kind");
    Guard g{static_cast<Guard::Kind>(kind), number,           Ref::borrow(object), Ref::borrow(key),
            Ref::borrow(expected),          Ref::borrow(path)};
    if (g.kind == Guard::Kind::Type) {
      Ref(PyObject_GetAttrString(object,
                                 "__init__"));  // a class gets a number when it is asked for something
      g.number = version_of(object);
      if (g.number == 0) g.number = -1;  // never holds
    }
    const bool is_absent = g.kind == Guard::Kind::Cell || g.kind == Guard::Kind::Defaults;
    if (is_absent && expected == Py_Ellipsis) g.expected = {};
    guards_.push_back(std::move(g));
  }
}

const Guard* Guards::broken() const noexcept {
  for (const Guard& g : guards_) {
    if (!holds(g)) [[unlikely]] {
      PyErr_Clear();
      return &g;
    }
  }
  return nullptr;
}

int Guards::traverse(visitproc visit, void* arg) const {
  for (const Guard& g : guards_) {
    Py_VISIT(g.object.get());
    Py_VISIT(g.key.get());
    Py_VISIT(g.expected.get());
  }
  return 0;
}

}  // namespace tenon::python::pure
