// OpOverload and OpOverloadPacket: the objects of tenon.ops: one operator, and all overloads of a name.
#include "python/src/interpreter/reference.h"

#include <fmt/format.h>
#include <structmember.h>

#include "python/src/call/dictionary.h"
#include "python/src/call/overload.h"
#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/module_parts.h"
#include "python/src/ops/key_set_object.h"
#include "python/src/ops/op_call.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::python {
namespace {

struct OverloadObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  OperatorEntry* entry;
  const OpSchema* schema;
  PyObject* dict;
  PyObject* weak_references;
  Tags listed_tags;  // those of `tags`, the list that the attribute is
  PyObject* tags;
};
struct PacketObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* overloads;  // a tuple
  PyObject* dict;
  PyObject* weak_references;
};
PyTypeObject* g_overload_type = nullptr;
PyTypeObject* g_packet_type = nullptr;

OverloadObject& overload_of(PyObject* o) noexcept { return *reinterpret_cast<OverloadObject*>(o); }
PacketObject& packet_of(PyObject* o) noexcept { return *reinterpret_cast<PacketObject*>(o); }

/// The schema as it is now: an operator may have been removed and declared again.
const OpSchema& renewed(OverloadObject& self) {
  return *(self.schema = &OpSchema::of(OperatorHandle(*self.entry).schema()));
}

/// Why a schema does not take the arguments: that of index `misfit` has a wrong type; -1 where OpCall::bind
/// found none.
std::string reason(OverloadObject& self, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                   int misfit) {
  const OpSchema& schema = renewed(self);
  if (static_cast<size_t>(count) > schema.num_positional)
    return fmt::format("takes {} positional arguments, got {}", schema.num_positional, count);
  std::vector<PyObject*> given(schema.arguments.size(), nullptr);
  std::copy(args, args + count, given.begin());
  const Py_ssize_t n = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(keywords, k);
    size_t i = 0;
    while (i < given.size() && PyUnicode_Compare(schema.arguments[i].name, keyword) != 0) ++i;
    const char* text = PyUnicode_AsUTF8(keyword);
    if (i == given.size()) return fmt::format("got an unexpected keyword argument '{}'", text ? text : "?");
    if (given[i]) return fmt::format("got two values for argument '{}'", text ? text : "?");
    given[i] = args[count + k];
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const OpArgument& a = schema.arguments[i];
    const char* name = PyUnicode_AsUTF8(a.name);
    if (!given[i] && !a.fallback) return fmt::format("misses argument '{}'", name);
    if (static_cast<int>(i) == misfit) {
      return fmt::format("argument '{}' must be {}, not {}", name, schema::python_type(*a.declared),
                         type_name(given[i]));
    }
  }
  return "does not take these arguments";
}

/// As guarded(), with the name of the operator, which only an error looks up.
template <class F>
PyObject* guarded_call(const OverloadObject& self, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error(self.schema->source->name.c_str());
    return nullptr;
  }
}

/// kNoMatch where the arguments do not fit.
PyObject* try_call(OverloadObject& self, PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                   int& misfit) {
  OpCall made(*self.schema, *self.entry);
  if (!made.bind(args, count, keywords, misfit)) return kNoMatch;
  return call(made).release();
}

PyObject* call_overload(PyObject* o, PyObject* const* args, size_t nargs, PyObject* keywords) {
  OverloadObject& self = overload_of(o);
  const Py_ssize_t count = PyVectorcall_NARGS(nargs);
  return guarded_call(self, [&]() -> PyObject* {
    int misfit;
    PyObject* result = try_call(self, args, count, keywords, misfit);
    if (result != kNoMatch) [[likely]]
      return result;
    const OpSchema* before = self.schema;
    if (&renewed(self) != before && (result = try_call(self, args, count, keywords, misfit)) != kNoMatch)
      return result;
    return PyErr_Format(PyExc_TypeError, "%s(): %s; the schema is %s", self.schema->name().c_str(),
                        reason(self, args, count, keywords, misfit).c_str(),
                        schema::to_string(*self.schema->source).c_str());
  });
}

