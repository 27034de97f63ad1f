// Lists, tuples and dictionaries that C++ fills. Used by every file of the extension module. Independent of
// tensors.
#pragma once

#include <cstddef>
#include <ranges>
#include <string_view>

#include "python/src/interpreter/errors.h"

namespace tenon::python {

/// Appends an object that the caller owns. Throws PythonError where it is null.
inline void append(const Ref& list, PyObject* owned) {
  const Ref value(checked(owned));
  if (PyList_Append(list.get(), value.get()) < 0) throw PythonError();
}

/// Sets an item to an object that the caller owns. Throws PythonError where it is null.
inline void put(const Ref& dict, std::string_view name, PyObject* owned) {
  const Ref value(checked(owned)), key(checked(to_python(name)));
  if (PyDict_SetItem(dict.get(), key.get(), value.get()) < 0) throw PythonError();
}

/// A new reference that a function returned. Throws PythonError where it is null.
inline PyObject* new_reference(PyObject* o) { return checked(o); }
inline PyObject* new_reference(Ref o) { return checked(o.release()); }

/// What `make` returns for each of `values`, a new reference, as a list. Throws PythonError where it is null.
template <std::ranges::range Values, class F>
Ref list_of(Values&& values, F&& make) {
  Ref list(checked(PyList_New(0)));
  for (auto&& value : values) append(list, new_reference(make(value)));
  return list;
}

/// What `make` returns for 0 to `count` - 1, a new reference, as a tuple. Throws PythonError where it is
/// null.
template <class F>
Ref tuple_by_place(size_t count, F&& make) {
  Ref tuple(checked(PyTuple_New(static_cast<Py_ssize_t>(count))));
  for (size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), new_reference(make(i)));
  return tuple;
}
/// The same for each of `values`.
template <std::ranges::sized_range Values, class F>
Ref tuple_of(Values&& values, F&& make) {
  auto next = std::ranges::begin(values);
  return tuple_by_place(std::ranges::size(values), [&](size_t) { return make(*next++); });
}

}  // namespace tenon::python
