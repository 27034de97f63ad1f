// Introspection of the dispatcher as data: registrations, computed tables, keys, stubs, and the thread's own
// keys. introspection.cc has what is printed as text.
#include <fmt/format.h>

#include "python/src/call/dictionary.h"
#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/module_parts.h"
#include "python/src/modules/operator_argument.h"
#include "python/src/ops/key_set_object.h"
#include "tenon/dispatch/dispatcher.h"
#include "tenon/dispatch/stub.h"

namespace tenon::python {
namespace {

std::optional<DispatchKey> key_argument(const char* function, PyObject* o) {
  return key_asked_for(text_argument(function, "key", o));
}

PyObject* registrations(PyObject*, PyObject* o) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    const auto all = Dispatcher::singleton().registrations(registered_argument("registrations", "op", o));
    for (size_t i = 0; i < all.size(); ++i) {
      const KernelRegistration& r = all[i];
      const bool active = i == 0 || !(all[i - 1].key == r.key);
      const char* kind = r.function.is_fallthrough()       ? "fallthrough"
                         : r.function.is_not_implemented() ? "not implemented"
                         : r.function.types()              ? "typed"
                                                           : "boxed";
      append(list, Py_BuildValue("(sssiN)", key_name(r.key).c_str(), kind, r.where.file, r.where.line,
                                 PyBool_FromLong(active)));
    }
    return list.release();
  });
}

PyObject* computed_table(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto row = [](const TableCell& cell) {
      return Py_BuildValue("(sssi)", key_name(cell.key).c_str(), std::string(name(cell.source)).c_str(),
                           cell.where.file, cell.where.line);
    };
    const OperatorHandle op = operator_argument("computed_table", "op", o);
    return list_of(Dispatcher::singleton().computed_table(op), row).release();
  });
}

PyObject* defined_at(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto where = Dispatcher::singleton().defined_at(operator_argument("defined_at", "op", o));
    return where ? checked(Py_BuildValue("(si)", where->file, where->line)) : Py_NewRef(Py_None);
  });
}

PyObject* has_kernel_for_key(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("has_kernel_for_key", n, 2, [&] {
    const auto key = key_argument("has_kernel_for_key", args[1]);
    const OperatorHandle op = operator_argument("has_kernel_for_key", "op", args[0]);
    return PyBool_FromLong(key && Dispatcher::singleton().has_kernel_for_key(op, *key));
  });
}

PyObject* has_kernel_for_any_key(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("has_kernel_for_any_key", n, 2, [&] {
    const DispatchKeySet* keys = as_key_set(args[1]);
    if (!keys) wrong_type("has_kernel_for_any_key", "keys", "a DispatchKeySet", args[1]);
    return PyBool_FromLong(Dispatcher::singleton().has_kernel_for_any_key(
        operator_argument("has_kernel_for_any_key", "op", args[0]), *keys));
  });
}

PyObject* is_fallthrough(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("is_fallthrough", n, 2, [&] {
    const auto key = key_argument("is_fallthrough", args[1]);
    const OperatorHandle op = operator_argument("is_fallthrough", "op", args[0]);
    return PyBool_FromLong(key && Dispatcher::singleton().is_fallthrough(op, *key));
  });
}

PyObject* alias_key(PyObject*, PyObject* key) {
  return guarded([&] {
    const auto asked = key_argument("is_alias_key", key);
    return PyBool_FromLong(asked && is_alias_key(*asked));
  });
}

PyObject* included_in_alias(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("is_included_in_alias", n, 2, [&] {
    const auto named = [&](PyObject* o) {
      return known_key(text_argument("is_included_in_alias", "key", o));
    };
    return PyBool_FromLong(is_included_in_alias(named(args[0]), named(args[1])));
  });
}

PyObject* device_key(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto device = as_device(o);
    if (!device) wrong_type("key_for_device", "device", "a device or str", o);
    return to_python(key_name(DispatchKey(Functionality::Dense, device->backend)));
  });
}

PyObject* parsed_key(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto key = key_argument("key_parse", o);
    return key ? to_python(key_name(*key)) : Py_NewRef(o);
  });
}

PyObject* list_of_keys(const std::vector<DispatchKey>& keys) {
  return list_of(keys, [](DispatchKey key) { return to_python(key_name(key)); }).release();
}

PyObject* all_keys(PyObject*, PyObject*) {
  return guarded([&] { return list_of_keys(Dispatcher::singleton().all_keys()); });
}

PyObject* used_keys(PyObject*, PyObject*) {
  return guarded([&] { return list_of_keys(Dispatcher::singleton().used_keys()); });
}

PyObject* has_fallback(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto key = key_argument("has_fallback", o);
    return PyBool_FromLong(key && Dispatcher::singleton().has_fallback(*key));
  });
}

PyObject* operators_with_kernel(PyObject*, PyObject* o) {
  return guarded([&] {
    const auto key = key_argument("operators_with_kernel", o);
    return key ? texts(Dispatcher::singleton().operators_with_kernel(*key)).release() : PyList_New(0);
  });
}

PyObject* find_dangling_impls(PyObject*, PyObject*) {
  return guarded([&] {
    const auto name = [](OperatorHandle op) { return to_python(op.full_name()); };
    return list_of(Dispatcher::singleton().find_dangling_impls(), name).release();
  });
}