PyObject* call_packet(PyObject* o, PyObject* const* args, size_t nargs, PyObject* keywords) {
  PyObject* overloads = packet_of(o).overloads;
  const Py_ssize_t n = PyTuple_GET_SIZE(overloads);
  if (n == 1) [[likely]]
    return call_overload(PyTuple_GET_ITEM(overloads, 0), args, nargs, keywords);
  const Py_ssize_t count = PyVectorcall_NARGS(nargs);
  return guarded_call(overload_of(PyTuple_GET_ITEM(overloads, 0)), [&]() -> PyObject* {
    SmallVector<int, 16> misfits(static_cast<size_t>(n));
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* result =
          try_call(overload_of(PyTuple_GET_ITEM(overloads, i)), args, count, keywords, misfits[i]);
      if (result != kNoMatch) return result;
    }
    std::string message = "no overload takes these arguments; there are:";
    std::string name;
    for (Py_ssize_t i = 0; i < n; ++i) {
      OverloadObject& each = overload_of(PyTuple_GET_ITEM(overloads, i));
      const std::string why = reason(each, args, count, keywords, misfits[i]);
      name = each.entry->name;
      message += "\n  " + schema::to_string(*each.schema->source) + ": " + why;
    }
    return PyErr_Format(PyExc_TypeError, "%s(): %s", name.c_str(), message.c_str());
  });
}

PyObject* redispatch_method(PyObject* o, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guarded("redispatch", [&]() -> PyObject* {
    TENON_CHECK(count >= 1 && as_key_set(args[0]), Type,
                "redispatch() takes a DispatchKeySet, then the operator's arguments");
    OverloadObject& self = overload_of(o);
    OpCall made(renewed(self), *self.entry);
    int misfit = -1;
    if (made.bind(args + 1, count - 1, keywords, misfit)) {
      return redispatch(made, *as_key_set(args[0])).release();
    }
    return PyErr_Format(PyExc_TypeError, "%s(): %s; the schema is %s", self.schema->name().c_str(),
                        reason(self, args + 1, count - 1, keywords, misfit).c_str(),
                        schema::to_string(*self.schema->source).c_str());
  });
}

// Attributes

std::string short_name(const OperatorEntry& entry) {
  return std::string(entry.name.substr(entry.name.find("::") + 2));
}

PyObject* full_name(PyObject* o, void*) { return to_python(overload_of(o).entry->full_name()); }
PyObject* full_name_method(PyObject* o, PyObject*) { return full_name(o, nullptr); }
PyObject* get_namespace(PyObject* o, void*) {
  const std::string_view name = overload_of(o).entry->name;
  return to_python(name.substr(0, name.find("::")));
}
PyObject* overload_name(PyObject* o, void*) {
  const std::string_view name = overload_of(o).entry->overload;
  return to_python(name.empty() ? "default" : name);
}
PyObject* get_name(PyObject* o, void*) {
  const OperatorEntry& entry = *overload_of(o).entry;
  return to_python(short_name(entry) + "." +
                   std::string(entry.overload.empty() ? "default" : entry.overload));
}
PyObject* get_schema(PyObject* o, void*) {
  return guarded([&] { return to_python(schema::to_string(*renewed(overload_of(o)).source)); });
}
/// "ns.name"
std::string dotted_name(const OperatorEntry& entry) {
  std::string name(entry.name);
  if (const size_t at = name.find("::"); at != std::string::npos) name.replace(at, 2, ".");
  return name;
}
std::string_view shown_overload(const OperatorEntry& entry) noexcept {
  return entry.overload.empty() ? "default" : entry.overload;
}
PyObject* overload_repr(PyObject* o) {
  const OperatorEntry& entry = *overload_of(o).entry;
  return to_python(
      fmt::format("<OpOverload(op='{}', overload='{}')>", dotted_name(entry), shown_overload(entry)));
}
PyObject* overload_str(PyObject* o) {
  const OperatorEntry& entry = *overload_of(o).entry;
  return to_python(fmt::format("{}.{}", dotted_name(entry), shown_overload(entry)));
}
const OperatorEntry& entry_of_packet(PyObject* o) noexcept {
  return *overload_of(PyTuple_GET_ITEM(packet_of(o).overloads, 0)).entry;
}
PyObject* packet_str(PyObject* o) { return to_python(dotted_name(entry_of_packet(o))); }

