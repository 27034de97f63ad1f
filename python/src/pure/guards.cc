#include "python/src/pure/guards.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

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

/// A number that no dict had before it was written to the last time; 0 where the interpreter does not count
/// writes, or no longer as part of its interface.
uint64_t version_of_dict(PyObject* dict) noexcept {
#if PY_VERSION_HEX < 0x030C0000
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#else
  static_cast<void>(dict);
  return 0;
#endif
}

/// Whether a comparison follows from the version of the dict that it is with.
bool is_of_dict(const Guard& g) noexcept {
  using enum Guard::Kind;
  PyObject* const o = g.object.get();
  if (g.kind == Keys) return !PyODict_Check(o);  // whose order changes without a write
  return (g.kind == Entry || g.kind == NoEntry || g.kind == Size) && PyDict_Check(o);
}

/// Where an object has the pointer that a comparison is about; null if there is no such place.
const void* place_of(const Guard& g) noexcept {
  using enum Guard::Kind;
  PyObject* const o = g.object.get();
  if (g.kind == Cell) return &reinterpret_cast<PyCellObject*>(o)->ob_ref;
  if (g.kind == Class) return &o->ob_type;
  const auto* const function = reinterpret_cast<PyFunctionObject*>(o);
  if (g.kind == Code) return &function->func_code;
  if (g.kind == Defaults) return g.number == 0 ? &function->func_defaults : &function->func_kwdefaults;
  return nullptr;
}

bool is_scalar(PyObject* o) noexcept {
  return PyLong_CheckExact(o) || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o);
}

Py_ssize_t size_of(PyObject* o) noexcept {
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  if (PyList_Check(o)) return PyList_GET_SIZE(o);
  return PySet_GET_SIZE(o);
}

/// Whether iterating over `o` as its base in C does gives the items of a tuple.
bool gives(PyObject* o, PyTypeObject* base, PyObject* items) noexcept {
  const Ref iterator(base->tp_iter(o));
  if (!iterator) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); ++i) {
    const Ref item(PyIter_Next(iterator.get()));
    if (!is_same(item.get(), PyTuple_GET_ITEM(items, i))) return false;
  }
  const Ref more(PyIter_Next(iterator.get()));
  return !more && !PyErr_Occurred();
}

bool has_keys(PyObject* dict, PyObject* keys) noexcept {
  if (PyODict_Check(dict)) return gives(dict, &PyODict_Type, keys);  // has an order of its own
  if (PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  Py_ssize_t at = 0;
  PyObject* key;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &at, &key, nullptr); ++i) {
    if (!is_same(key, PyTuple_GET_ITEM(keys, i))) return false;
  }
  return true;
}

bool holds(const Guard& g, bool exact) noexcept {
  const auto is_same = [exact](PyObject* now, PyObject* then) {
    return exact ? now == then : pure::is_same(now, then);
  };
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
    case Guard::Kind::Elements:
      return gives(o, PyFrozenSet_Check(o) ? &PyFrozenSet_Type : &PySet_Type, expected);
    case Guard::Kind::Keys:
      return has_keys(o, expected);
    case Guard::Kind::Member: {
      const Ref now(PyObject_GenericGetAttr(o, g.key.get()));
      return is_same(now.get(), expected);
    }
    case Guard::Kind::Result: {
      const Ref now(PyObject_CallNoArgs(o));
      return pure::is_same(now.get(), expected);
    }
  }
  return false;
}

}  // namespace

Ref value_now(const Guard& g) noexcept {
  PyObject* const o = g.object.get();
  PyObject* now = nullptr;
  if (g.kind == Guard::Kind::Entry) now = PyDict_GetItemWithError(o, g.key.get());
  if (g.kind == Guard::Kind::Item && g.number < PyList_GET_SIZE(o)) now = PyList_GET_ITEM(o, g.number);
  if (g.kind == Guard::Kind::Cell) now = PyCell_GET(o);
  PyErr_Clear();
  return Ref::borrow(now);
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

int64_t version_of_class(PyObject* type) {
  Ref(checked(PyObject_GetAttrString(type, "__init__")));  // it gets a number when it is asked for something
  const int64_t version = version_of(type);
  return version == 0 ? -1 : version;
}

Guards::Guards(PyObject* list, bool exact) : exact_(exact) {
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
    const bool is_absent = g.kind == Guard::Kind::Cell || g.kind == Guard::Kind::Defaults;
    if (is_absent && expected == Py_Ellipsis) g.expected = {};
    guards_.push_back(std::move(g));
  }
  std::unordered_map<PyObject*, size_t> numbers;  // of dicts, in the order in which they are first compared
  for (const Guard& g : guards_) {
    if (is_of_dict(g) && numbers.try_emplace(g.object.get(), numbers.size()).second)
      dicts_.push_back({.dict = g.object.get(), .end = 0});
  }
  const auto number = [&](const Guard& g) {
    return is_of_dict(g) ? numbers.at(g.object.get()) : numbers.size() + !place_of(g);
  };
  std::ranges::stable_sort(guards_, {}, number);
  for (size_t i = 0; i < guards_.size() && is_of_dict(guards_[i]); ++i)
    dicts_[number(guards_[i])].end = i + 1;
  for (const Guard& g : guards_) {
    if (const void* const place = place_of(g)) pointers_.push_back({place, g.expected.get()});
  }
}

const Guard* Guards::first_broken(size_t begin, size_t end) const noexcept {
  for (size_t i = begin; i < end; ++i) {
    if (!holds(guards_[i], exact_)) [[unlikely]] {
      PyErr_Clear();
      return &guards_[i];
    }
  }
  return nullptr;
}

const Guard* Guards::broken() noexcept {
  size_t begin = 0;
  for (OfDict& of : dicts_) {
    const uint64_t version = version_of_dict(of.dict);
    if (version == 0 || version != of.version) {
      if (const Guard* const broken = first_broken(begin, of.end)) return broken;
      of.version = version;
    }
    begin = of.end;
  }
  for (const OfPointer& of : pointers_) {
    const void* now;
    std::memcpy(&now, of.place, sizeof now);
    if (now != of.expected) [[unlikely]] {
      if (const Guard* const broken = first_broken(begin, begin + 1)) return broken;
    }
    ++begin;
  }
  return first_broken(begin, guards_.size());
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
