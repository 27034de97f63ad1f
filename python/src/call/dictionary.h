// Dictionaries and lists that modules make for Python.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "python/src/call/python_value.h"
#include "python/src/interpreter/sequences.h"

namespace tenon::python {

inline void set(const Ref& dict, std::string_view name, uint64_t value) {
  put(dict, name, PyLong_FromUnsignedLongLong(value));
}
inline void set(const Ref& dict, std::string_view name, std::string_view text) {
  put(dict, name, to_python(text));
}
inline Ref texts(const std::vector<std::string>& all) { return list_of(all, to_python); }
inline Ref counted(const std::map<std::string, uint64_t>& counts) {
  Ref dict(checked(PyDict_New()));
  for (const auto& [name, n] : counts) set(dict, name, n);
  return dict;
}

}  // namespace tenon::python
