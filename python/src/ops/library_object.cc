// tenon._C._Library: registrations made from Python, which are removed when the object is destroyed. Users
// see python/tenon/library.py.
#include "tenon/dispatch/library.h"

#include <fmt/format.h>

#include <memory>
#include <unordered_set>

#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/module_parts.h"
#include "python/src/ops/key_set_object.h"
#include "python/src/ops/python_autograd.h"
#include "python/src/ops/python_kernel.h"
#include "tenon/autograd/fallback.h"
#include "tenon/dispatch/closure.h"

namespace tenon::python {
namespace {

struct Registered {
  explicit Registered(std::unique_ptr<Library> own) : own(std::move(own)) {}
  std::unique_ptr<Library> own;
  std::vector<std::unique_ptr<Library>> fallbacks;  ///< Each of one key.
};
struct LibraryObject {
  PyObject_HEAD std::unique_ptr<Registered> value;
};
PyTypeObject g_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

std::unique_ptr<Registered>& value_of(PyObject* o) noexcept {
  return reinterpret_cast<LibraryObject*>(o)->value;
}
Registered& registered_of(PyObject* o) {
  TENON_CHECK(value_of(o), Runtime, "Library: it was destroyed; make another");
  return *value_of(o);
}
Library& library_of(PyObject* o) { return *registered_of(o).own; }

/// The file and line of a registration. The dispatcher keeps the text as long as the process runs.
SourceLocation place(const char* function, PyObject* file, PyObject* line) {
  static auto& files = *new std::unordered_set<std::string>;
  const int64_t number = int_argument(function, "line", line);
  return {files.insert(text_argument(function, "file", file)).first->c_str(), static_cast<int>(number)};
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    check_count("_Library", PyTuple_GET_SIZE(args), 5);
    const auto arg = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(args, i); };
    const std::string kind = text_argument("Library", "kind", arg(1));
    TENON_CHECK(kind == "DEF" || kind == "IMPL" || kind == "FRAGMENT", Value,
                fmt::format("Library: kind is '{}', expected 'DEF', 'IMPL' or 'FRAGMENT'", kind));
    auto library = std::make_unique<Library>(kind == "DEF"    ? Library::Kind::Def
                                             : kind == "IMPL" ? Library::Kind::Impl
                                                              : Library::Kind::Fragment,
                                             text_argument("Library", "ns", arg(0)),
                                             text_argument("Library", "dispatch_key", arg(2)),
                                             place("Library", arg(3), arg(4)));
    PyObject* self = checked(type->tp_alloc(type, 0));
    new (&value_of(self)) std::unique_ptr<Registered>(std::make_unique<Registered>(std::move(library)));
    return self;
  });
}

/// define(schema, names of tags, file, line)
PyObject* define(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("define", n, 4, [&] {
    const std::string text = text_argument("define", "schema", args[0]);
    Tags tags;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); ++i)
      tags.add(parse_tag(text_argument("define", "tags", PyTuple_GET_ITEM(args[1], i))));
    library_of(o).def(text, tags, place("define", args[2], args[3]));
  });
}

/// impl(name, key, function, with_keyset, file, line); if function is None, calls fall through the key.
PyObject* impl(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("impl", n, 6, [&] {
    const std::string name = text_argument("impl", "name", args[0]);
    const DispatchKey key = key_to_fill(text_argument("impl", "dispatch_key", args[1]));
    const SourceLocation where = place("impl", args[4], args[5]);
    if (args[2] == Py_None) {
      library_of(o).impl(name, key, CppFunction::make_fallthrough(), where);
      return;
    }
    if (!PyCallable_Check(args[2])) wrong_type("impl", "fn", "callable", args[2]);
    auto kernel = std::make_shared<PythonKernel>(args[2], key, where, flag("impl", "with_keyset", args[3]));
    library_of(o).impl(name, key, CppFunction::from_closure(std::move(kernel), &enter_python_kernel), where);
  });
}

/// fallback(key, function, file, line); if function is None, calls fall through the key.
PyObject* fallback(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("fallback", n, 4, [&] {
    const std::string name = text_argument("fallback", "dispatch_key", args[0]);
    const SourceLocation where = place("fallback", args[2], args[3]);
    Registered& all = registered_of(o);
    CppFunction f = CppFunction::make_fallthrough();
    if (args[1] != Py_None) {
      auto kernel = std::make_shared<PythonFallback>(args[1], key_to_fill(name), where);
      f = CppFunction::from_closure(std::move(kernel), &enter_python_fallback);
    }
    auto library = std::make_unique<Library>(Library::Kind::Impl, "_", name, where);
    library->fallback(std::move(f), where);
    all.fallbacks.push_back(std::move(library));
  });
}

/// "ScaledAbsBackward0", as for the operators of the YAML files.
std::string node_name(const std::string& op) {
  std::string out;
  bool upper = true;
  for (const char c : op.substr(0, op.find('.'))) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  return out + "Backward0";
}

