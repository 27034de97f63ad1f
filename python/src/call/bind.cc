#include "python/src/call/bind.h"

#include <cstring>

#include "python/src/call/parser.h"

namespace tenon::python {

int find_param(const Overload& o, PyObject* keyword) noexcept {
  for (int i = 0; i < o.num_params; ++i) {
    if (o.names[i] == keyword) return i;
  }
  const char* name = PyUnicode_AsUTF8(keyword);
  if (!name) {
    PyErr_Clear();
    return -1;
  }
  constexpr const char* kAliases[][2] = {{"axis", "dim"}, {"keepdims", "keepdim"}, {"input", "self"}};
  for (int i = 0; i < o.num_params; ++i) {
    if (std::strcmp(o.params[i].name, name) == 0) return i;
    for (const auto& [alias, canonical] : kAliases) {
      if (std::strcmp(alias, name) == 0 && std::strcmp(o.params[i].name, canonical) == 0) return i;
    }
  }
  return -1;
}

bool is_named(PyObject* keyword, const char* name) noexcept {
  return PyUnicode_CompareWithASCIIString(keyword, name) == 0;
}

namespace {

/// Spreads the tuple of `out=(a, b)` over the parameters of an operator with several; one may have
/// the name `out` itself.
bool bind_outs(const Overload& o, PyObject* value, PyObject** slots) noexcept {
  if (PyTuple_GET_SIZE(value) != o.num_out) return false;
  Py_ssize_t next = 0;
  for (int i = 0; i < o.num_params; ++i) {
    if (o.params[i].is_out) slots[i] = PyTuple_GET_ITEM(value, next++);
  }
  return true;
}

bool bind_keywords(const Overload& o, const Arguments& a, PyObject** slots) noexcept {
  const Py_ssize_t n = PyTuple_GET_SIZE(a.keywords);
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(a.keywords, k);
    PyObject* value = a.args[a.count + k];
    const int i = find_param(o, keyword);
    if (o.num_out > 1 && PyTuple_Check(value) && is_named(keyword, "out")) {
      if (!bind_outs(o, value, slots)) return false;
    } else if (i >= 0) {
      if (slots[i]) return false;
      slots[i] = value;
    } else if (o.takes_requires_grad && is_named(keyword, "requires_grad")) {
      slots[o.num_params] = value;
    } else if (value != Py_None || !is_named(keyword, "out")) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool looks_like_int(PyObject* o) noexcept {
  return PyLong_Check(o) || (PyIndex_Check(o) && (!is_tensor(o) || tensor_of(o).dim() == 0));
}

bool bind(const Overload& o, const Arguments& a, PyObject** slots) noexcept {
  const int own = a.self ? 1 : 0;
  const int self_at = a.self ? o.self_position : -1;
  int next = 0;
  const auto take = [&](PyObject* value) {
    if (next == self_at) slots[next++] = a.self;
    slots[next++] = value;
  };
  if (o.variadic && own == o.num_positional - 1 && a.count > 0 && looks_like_int(a.args[0])) [[unlikely]] {
    take(kRest);
  } else if (a.count > o.num_positional - own) {
    return false;
  } else {
    for (Py_ssize_t i = 0; i < a.count; ++i) take(a.args[i]);
  }
  for (int i = next; i <= o.num_params; ++i) slots[i] = nullptr;
  if (self_at >= next) slots[self_at] = a.self;
  if (a.keywords && !bind_keywords(o, a, slots)) return false;
  for (int i = next; i < o.num_params; ++i) {
    if (!slots[i] && o.params[i].fallback.kind == Default::Kind::Required) return false;
  }
  return true;
}

}  // namespace tenon::python