PyObject* packet_repr(PyObject* o) {
  return to_python(fmt::format("<OpOverloadPacket(op='{}')>", dotted_name(entry_of_packet(o))));
}
PyObject* packet_overloads(PyObject* o, PyObject*) {
  return guarded([&] {
    PyObject* overloads = packet_of(o).overloads;
    const auto name = [&](Py_ssize_t i) { return overload_name(PyTuple_GET_ITEM(overloads, i), nullptr); };
    return list_of(std::views::iota(Py_ssize_t{0}, PyTuple_GET_SIZE(overloads)), name).release();
  });
}
PyObject* packet_name(PyObject* o, void*) {
  return to_python(short_name(*overload_of(PyTuple_GET_ITEM(packet_of(o).overloads, 0)).entry));
}
PyObject* packet_qualified_name(PyObject* o, void*) {
  return to_python(overload_of(PyTuple_GET_ITEM(packet_of(o).overloads, 0)).entry->name);
}

int overload_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(overload_of(o).dict);
  Py_VISIT(overload_of(o).tags);
  return 0;
}
int overload_clear(PyObject* o) {
  Py_CLEAR(overload_of(o).dict);
  Py_CLEAR(overload_of(o).tags);
  return 0;
}
void overload_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (overload_of(o).weak_references) PyObject_ClearWeakRefs(o);
  overload_clear(o);
  PyObject_GC_Del(o);
  Py_DECREF(type);
}
int packet_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(packet_of(o).overloads);
  Py_VISIT(packet_of(o).dict);
  return 0;
}
int packet_clear(PyObject* o) {
  Py_CLEAR(packet_of(o).dict);
  return 0;
}
void packet_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (packet_of(o).weak_references) PyObject_ClearWeakRefs(o);
  packet_clear(o);
  Py_CLEAR(packet_of(o).overloads);
  PyObject_GC_Del(o);
  Py_DECREF(type);
}

PyMethodDef g_overload_methods[] = {{"name", &full_name_method, METH_NOARGS,
                                     "name($self)\n--\n\n"
                                     "\"ns::name.overload\"."},
                                    fast_method("redispatch", &redispatch_method,
                                                "redispatch($self, keyset, *args, **kwargs)\n--\n\n"
                                                "Continues a call at the highest of the keys."),
                                    {}};
/// Members of tenon.Tag.
PyObject* get_tags(PyObject* o, void*) {
  return guarded([&] {
    OverloadObject& self = overload_of(o);
    const Tags tags = OperatorHandle(*self.entry).traits().tags;
    if (self.tags && self.listed_tags == tags) return Py_NewRef(self.tags);
    const Ref names(checked(PyList_New(0)));
    for (uint32_t i = 0; i < kNumTags; ++i) {
      if (const Tag tag{static_cast<uint8_t>(i)}; tags.has(tag)) append(names, to_python(name(tag)));
    }
    const Ref module(checked(PyImport_ImportModule("tenon.tags")));
    PyObject* const made = checked(PyObject_CallMethod(module.get(), "members", "O", names.get()));
    self.listed_tags = tags;
    Py_XSETREF(self.tags, made);
    return Py_NewRef(made);
  });
}

