// Identities: which of the arguments of a program were one object, and which were objects that it has
// captured, as `is` tells. Used by replays. Knows nothing of what the objects are.
#pragma once

#include <span>
#include <vector>

#include "python/src/interpreter/reference.h"

namespace tenon::python::replay {

class Identities {
 public:
  /// `given` are objects among the arguments, `captured` is a list of those that any of them could be.
  Identities(std::span<PyObject* const> given, PyObject* captured);

  /// Whether the objects of another call, as many, are the same among each other and among the captured.
  bool hold(std::span<PyObject* const> given) const noexcept;

 private:
  struct One {
    size_t same_as;      ///< The first of `given` that is this object.
    PyObject* captured;  ///< Null if it is none of these.
  };
  std::vector<One> given_;
  std::vector<PyObject*> captured_;  ///< Sorted addresses; the objects may be gone.

  PyObject* find(PyObject* o) const noexcept;
};

}  // namespace tenon::python::replay
