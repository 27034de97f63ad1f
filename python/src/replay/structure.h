// Structure: how the arguments or the results of a program are nested, with tensors at the leaves. Used by
// replays, which match arguments and make results. Independent of the tensors' headers.
#pragma once

#include <span>
#include <vector>

#include "python/src/interpreter/reference.h"

namespace tenon::python::replay {

struct Structure {
  enum class Kind : uint8_t {
    Tensor,    ///< The tensor `number`.
    Constant,  ///< The same object, or an equal number or text.
    Tuple,
    List,
    Dict,   ///< With `keys`, in this order.
    Given,  ///< Of a result: the container `number` among the arguments.
  };
  static constexpr int kKinds = 6;

  /// Takes (kind, number) for a tensor, (kind, object) for a constant, (kind, [items]), (kind, [items],
  /// [keys]), (kind, number) for a container that was given. `numbers` has other numbers for those of the
  /// tensors, if it is not empty. Throws PythonError.
  explicit Structure(PyObject* description, std::span<const size_t> numbers = {});

  /// What a call was given.
  struct Call {
    std::vector<PyObject*> tensors;     ///< In the order of their numbers.
    std::vector<PyObject*> containers;  ///< Each before those inside it.
    void clear() noexcept;
  };
  /// Whether `o` is nested this way. Appends to `call` what it consists of.
  bool matches(PyObject* o, Call& call) const noexcept;
  /// An object that is nested this way; `make(number)` makes a tensor. A new reference; throws PythonError.
  template <class Make>
  PyObject* build(const Call& call, Make&& make) const;

  /// Whether another structure is the same. Constants that are objects are the same object.
  bool operator==(const Structure& other) const noexcept;
  int traverse(visitproc visit, void* arg) const;

  Kind kind;
  size_t number = 0;
  Ref constant;
  std::vector<Structure> items;
  std::vector<Ref> keys;
};

template <class Make>
PyObject* Structure::build(const Call& call, Make&& make) const {
  if (kind == Kind::Tensor) return make(number);
  if (kind == Kind::Given) return Py_NewRef(call.containers[number]);
  if (kind == Kind::Constant) return Py_NewRef(constant.get());
  const auto size = static_cast<Py_ssize_t>(items.size());
  Ref made(kind == Kind::Tuple ? PyTuple_New(size) : kind == Kind::List ? PyList_New(size) : PyDict_New());
  for (Py_ssize_t i = 0; made && i < size; ++i) {
    Ref item(items[static_cast<size_t>(i)].build(call, make));
    if (!item) return nullptr;
    if (kind == Kind::Tuple) {
      PyTuple_SET_ITEM(made.get(), i, item.release());
    } else if (kind == Kind::List) {
      PyList_SET_ITEM(made.get(), i, item.release());
    } else if (PyDict_SetItem(made.get(), keys[static_cast<size_t>(i)].get(), item.get()) < 0) {
      return nullptr;
    }
  }
  return made.release();
}

}  // namespace tenon::python::replay
