#include "python/src/ops/key_set_object.h"

#include <fmt/format.h>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/interpreter/sequences.h"

namespace tenon::python {
namespace {

struct KeySetObject {
  PyObject_HEAD DispatchKeySet value;
};
PyTypeObject g_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

DispatchKeySet value_of(PyObject* o) noexcept { return reinterpret_cast<KeySetObject*>(o)->value; }

DispatchKeySet set_of(std::string_view name) {
  const DispatchKey key = known_key(name);
  if (key == kAutogradAlias) return kAutogradKeys;
  TENON_CHECK(!is_alias_key(key), Value,
              "DispatchKeySet: " + key_name(key) + " stands for several keys; name one of them");
  return is_per_backend(key.functionality) ? DispatchKeySet(key.functionality, key.backend)
                                           : DispatchKeySet(key.functionality);
}

PyObject* construct(PyTypeObject*, PyObject* args, PyObject* keywords) {
  return guarded([&] {
    TENON_CHECK(!keywords, Type, "DispatchKeySet() takes no keywords");
    DispatchKeySet keys;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      PyObject* o = PyTuple_GET_ITEM(args, i);
      std::string_view name;
      if (is_tensor(o))
        keys |= tensor_of(o).key_set();
      else if (parse_text(o, name))
        keys |= set_of(name);
      else
        wrong_type("DispatchKeySet", "keys", "Tensors or names of keys", o);
    }
    return wrap(keys);
  });
}

PyObject* names(PyObject* o, PyObject*) {
  return guarded([&] {
    return list_of(keys_of(value_of(o)), [&](const DispatchKey key) { return to_python(key_name(key)); })
        .release();
  });
}

int contains(PyObject* o, PyObject* name) {
  return guarded([&] {
    std::string_view text;
    if (!parse_text(name, text)) wrong_type("DispatchKeySet", "key", "a key's name", name);
    return static_cast<int>(value_of(o).has_all(set_of(text)));
  });
}

PyObject* below(PyObject* o, PyObject* name) {
  return guarded([&] {
    std::string_view text;
    if (!parse_text(name, text)) wrong_type("below", "key", "a key's name", name);
    return wrap(value_of(o).below(set_of(text).functionality()));
  });
}

// What follows has PyTorch's names.

PyObject* has(PyObject* o, PyObject* name) {
  const int in = contains(o, name);
  return in < 0 ? nullptr : PyBool_FromLong(in);
}

PyObject* add(PyObject* o, PyObject* name) {
  return guarded([&] { return wrap(value_of(o) | set_of(text_argument("add", "key", name))); });
}

PyObject* remove(PyObject* o, PyObject* name) {
  return guarded([&] { return wrap(value_of(o) - set_of(text_argument("remove", "key", name))); });
}

PyObject* highest_key(PyObject* o, PyObject*) {
  return guarded([&] {
    const DispatchKeySet keys = value_of(o);
    if (keys.empty()) return to_python("Undefined");
    const Functionality f = keys.functionality();
    return to_python(key_name(is_per_backend(f) ? DispatchKey(f, keys.backend()) : DispatchKey(f)));
  });
}

PyObject* bits(PyObject* o, PyObject*) { return PyLong_FromUnsignedLongLong(value_of(o).bits()); }

PyObject* from_bits(PyObject*, PyObject* o) {
  return guarded([&] {
    const unsigned long long value = PyLong_AsUnsignedLongLong(o);
    if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred()) throw PythonError();
    return wrap(DispatchKeySet(static_cast<uint64_t>(value)));
  });
}

template <class F>
PyObject* combine(PyObject* a, PyObject* b, F&& f) {
  if (!as_key_set(a) || !as_key_set(b)) Py_RETURN_NOTIMPLEMENTED;
  return wrap(f(value_of(a), value_of(b)));
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (!as_key_set(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value_of(a) == value_of(b)) == (op == Py_EQ));
}

PyMethodDef g_key_set_object_methods[] = {
    {"names", &names, METH_NOARGS, "The names of its keys, in rising priority."},
    {"below", &below, METH_O, "The keys below one: what a kernel at that key passes to redispatch."},
    {"has", &has, METH_O, "Whether a key is in it."},
    {"add", &add, METH_O, "The set with one more key."},
    {"remove", &remove, METH_O, "The set without a key's functionality."},
    {"highestPriorityTypeId", &highest_key, METH_NOARGS, "The name of the key that a call goes to first."},
    {"raw_repr", &bits, METH_NOARGS, "Its 64 bits as a number."},
    {"from_raw_repr", &from_bits, METH_O | METH_STATIC, "The set of a number that raw_repr() gave."},
    {}};
PyNumberMethods g_number = {};
PySequenceMethods g_sequence = {};

}  // namespace

PyObject* wrap(DispatchKeySet keys) noexcept {
  auto* o = PyObject_New(KeySetObject, &g_type);
  if (o) o->value = keys;
  return reinterpret_cast<PyObject*>(o);
}

const DispatchKeySet* as_key_set(PyObject* o) noexcept {
  return Py_IS_TYPE(o, &g_type) ? &reinterpret_cast<KeySetObject*>(o)->value : nullptr;
}

void check_key(std::string_view name) {
  TENON_CHECK(is_known_key(name), Value,
              fmt::format("DispatchKey: '{}' is no dispatch key and no loaded device has it; keys are CPU, "
                          "Meta, CUDA, Autograd, "
                          "AutogradCPU, CompositeImplicit, CompositeExplicit and their like",
                          name));
}

std::optional<DispatchKey> key_asked_for(std::string_view name) {
  check_key(name);
  return find_key(name);
}
DispatchKey known_key(std::string_view name) {
  check_key(name);
  return key_parse(name);
}
DispatchKey key_to_fill(std::string_view name) {
  check_key(name);
  return key_to_register(name);
}

bool add_key_set_type(PyObject* module) {
  g_number.nb_or = [](PyObject* a, PyObject* b) {
    return combine(a, b, [](DispatchKeySet x, DispatchKeySet y) { return x | y; });
  };
  g_number.nb_and = [](PyObject* a, PyObject* b) {
    return combine(a, b, [](DispatchKeySet x, DispatchKeySet y) { return x & y; });
  };
  g_number.nb_subtract = [](PyObject* a, PyObject* b) {
    return combine(a, b, [](DispatchKeySet x, DispatchKeySet y) { return x - y; });
  };
  g_sequence.sq_contains = &contains;
  PyTypeObject& t = g_type;
  t.tp_name = "tenon.dispatch.DispatchKeySet";
  t.tp_doc = "The keys that take part in a call: DispatchKeySet(tensor, \"AutogradCPU\", ...).";
  t.tp_basicsize = sizeof(KeySetObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_new = &construct;
  t.tp_repr = [](PyObject* o) { return to_python(to_string(value_of(o))); };
  t.tp_hash = [](PyObject* o) { return static_cast<Py_hash_t>(value_of(o).bits() % 0x7FFFFFFFFFFFFFull); };
  t.tp_richcompare = &compare;
  t.tp_methods = g_key_set_object_methods;
  t.tp_as_number = &g_number;
  t.tp_as_sequence = &g_sequence;
  return add_type(module, "DispatchKeySet", t);
}

}  // namespace tenon::python
