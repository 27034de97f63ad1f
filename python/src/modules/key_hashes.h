// KeyHashes: how many keys of one dict or set have the same hash. load refuses a file that has many, and save
// refuses to write one.
#pragma once

#include <unordered_map>

#include "python/src/interpreter/errors.h"

namespace tenon::python {

/// Keys of one dict or set by their hash. Numbers and tuples can be chosen so that all have one, and every
/// key is then compared with every other.
class KeyHashes {
 public:
  static constexpr const char* kProblem = "more than 200 keys of a dict or set have one hash";

  explicit KeyHashes(size_t keys) : counts_(keys > kFew) {}
  /// Whether few keys so far have the hash of `key`.
  [[nodiscard]] bool add(PyObject* key) {
    if (!counts_) return true;
    const Py_hash_t hash = PyObject_Hash(key);
    if (hash == -1 && PyErr_Occurred()) throw PythonError();
    return ++keys_[hash] <= kFew;
  }

 private:
  static constexpr size_t kFew = 200;
  const bool counts_;
  std::unordered_map<Py_hash_t, size_t> keys_;
};

}  // namespace tenon::python
