#include "python/src/replay/guards.h"

#include <bit>
#include <cmath>

#include "python/src/interpreter/errors.h"

namespace tenon::python::replay {
namespace {

bool is_scalar(PyObject* o) noexcept {
  return PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
}

Guards::Broken first_difference(const Guard& guard) noexcept {
  const auto differs = [](const Guard::Entry& entry, PyObject* value) {
    return entry.expected && !is_same(value, entry.expected.get());
  };
  PyObject* const o = guard.object.get();
  const auto size = static_cast<Py_ssize_t>(guard.entries.size());
  if (PyList_Check(o)) {
    if (PyList_GET_SIZE(o) != size) return {&guard};
    for (Py_ssize_t i = 0; i < size; ++i) {
      const Guard::Entry& entry = guard.entries[static_cast<size_t>(i)];
      if (differs(entry, PyList_GET_ITEM(o, i))) return {&guard, &entry};
    }
    return {};
  }
  if (PyDict_GET_SIZE(o) != size) return {&guard};
  Py_ssize_t at = 0;
  PyObject *key, *value;
  for (const Guard::Entry& entry : guard.entries) {
    if (!PyDict_Next(o, &at, &key, &value) || !is_same(key, entry.key.get())) return {&guard};
    if (differs(entry, value)) return {&guard, &entry};
  }
  return {};
}

}  // namespace

Ref value_now(const Guards::Broken& broken) noexcept {
  if (!broken.entry) return {};
  PyObject* const o = broken.guard->object.get();
  if (PyDict_Check(o)) {
    Ref now = Ref::borrow(PyDict_GetItemWithError(o, broken.entry->key.get()));
    PyErr_Clear();
    return now;
  }
  const auto i = broken.entry - broken.guard->entries.data();
  return Ref::borrow(i < PyList_GET_SIZE(o) ? PyList_GET_ITEM(o, i) : nullptr);
}

bool is_same(PyObject* now, PyObject* expected) noexcept {
  if (now == expected) return true;
  if (!now || !expected || Py_TYPE(now) != Py_TYPE(expected)) return false;
  if (PyFloat_CheckExact(now)) {
    if (std::isnan(PyFloat_AS_DOUBLE(now))) return false;  // `in` finds it by its identity
    return std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(now)) ==
           std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(expected));
  }
  return is_scalar(now) && PyObject_RichCompareBool(now, expected, Py_EQ) == 1;
}

Guards::Guards(PyObject* list) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject *object, *label, *keys, *values, *labels;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "OOOO!O!", &object, &label, &keys, &PyTuple_Type, &values,
                          &PyTuple_Type, &labels))
      throw PythonError();
    Guard& guard = guards_.emplace_back(Guard{Ref::borrow(object), {}, Ref::borrow(label)});
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(values); ++k) {
      PyObject* const value = PyTuple_GET_ITEM(values, k);
      guard.entries.push_back({Ref::borrow(keys == Py_None ? nullptr : PyTuple_GET_ITEM(keys, k)),
                               Ref::borrow(value == Py_Ellipsis ? nullptr : value),
                               Ref::borrow(PyTuple_GET_ITEM(labels, k))});
    }
  }
}

Guards::Broken Guards::broken() const noexcept {
  for (const Guard& guard : guards_) {
    if (const Broken found = first_difference(guard); found.guard) return found;
  }
  return {};
}

int Guards::traverse(visitproc visit, void* arg) const {
  for (const Guard& guard : guards_) {
    Py_VISIT(guard.object.get());
    for (const Guard::Entry& entry : guard.entries) {
      Py_VISIT(entry.key.get());
      Py_VISIT(entry.expected.get());
    }
  }
  return 0;
}

}  // namespace tenon::python::replay
