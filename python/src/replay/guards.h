// Guards: the dicts and lists of modules, optimizers and arguments as they were when a replay was captured.
// Made by python/tenon/_replay/collector.py, compared before each replay. Does not depend on tensors.
#pragma once

#include <vector>

#include "python/src/interpreter/reference.h"

namespace tenon::python::replay {

/// A dict or a list that has to hold the same objects in the same order, or equal numbers, texts and bools.
struct Guard {
  struct Entry {
    Ref key;       ///< Of a dict; null for a list.
    Ref expected;  ///< Null: any value.
    Ref label;     ///< The program's name for it: "`model.scale`".
  };
  Ref object;
  std::vector<Entry> entries;
  Ref label;
};

class Guards {
 public:
  /// Takes a list of tuples (dict or list, label, keys or None, values, labels), the last three as long as
  /// the object. A value that is `...` may change. Throws PythonError.
  explicit Guards(PyObject* list);

  struct Broken {
    const Guard* guard = nullptr;         ///< Null if all hold.
    const Guard::Entry* entry = nullptr;  ///< Null if the number of entries or a key differs.
  };
  /// The first guard that does not hold. Runs no code of the program.
  Broken broken() const noexcept;
  int traverse(visitproc visit, void* arg) const;

 private:
  std::vector<Guard> guards_;
};

/// What is now in the place of an entry: a new reference, null where there is nothing.
Ref value_now(const Guards::Broken& broken) noexcept;

/// Whether `now` is `expected`, or an equal number, text or bool of the same type. NaN is but itself.
bool is_same(PyObject* now, PyObject* expected) noexcept;

}  // namespace tenon::python::replay
