#include "python/src/autograd/node_object.h"

#include <new>
#include <string>
#include <unordered_map>

#include "python/src/autograd/function_object.h"
#include "python/src/autograd/garbage_collection.h"
#include "python/src/autograd/hooks.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/tensor/tensor_object.h"

namespace tenon::python {
namespace {

struct NodeObject {
  PyObject_HEAD IntrusivePtr<Node> value;
};

// Guarded by the interpreter lock. The object keeps its node alive, so that an address stays that node's.
std::unordered_map<const Node*, PyObject*>& objects() {
  static auto& map = *new std::unordered_map<const Node*, PyObject*>;
  return map;
}

/// Of both kinds of objects: those that show a node, and the ctx of a Function, which is its node.
Node& node_of(PyObject* o) {
  if (PyObject_TypeCheck(o, &function_type)) return node_of_function(o);
  return *reinterpret_cast<NodeObject*>(o)->value;
}

int traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  return visit_graph(reinterpret_cast<NodeObject*>(o)->value, visit, arg);
}
int clear(PyObject* o) {
  clear_graph(reinterpret_cast<NodeObject*>(o)->value);
  return 0;
}
void dealloc(PyObject* o) noexcept {
  PyObject_GC_UnTrack(o);
  PyTypeObject* type = Py_TYPE(o);
  const auto known = objects().find(reinterpret_cast<NodeObject*>(o)->value.get());
  if (known != objects().end() && known->second == o) objects().erase(known);
  reinterpret_cast<NodeObject*>(o)->value.~IntrusivePtr();
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* repr(PyObject* o) {
  return PyUnicode_FromFormat("<%s object at %p>",
                              Py_TYPE(o)->tp_name + std::string_view(Py_TYPE(o)->tp_name).rfind('.') + 1,
                              static_cast<void*>(o));
}

PyObject* name(PyObject* o, PyObject*) {
  return guarded([&] { return to_python(node_of(o).name()); });
}

PyObject* next_functions(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    const auto edges = node_of(o).next_edges();
    const auto pair = [](const auto& edge) {
      const Ref next(checked(wrap(edge.node)));
      return Py_BuildValue("(OI)", next.get(), edge.input_nr);
    };
    return tuple_of(edges, pair).release();
  });
}

/// Finds what a node saved under a name.
struct FindSaved final : autograd::SavedVisitor {
  explicit FindSaved(std::string_view wanted) : wanted(wanted) {}
  void tensor(std::string_view name, const Tensor& value) override {
    if (name == wanted) found = Ref(checked(wrap(value)));
  }
  void list(std::string_view name, const std::vector<Tensor>& values) override {
    if (name == wanted) found = tuple_of(values, [](const Tensor& t) { return wrap(t); });
  }
  std::string_view wanted;
  Ref found;
};
struct ListSaved final : autograd::SavedVisitor {
  explicit ListSaved(PyObject* names) : names(names) {}
  void tensor(std::string_view name, const Tensor&) override { add(name); }
  void list(std::string_view name, const std::vector<Tensor>&) override { add(name); }
  void add(std::string_view name) {
    const Ref text(checked(to_python("_saved_" + std::string(name))));
    if (PyList_Append(names, text.get()) < 0) throw PythonError();
  }
  PyObject* names;
};

/// `_saved_other`, ... besides the ordinary attributes.
PyObject* get_attribute(PyObject* o, PyObject* attribute) {
  constexpr std::string_view kPrefix = "_saved_";
  const char* text = PyUnicode_AsUTF8(attribute);
  if (!text) return nullptr;
  const std::string_view wanted(text);
  if (!wanted.starts_with(kPrefix)) return PyObject_GenericGetAttr(o, attribute);
  return guarded([&] {
    FindSaved find(wanted.substr(kPrefix.size()));
    node_of(o).visit_saved(find);
    return find.found ? find.found.release() : PyObject_GenericGetAttr(o, attribute);
  });
}

PyObject* dir(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref names(
        checked(PyObject_CallMethod(reinterpret_cast<PyObject*>(&PyBaseObject_Type), "__dir__", "O", o)));
    Ref list(checked(PySequence_List(names.get())));
    ListSaved add(list.get());
    node_of(o).visit_saved(add);
    return list.release();
  });
}

PyObject* register_node_prehook(PyObject* o, PyObject* function) {
  return guarded([&] { return register_prehook(node_of(o), function); });
}
PyObject* register_node_hook(PyObject* o, PyObject* function) {
  return guarded([&] { return register_posthook(node_of(o), function); });
}

PyMethodDef g_node_object_methods[] = {
    {"name", &name, METH_NOARGS,
     "name($self)\n--\n\n"
     "What the node undoes: \"MulBackward0\"."},
    {"register_prehook", &register_node_prehook, METH_O,
     "register_prehook($self, hook, /)\n--\n\n"
     "Calls a function with the gradients that the node is about to run on; a tuple "
     "that it returns replaces them."},
    {"register_hook", &register_node_hook, METH_O,
     "register_hook($self, hook, /)\n--\n\n"
     "Calls a function with what the node has computed and with what it ran on; a tuple "
     "that it returns replaces the former."},
    {"__dir__", &dir, METH_NOARGS, nullptr},
    {}};
PyGetSetDef g_node_object_attributes[] = {
    {"next_functions", &next_functions, nullptr,
     "Where its results go: pairs of a node and an input's number.", nullptr},
    {}};

/// The class of nodes of a name, made when the first is shown.
PyTypeObject* type_of(const Node& node) {
  static auto& types = *new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& type = types[std::string(node.name())];
  if (type) return type;
  // The type keeps pointing to the name of its specification.
  const auto* full = new std::string("tenon.autograd." + std::string(node.name()));
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(&dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                         {0, nullptr}};
  PyType_Spec spec{full->c_str(), sizeof(NodeObject), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC, slots};
  type = reinterpret_cast<PyTypeObject*>(
      checked(PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&node_type))));
  return type;
}

}  // namespace

PyTypeObject node_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* wrap(const IntrusivePtr<Node>& node) noexcept {
  if (!node) Py_RETURN_NONE;
  return guarded([&]() -> PyObject* {
    if (PyObject* ctx = function_of_node(*node)) return Py_NewRef(ctx);
    const auto known = objects().find(node.get());
    if (known != objects().end()) return Py_NewRef(known->second);
    auto* made = PyObject_GC_New(NodeObject, type_of(*node));
    if (!made) throw PythonError();
    new (&made->value) IntrusivePtr<Node>(node);
    Ref o(reinterpret_cast<PyObject*>(made));
    PyObject_GC_Track(o.get());
    // The allocation may have collected garbage, whose finalizers may have asked for the same node.
    const auto [place, is_new] = objects().try_emplace(node.get(), o.get());
    return is_new ? o.release() : Py_NewRef(place->second);
  });
}

bool add_node_type(PyObject* module) {
  PyTypeObject& t = node_type;
  t.tp_name = "tenon.autograd.Node";
  t.tp_doc = "One step of the backward pass: name(), next_functions, hooks, and _saved_* tensors.";
  t.tp_basicsize = sizeof(PyObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  t.tp_repr = &repr;
  t.tp_getattro = &get_attribute;
  t.tp_methods = g_node_object_methods;
  t.tp_getset = g_node_object_attributes;
  return add_type(module, "Node", t);
}

}  // namespace tenon::python
