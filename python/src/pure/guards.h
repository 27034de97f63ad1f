// Guards: what a replayed program read of Python's state, beside its arguments and its tensors, and how that
// is compared before the replay. Made by python/tenon/pure.py, which finds out what there is to compare.
// Knows nothing of tensors.
#pragma once

#include <vector>

#include "python/src/interpreter/reference.h"

namespace tenon::python::pure {

/// One comparison. `expected` is the same object, or an equal number, text or bool.
struct Guard {
  enum class Kind : uint8_t {
    Entry,     ///< A dict's value for `key`.
    NoEntry,   ///< A dict without `key`.
    Size,      ///< The number of entries of a dict, a list or a set.
    Item,      ///< Item `number` of a list.
    Cell,      ///< What a closure's variable holds.
    Code,      ///< A function's code.
    Defaults,  ///< A function's defaults; `number` is 1 for those of its keyword-only arguments.
    Type,      ///< A class whose version_of_class is `number`.
    Dict,      ///< The __dict__ of an object.
    Class,     ///< The class of an object.
    Elements,  ///< A set that has the elements of the tuple `expected`, in this order.
    Keys,      ///< A dict that has the keys of the tuple `expected`, in this order.
    Member,    ///< The attribute `key` of an object whose class, made in C, has no others.
    Result,    ///< What a function in C returns that takes nothing and has no effects.
  };
  static constexpr int kKinds = 14;

  Kind kind;
  int64_t number = 0;
  Ref object, key, expected;
  Ref path;  ///< What the program calls it: "model.scale".
};

/// Changes with every change of a class's attributes or bases, or of those of its bases; -1 if it has none,
/// which no comparison fits. Throws PythonError.
int64_t version_of_class(PyObject* type);

class Guards {
 public:
  /// Takes a list of tuples (kind, object, key or None, expected or None, number, path). `exact`: an equal
  /// number or text is not enough, as the program may tell objects apart by `is`. Throws PythonError.
  explicit Guards(PyObject* list, bool exact = false);

  /// The first comparison that fails; null if all hold. Runs no code of the program.
  const Guard* broken() noexcept;
  int traverse(visitproc visit, void* arg) const;

 private:
  /// Comparisons with the entries of one dict, up to `end` in `guards_`: they still hold while the dict is of
  /// the version that they held for.
  struct OfDict {
    PyObject* dict;
    size_t end;
    uint64_t version = 0;
  };

  /// A comparison of what an object has at one place for as long as it lives. It holds if the pointer there
  /// is this one, and is made in full if not.
  struct OfPointer {
    const void* place;
    const void* expected;
  };

  const Guard* first_broken(size_t begin, size_t end) const noexcept;

  bool exact_;
  std::vector<Guard> guards_;  ///< Dict by dict, then those of pointers, then the others.
  std::vector<OfDict> dicts_;
  std::vector<OfPointer> pointers_;
};

/// What is now where a comparison found `expected`: a dict's value, a list's item, a closure's variable. A
/// new reference; null for comparisons of another kind, and where nothing is there.
Ref value_now(const Guard& guard) noexcept;

/// Whether `now` is `expected`, or an equal number, text or bool of the same type. NaN is but itself.
bool is_same(PyObject* now, PyObject* expected) noexcept;

}  // namespace tenon::python::pure
