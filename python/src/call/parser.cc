#include "python/src/call/parser.h"

namespace tenon::python {
namespace {

PyObject g_rest_marker = {_PyObject_EXTRA_INIT 1, &PyBaseObject_Type};

/// Calls `take` with each item of a list or tuple until it says no.
template <class F>
bool for_each_item(PyObject* o, F&& take) {
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(o); ++i) {
    // An item's own __index__ may change the list while it is read.
    if (!take(Ref::borrow(PySequence_Fast_GET_ITEM(o, i)).get())) return false;
  }
  return true;
}

}  // namespace

PyObject* const kRest = &g_rest_marker;

bool parse_ints(PyObject* o, Dims& out) {
  const auto take = [&](PyObject* item) {
    int64_t value = 0;
    if (!parse_int(item, value)) return false;
    out.push_back(value);
    return true;
  };
  out.clear();
  if (is_sequence(o)) return for_each_item(o, take);
  if (!is_numpy_array(o)) return false;
  const Ref list(PySequence_List(o));
  if (!list) {
    PyErr_Clear();  // an array without dimensions
    return false;
  }
  return for_each_item(list.get(), take);
}

bool parse_floats(PyObject* o, std::vector<double>& out) {
  return is_sequence(o) &&
         for_each_item(o, [&](PyObject* item) { return parse_float(item, out.emplace_back()); });
}

bool parse_bools(PyObject* o, SmallVector<bool, 8>& out) {
  return is_sequence(o) && for_each_item(o, [&](PyObject* item) {
           bool value = false;
           if (!parse_bool(item, value)) return false;
           out.push_back(value);
           return true;
         });
}

bool parse_scalars(PyObject* o, std::vector<Scalar>& out) {
  return is_sequence(o) &&
         for_each_item(o, [&](PyObject* item) { return parse_scalar(item, out.emplace_back()); });
}

bool parse_tensors(PyObject* o, bool allow_none, std::vector<Tensor>& out) {
  return is_sequence(o) && for_each_item(o, [&](PyObject* item) {
           if (!is_tensor(item)) {
             out.emplace_back();
             return allow_none && item == Py_None;
           }
           out.push_back(tensor_of(item));
           return true;
         });
}

bool parse_rest(const Given& given, Dims& out) {
  for (Py_ssize_t i = 0; i < given.all.count; ++i) {
    int64_t value = 0;
    if (!parse_int(given.all.args[i], value)) return false;
    out.push_back(value);
  }
  return true;
}

bool Parser<Tensor&>::parse_absent(const Given& g, Storage& s) {
  static Tensor absent;
  s = &absent;
  return g.object == Py_None && g.param.optional;
}

bool Parser<const Tensor&>::parse_other(const Given& g, Storage& s) {
  s.tensor = &s.made;
  if (!g.object) return true;
  if (g.object == Py_None) return g.param.optional;
  Scalar number;
  if (!g.all.numbers_as_tensors || !parse_scalar(g.object, number)) return false;
  s.made = wrapped_scalar_tensor(number);
  return true;
}

}  // namespace tenon::python