/// autograd(name, backward or None, setup_context or None, file, line)
PyObject* autograd_formula(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("autograd", n, 5, [&] {
    const std::string name = text_argument("register_autograd", "op", args[0]);
    const auto function = [&](PyObject* f, const char* what) -> PyObject* {
      if (f == Py_None) return nullptr;
      if (!PyCallable_Check(f)) wrong_type("register_autograd", what, "callable", f);
      return f;
    };
    const SourceLocation where = place("register_autograd", args[3], args[4]);
    auto derivative = std::make_shared<PythonAutograd>(
        function(args[1], "backward"), function(args[2], "setup_context"), where, node_name(name));
    library_of(o).impl(name, kAutogradAlias,
                       CppFunction::from_closure(std::move(derivative), &enter_python_autograd), where);
  });
}

/// not_differentiable(name, file, line)
PyObject* not_differentiable(PyObject* o, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("not_differentiable", n, 3, [&] {
    const std::string name = text_argument("register_not_differentiable", "op", args[0]);
    library_of(o).impl(name, kAutogradAlias, autograd::not_differentiable(),
                       place("register_not_differentiable", args[1], args[2]));
  });
}

PyObject* destroy(PyObject* o, PyObject*) {
  // Kernels die here, and with them Python objects that may run anything: `value` is empty by then.
  const std::unique_ptr<Registered> dying = std::move(value_of(o));
  Py_RETURN_NONE;
}

PyMethodDef g_library_object_methods[] = {fast_method("define", &define),
                                          fast_method("impl", &impl),
                                          fast_method("fallback", &fallback),
                                          fast_method("autograd", &autograd_formula),
                                          fast_method("not_differentiable", &not_differentiable),
                                          {"destroy", &destroy, METH_NOARGS, nullptr},
                                          {}};

/// A schema as Python looks at it: (text, name, [(argument, type, keyword-only, has default, writes)],
/// [(type, writes, aliases)]).
PyObject* describe_schema(const schema::FunctionSchema& s) {
  const Ref arguments = list_of(s.arguments, [](const schema::Argument& a) {
    return Py_BuildValue("(ssNNN)", schema::python_name(a).c_str(), to_string(a.type).c_str(),
                         PyBool_FromLong(a.kwarg_only), PyBool_FromLong(a.default_value.given()),
                         PyBool_FromLong(a.is_write()));
  });
  const Ref returns = list_of(s.returns, [](const schema::Return& r) {
    return Py_BuildValue("(sNN)", to_string(r.type).c_str(), PyBool_FromLong(r.is_write()),
                         PyBool_FromLong(r.alias.has_value()));
  });
  return Py_BuildValue("(ssOO)", schema::to_string(s).c_str(), s.full_name().c_str(), arguments.get(),
                       returns.get());
}

/// _parse_schema(text)
PyObject* parse_schema_text(PyObject*, PyObject* text) {
  return guarded(
      [&] { return describe_schema(schema::parse_schema(text_argument("parse_schema", "schema", text))); });
}

std::optional<OperatorHandle> find_op(const char* function, PyObject* name) {
  const std::string full = text_argument(function, "name", name);
  const size_t scope = full.find("::");
  const size_t dot = full.find('.', scope == std::string::npos ? 0 : scope);
  return Dispatcher::singleton().find_op(full.substr(0, dot),
                                         dot == std::string::npos ? "" : full.substr(dot + 1));
}

/// _op_schema("ns::name.overload"); None where it is not declared.
PyObject* op_schema(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const auto op = find_op("_op_schema", name);
    return op ? describe_schema(op->schema()) : Py_NewRef(Py_None);
  });
}

/// _python_kernel("ns::name.overload", keys): the function of Python that a call with these keys runs, or
/// None.
PyObject* python_kernel(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return counted("_python_kernel", n, 2, [&]() -> PyObject* {
    const DispatchKeySet* const keys = as_key_set(args[1]);
    if (!keys) wrong_type("_python_kernel", "keys", "DispatchKeySet", args[1]);
    const auto op = find_op("_python_kernel", args[0]);
    if (!op) return Py_NewRef(Py_None);
    const Kernel& kernel = tenon::detail::find_kernel(op->entry(), *keys);
    const auto* slot = tenon::detail::slot_of(kernel, &enter_python_kernel);
    const auto* python = slot ? static_cast<const PythonKernel*>(slot->closure.get()) : nullptr;
    return Py_NewRef(python && !python->with_keys ? python->function : Py_None);
  });
}

PyObject* load(PyObject*, PyObject* path) {
  return guarded([&] { load_library(text_argument("load_library", "path", path)); });
}
PyObject* unload(PyObject*, PyObject* path) {
  return guarded([&] { unload_library(text_argument("unload_library", "path", path)); });
}

PyMethodDef g_library_object_functions[] = {
    {"_parse_schema", &parse_schema_text, METH_O, nullptr}, {"_op_schema", &op_schema, METH_O, nullptr},
    fast_method("_python_kernel", &python_kernel),          {"_load_library", &load, METH_O, nullptr},
    {"_unload_library", &unload, METH_O, nullptr},          {}};

}  // namespace

bool add_library(PyObject* module) {
  PyTypeObject& t = g_type;
  t.tp_name = "tenon._C._Library";
  t.tp_basicsize = sizeof(LibraryObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_new = &construct;
  t.tp_dealloc = &destroy_value<value_of>;
  t.tp_methods = g_library_object_methods;
  return add_type(module, "_Library", t) && PyModule_AddFunctions(module, g_library_object_functions) == 0 &&
         add_op_context(module) && add_op_objects(module);
}

}  // namespace tenon::python
