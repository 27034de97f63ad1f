#include "python/src/call/entry_points.h"

#include <utility>

namespace tenon::python {
namespace {

template <size_t I>
PyObject* function_entry(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return call(g_functions[I], {nullptr, args, count, keywords});
}
template <size_t I>
PyObject* method_entry(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return call(g_methods[I], {self, args, count, keywords});
}

template <size_t... I>
constexpr std::array<FastFunction, sizeof...(I)> function_entries(std::index_sequence<I...>) {
  return {&function_entry<I>...};
}
template <size_t... I>
constexpr std::array<FastFunction, sizeof...(I)> method_entries(std::index_sequence<I...>) {
  return {&method_entry<I>...};
}

}  // namespace

constinit const std::array<FastFunction, kFunctionEntries> kFunctionEntryPoints =
    function_entries(std::make_index_sequence<kFunctionEntries>());
constinit const std::array<FastFunction, kMethodEntries> kMethodEntryPoints =
    method_entries(std::make_index_sequence<kMethodEntries>());

}  // namespace tenon::python