PyGetSetDef g_overload_attributes[] = {
    {"tags", &get_tags, nullptr, "What its declaration says of it besides the schema: members of tenon.Tag.",
     nullptr},
    {"__name__", &get_name, nullptr, nullptr, nullptr},
    {"_name", &full_name, nullptr, "\"ns::name.overload\".", nullptr},
    {"_schema", &get_schema, nullptr, "The schema's text.", nullptr},
    {"_overloadname", &overload_name, nullptr, "\"default\" where the schema names none.", nullptr},
    {"namespace", &get_namespace, nullptr, nullptr, nullptr},
    {"__dict__", &PyObject_GenericGetDict, &PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMemberDef g_overload_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(OverloadObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(OverloadObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(OverloadObject, weak_references), READONLY, nullptr},
    {}};
PyMethodDef g_packet_methods[] = {{"overloads", &packet_overloads, METH_NOARGS,
                                   "overloads($self)\n--\n\n"
                                   "Names of its overloads."},
                                  {}};
PyGetSetDef g_packet_attributes[] = {
    {"__name__", &packet_name, nullptr, nullptr, nullptr},
    {"_qualified_op_name", &packet_qualified_name, nullptr, "\"ns::name\".", nullptr},
    {"__dict__", &PyObject_GenericGetDict, &PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMemberDef g_packet_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PacketObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PacketObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PacketObject, weak_references), READONLY, nullptr},
    {}};

/// A type whose methods tenon.library completes.
PyTypeObject* make_type(const char* name, size_t size, PyMethodDef* methods, PyGetSetDef* attributes,
                        PyMemberDef* members, reprfunc repr, reprfunc str, traverseproc traverse,
                        inquiry clear, destructor dealloc, const char* doc) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear)},
                         {Py_tp_repr, reinterpret_cast<void*>(repr)},
                         {Py_tp_str, reinterpret_cast<void*>(str)},
                         {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, attributes},
                         {Py_tp_members, members},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {0, nullptr}};
  PyType_Spec spec{name, static_cast<int>(size), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                       Py_TPFLAGS_DISALLOW_INSTANTIATION,
                   slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

// Functions

/// _op("ns::name.overload"): a new OpOverload.
PyObject* make_overload(PyObject*, PyObject* name) {
  return guarded([&] {
    std::string_view text;
    if (!parse_text(name, text)) wrong_type("_op", "name", "str", name);
    const OperatorHandle op = Dispatcher::singleton().find_schema_or_throw_full(text);
    const OpSchema& schema = OpSchema::of(op.schema());
    auto* self = PyObject_GC_New(OverloadObject, g_overload_type);
    if (!self) throw PythonError();
    self->vectorcall = &call_overload;
    self->entry = &op.entry();
    self->schema = &schema;
    self->dict = self->weak_references = self->tags = nullptr;
    PyObject_GC_Track(self);
    return reinterpret_cast<PyObject*>(self);
  });
}

/// _op_packet((OpOverload, ...)): all overloads of one name.
PyObject* make_packet(PyObject*, PyObject* overloads) {
  return guarded([&] {
    TENON_CHECK(PyTuple_Check(overloads) && PyTuple_GET_SIZE(overloads) > 0, Type,
                "_op_packet() takes a tuple of overloads");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(overloads); ++i) {
      TENON_CHECK(Py_IS_TYPE(PyTuple_GET_ITEM(overloads, i), g_overload_type), Type,
                  "_op_packet() takes a tuple of overloads");
    }
    auto* self = PyObject_GC_New(PacketObject, g_packet_type);
    if (!self) throw PythonError();
    self->vectorcall = &call_packet;
    self->overloads = Py_NewRef(overloads);
    self->dict = self->weak_references = nullptr;
    PyObject_GC_Track(self);
    return reinterpret_cast<PyObject*>(self);
  });
}

PyMethodDef g_op_overload_functions[] = {
    {"_op", &make_overload, METH_O, nullptr}, {"_op_packet", &make_packet, METH_O, nullptr}, {}};

}  // namespace

bool add_op_objects(PyObject* module) {
  g_overload_type =
      make_type("tenon.ops.OpOverload", sizeof(OverloadObject), g_overload_methods, g_overload_attributes,
                g_overload_members, &overload_repr, &overload_str, &overload_traverse, &overload_clear,
                &overload_dealloc, "One operator, as Python calls it.");
  g_packet_type =
      make_type("tenon.ops.OpOverloadPacket", sizeof(PacketObject), g_packet_methods, g_packet_attributes,
                g_packet_members, &packet_repr, &packet_str, &packet_traverse, &packet_clear, &packet_dealloc,
                "All overloads of an operator's name; a call takes the first that fits.");
  return g_overload_type && g_packet_type &&
         PyModule_AddObjectRef(module, "OpOverload", reinterpret_cast<PyObject*>(g_overload_type)) == 0 &&
         PyModule_AddObjectRef(module, "OpOverloadPacket", reinterpret_cast<PyObject*>(g_packet_type)) == 0 &&
         PyModule_AddFunctions(module, g_op_overload_functions) == 0;
}

}  // namespace tenon::python
