#include "python/src/replay/structure.h"

#include <algorithm>

#include "python/src/interpreter/errors.h"
#include "python/src/replay/guards.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/core/error.h"

namespace tenon::python::replay {

Structure::Structure(PyObject* description, std::span<const size_t> numbers) {
  int which = 0;
  PyObject *content, *names = nullptr;
  if (!PyArg_ParseTuple(description, "iO|O", &which, &content, &names)) throw PythonError();
  TENON_CHECK(0 <= which && which < kKinds, Internal, "a structure of an unknown kind");
  kind = static_cast<Kind>(which);
  if (kind == Kind::Tensor || kind == Kind::Given) {
    number = PyLong_AsSize_t(content);
    if (PyErr_Occurred()) throw PythonError();
    if (kind == Kind::Tensor && !numbers.empty()) number = numbers[number];
    return;
  }
  if (kind == Kind::Constant) {
    constant = Ref::borrow(content);
    return;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(content); ++i)
    items.emplace_back(PyList_GET_ITEM(content, i), numbers);
  for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(names); ++i)
    keys.push_back(Ref::borrow(PyList_GET_ITEM(names, i)));
}

void Structure::Call::clear() noexcept {
  tensors.clear();
  containers.clear();
}

bool Structure::matches(PyObject* o, Call& call) const noexcept {
  switch (kind) {
    case Kind::Tensor:
      if (!is_tensor(o)) return false;
      call.tensors.push_back(o);
      return true;
    case Kind::Constant:
      return is_same(o, constant.get());
    case Kind::Given:
      return false;  // of results alone
    case Kind::Tuple:
      if (!PyTuple_CheckExact(o) || static_cast<size_t>(PyTuple_GET_SIZE(o)) != items.size()) return false;
      call.containers.push_back(o);
      for (size_t i = 0; i < items.size(); ++i) {
        if (!items[i].matches(PyTuple_GET_ITEM(o, static_cast<Py_ssize_t>(i)), call)) return false;
      }
      return true;
    case Kind::List:
      if (!PyList_CheckExact(o) || static_cast<size_t>(PyList_GET_SIZE(o)) != items.size()) return false;
      call.containers.push_back(o);
      for (size_t i = 0; i < items.size(); ++i) {
        if (!items[i].matches(PyList_GET_ITEM(o, static_cast<Py_ssize_t>(i)), call)) return false;
      }
      return true;
    case Kind::Dict: {
      if (!PyDict_CheckExact(o) || static_cast<size_t>(PyDict_GET_SIZE(o)) != items.size()) return false;
      call.containers.push_back(o);
      Py_ssize_t at = 0;
      PyObject *key, *value;
      for (size_t i = 0; PyDict_Next(o, &at, &key, &value); ++i) {
        if (!is_same(key, keys[i].get()) || !items[i].matches(value, call)) return false;
      }
      return true;
    }
  }
  return false;
}

bool Structure::operator==(const Structure& other) const noexcept {
  const auto same = [](const Ref& a, const Ref& b) { return is_same(a.get(), b.get()); };
  return kind == other.kind && number == other.number && same(constant, other.constant) &&
         items == other.items && std::ranges::equal(keys, other.keys, same);
}

int Structure::traverse(visitproc visit, void* arg) const {
  Py_VISIT(constant.get());
  for (const Ref& key : keys) Py_VISIT(key.get());
  for (const Structure& item : items) {
    if (const int stop = item.traverse(visit, arg)) return stop;
  }
  return 0;
}

}  // namespace tenon::python::replay