PyObject* check_invariants(PyObject*, PyObject* op) {
  return guarded([&] {
    if (op == Py_None)
      Dispatcher::singleton().check_invariants();
    else
      Dispatcher::singleton().check_invariants(registered_argument("check_invariants", "op", op));
  });
}

template <DispatchKeySet ThreadState::*member>
PyObject* thread_keys(PyObject*, PyObject*) {
  return wrap(thread_state.*member);
}

PyObject* backends(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    const auto add = [&](Backend b) {
      append(list, Py_BuildValue("(ss)", std::string(backend_name(b)).c_str(),
                                 std::string(backend_key(b)).c_str()));
    };
    for (Backend b = 0; b < live_backends(); ++b) {
      if (!backend_name(b).empty()) add(b);  // not one that was given back
    }
    add(kMetaBackend);
    return list.release();
  });
}

PyObject* stubs(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list(checked(PyList_New(0)));
    for (const StubBase* stub : StubBase::all()) {
      const Ref devices(checked(PyList_New(0)));
      const Ref own(checked(PyList_New(0)));
      for (const Backend b : stub->backends()) {
        if (backend_name(b).empty())
          continue;  // a default that serves every backend counts those to come, too
        append(devices, to_python(backend_name(b)));
        if (stub->has_own(b)) append(own, to_python(backend_name(b)));
      }
      append(list, Py_BuildValue("(ssOO)", std::string(stub->name()).c_str(),
                                 std::string(stub->signature()).c_str(), devices.get(), own.get()));
    }
    return list.release();
  });
}

/// Sets a set of the thread's keys and returns what it was.
template <DispatchKeySet ThreadState::*member>
PyObject* exchange_keys(PyObject*, PyObject* o) {
  return guarded([&] {
    const DispatchKeySet* keys = as_key_set(o);
    if (!keys) wrong_type("keys", "keys", "a DispatchKeySet", o);
    return wrap(std::exchange(thread_state.*member, *keys));
  });
}
PyObject* exchange_excluded(PyObject*, PyObject* o) {
  return guarded([&] {
    const DispatchKeySet* keys = as_key_set(o);
    if (!keys) wrong_type("exclude", "keys", "a DispatchKeySet", o);
    // Functionalities only; see ThreadState.
    return wrap(
        std::exchange(thread_state.excluded, *keys & DispatchKeySet(DispatchKeySet::kFunctionalityBits)));
  });
}

PyMethodDef g_dispatch_queries_functions[] = {
    {"registrations", &registrations, METH_O, "[(key, kind, file, line, active)], newest first in each key."},
    {"computed_table", &computed_table, METH_O, "[(key, source, file, line)] for every key."},
    {"defined_at", &defined_at, METH_O, "(file, line) of an operator's declaration."},
    fast_method("has_kernel_for_key", &has_kernel_for_key, "has_kernel_for_key(op, key)"),
    fast_method("has_kernel_for_any_key", &has_kernel_for_any_key, "has_kernel_for_any_key(op, keyset)"),
    fast_method("is_fallthrough", &is_fallthrough, "is_fallthrough(op, key)"),
    {"is_alias_key", &alias_key, METH_O,
     "is_alias_key(key, /)\n--\n\n"
     "Whether a key stands for several."},
    fast_method("is_included_in_alias", &included_in_alias,
                "is_included_in_alias(key, alias)\n--\n\n"
                "Whether an alias stands for a key."),
    {"key_for_device", &device_key, METH_O,
     "key_for_device(device, /)\n--\n\n"
     "The dense key of a device."},
    {"key_parse", &parsed_key, METH_O,
     "key_parse(key, /)\n--\n\n"
     "The name of a key as tables print it."},
    {"backends", &backends, METH_NOARGS, "[(device, key)] in rising priority."},
    {"stubs", &stubs, METH_NOARGS, "[(name, signature, devices, devices with a function of their own)]"},
    {"all_keys", &all_keys, METH_NOARGS, "The names of all runtime keys, dense ones first."},
    {"used_keys", &used_keys, METH_NOARGS, "Those that a call may arrive at."},
    {"has_fallback", &has_fallback, METH_O,
     "has_fallback(key, /)\n--\n\n"
     "Whether a key has a fallback."},
    {"operators_with_kernel", &operators_with_kernel, METH_O,
     "operators_with_kernel(key, /)\n--\n\n"
     "Operators with a kernel for a key."},
    {"find_dangling_impls", &find_dangling_impls, METH_NOARGS,
     "find_dangling_impls()\n--\n\n"
     "Operators with kernels and no declaration."},
    {"check_invariants", &check_invariants, METH_O, "Of an operator, or of all for None."},
    {"included_keys", &thread_keys<&ThreadState::included>, METH_NOARGS,
     "included_keys()\n--\n\n"
     "What every call of the thread has."},
    {"excluded_keys", &thread_keys<&ThreadState::excluded>, METH_NOARGS,
     "excluded_keys()\n--\n\n"
     "What no call of the thread has."},
    {"_set_included", &exchange_keys<&ThreadState::included>, METH_O, nullptr},
    {"_set_excluded", &exchange_excluded, METH_O, nullptr},
    {}};

}  // namespace

bool add_dispatch_queries(PyObject* module) {
  const Ref dispatch(PyObject_GetAttrString(module, "dispatch"));
  return dispatch && PyModule_AddFunctions(dispatch.get(), g_dispatch_queries_functions) == 0 &&
         add_key_set_type(dispatch.get());
}

}  // namespace tenon::python
