// Identities: which of the arguments of a program were one object, and which were objects that the program
// names, such as a sentinel, as `is` tells. Used by replays. Does not depend on what the objects are.
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
  int traverse(visitproc visit, void* arg) const;

 private:
  struct Given {
    size_t same_as;      ///< The first of `given` that is this object.
    PyObject* captured;  ///< Null if it is none of these.
  };
  std::vector<Given> given_;
  std::vector<Ref> captured_;  ///< Sorted by their addresses.

  PyObject* find(PyObject* o) const noexcept;
};

}  // namespace tenon::python::replay
