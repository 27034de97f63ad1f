#include "python/src/tensor/tensor_object.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "python/src/interpreter/errors.h"
#include "python/src/tensor/tensor_parts.h"

namespace tenon::python {
namespace {

TensorObject* as_object(PyObject* o) noexcept { return reinterpret_cast<TensorObject*>(o); }

/// Dead plain tensor objects, kept for the next one: an allocation of the garbage collector costs more than
/// the rest of a small operator's result. Guarded by the interpreter lock.
constexpr int kMaxFreeObjects = 256;
PyObject* g_free_objects[kMaxFreeObjects];
int g_num_free_objects = 0;

/// Marks a tensor that dies with its object: it is not to be handed the object again.
void dying(void*) noexcept {}

/// Runs when a tensor dies that owns its object: turns ownership round once more, so that what runs while the
/// object dies (`__del__`, callbacks of weak references) finds its tensor, and may even keep both.
void release_object(void* object) noexcept {
  if_interpreter_lives([object] {
    auto* self = static_cast<TensorObject*>(object);
    TensorImpl* impl = std::exchange(self->owner, nullptr);
    if (!impl) return;  // Python was faster
    self->value = Tensor(IntrusivePtr<TensorImpl>::share(impl));
    impl->binding().on_destroy = &dying;
    Py_DECREF(static_cast<PyObject*>(object));
    // Still there: Python kept it, and owns the tensor by it. `impl` lives, its destroyer has a reference.
    if (impl->binding().on_destroy == &dying) impl->binding().on_destroy = nullptr;
  });
}

bool has_state(PyObject* o) noexcept {
  return !Py_IS_TYPE(o, &tensor_type) || as_object(o)->dict || as_object(o)->weak_references;
}

/// Hands a dying object to its tensor, when C++ still holds that one and the object has something to keep.
bool give_to_tensor(PyObject* o) noexcept {
  Tensor& value = as_object(o)->value;
  if (!value.defined() || value.use_count() == 1 || value.impl()->binding().on_destroy || !has_state(o))
    return false;
  // The reference that the tensor will own. Another thread may drop the tensor as soon as our pointer is
  // gone, which comes back here through release_object.
  Py_SET_REFCNT(o, 1);
  IntrusivePtr<TensorImpl> impl = std::move(value).release_pointer();
  as_object(o)->owner = impl.get();
  impl->binding().on_destroy = &release_object;
  impl.reset();
  return true;
}

void drop_tensor(PyObject* o) noexcept {
  Tensor& value = as_object(o)->value;
  if (value.defined()) value.impl()->binding() = {};
  value.reset();
}

void tensor_dealloc(PyObject* o) noexcept {
  // An instance of a subclass that comes here has been taken apart already.
  if (Py_IS_TYPE(o, &tensor_type) && give_to_tensor(o)) return;
  if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  TensorObject* self = as_object(o);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  drop_tensor(o);
  if (Py_IS_TYPE(o, &tensor_type) && g_num_free_objects < kMaxFreeObjects) {
    g_free_objects[g_num_free_objects++] = o;
    return;
  }
  self->value.~Tensor();
  Py_TYPE(o)->tp_free(o);
}

/// Clears `__slots__` of the subclasses between an object's type and Tensor.
void clear_slots(PyObject* o) noexcept {
  for (PyTypeObject* type = Py_TYPE(o); type != &tensor_type; type = type->tp_base) {
    const auto* member =
        reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(type) + Py_TYPE(type)->tp_basicsize);
    for (Py_ssize_t i = 0; i < Py_SIZE(type); ++i, ++member) {
      if (member->type == T_OBJECT_EX && !(member->flags & READONLY)) {
        Py_CLEAR(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(o) + member->offset));
      }
    }
  }
}

/// What Python's own deallocator of subclasses does, but for the hand-over, which must come before it takes
/// the object apart.
void subclass_dealloc(PyObject* o) noexcept {
  if (give_to_tensor(o)) return;
  PyTypeObject* type = Py_TYPE(o);
  if (type->tp_finalize && PyObject_CallFinalizerFromDealloc(o) < 0) return;
  PyObject_GC_UnTrack(o);
  TensorObject* self = as_object(o);
  if (self->weak_references) PyObject_ClearWeakRefs(o);
  clear_slots(o);
  Py_CLEAR(self->dict);
  drop_tensor(o);
  self->value.~Tensor();
  type->tp_free(o);
  Py_DECREF(type);
}

// A plain object is left to reference counting until it gets attributes, or a history where Python objects
// are in the graph: only those can make a cycle.

int tensor_setattr(PyObject* o, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(o, name, value);
  if (as_object(o)->dict) track(o);
  return status;
}

PyObject* get_dict(PyObject* o, void*) {
  PyObject* dict = PyObject_GenericGetDict(o, nullptr);
  if (dict) track(o);
  return dict;
}

/// Python calls this for every new subclass of Tensor.
PyObject* init_subclass(PyObject* cls, PyObject*, PyObject*) {
  reinterpret_cast<PyTypeObject*>(cls)->tp_dealloc = &subclass_dealloc;
  Py_RETURN_NONE;
}

PyMethodDef g_tensor_object_methods[] = {
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&init_subclass)),
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, nullptr}};
PyGetSetDef g_tensor_object_attributes[] = {{"__dict__", &get_dict, nullptr, nullptr, nullptr}};

TensorObject* new_plain_object() noexcept {
  if (g_num_free_objects > 0) {
    PyObject* o = g_free_objects[--g_num_free_objects];
    return as_object(PyObject_Init(o, &tensor_type));
  }
  auto* self = PyObject_GC_New(TensorObject, &tensor_type);
  if (!self) return nullptr;
  new (&self->value) Tensor();
  self->owner = nullptr;
  self->dict = nullptr;
  self->weak_references = nullptr;
  return self;
}

}  // namespace

std::string type_name(PyObject* o) {
  const char* const name = Py_TYPE(o)->tp_name;
  if (is_tensor(o) || std::strcmp(name, "Tensor") != 0) return is_tensor(o) ? "Tensor" : name;
  const Ref module(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(o)), "__module__"));
  const char* const text = module && PyUnicode_Check(module.get()) ? PyUnicode_AsUTF8(module.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? std::string(text) + ".Tensor" : name;
}

bool g_graph_has_python = false;

void track(PyObject* tensor) noexcept {
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

void take_back(TensorObject* self) noexcept {
  TensorImpl* impl = std::exchange(self->owner, nullptr);
  impl->binding().on_destroy = nullptr;
  self->value = Tensor(IntrusivePtr<TensorImpl>::share(impl));
  // The tensor's own reference; the caller has another.
  Py_DECREF(reinterpret_cast<PyObject*>(self));
}

PyObject* wrap(Tensor tensor) noexcept {
  if (!tensor.defined()) Py_RETURN_NONE;
  BindingSlot& slot = tensor.impl()->binding();
  if (slot.object) {
    auto* o = static_cast<PyObject*>(slot.object);
    if (!as_object(o)->owner) {
      // A call may have given it a history.
      if (g_graph_has_python && tensor.impl()->autograd_meta()) track(o);
      return Py_NewRef(o);
    }
    // The tensor's own reference becomes the caller's.
    slot.on_destroy = nullptr;
    as_object(o)->owner = nullptr;
    as_object(o)->value = std::move(tensor);
    return o;
  }
  TensorObject* self = new_plain_object();
  if (!self) return nullptr;
  slot.object = self;
  self->value = std::move(tensor);
  if (g_graph_has_python && self->value.impl()->autograd_meta()) track(reinterpret_cast<PyObject*>(self));
  return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap_as(PyTypeObject* type, Tensor tensor) {
  if (type == &tensor_type) return wrap(std::move(tensor));
  TENON_CHECK(!tensor.impl()->binding().object, Internal, "wrap_as: the tensor has a Python object already");
  PyObject* o = checked(type->tp_alloc(type, 0));
  TensorObject* self = as_object(o);
  new (&self->value) Tensor(std::move(tensor));
  self->value.impl()->binding().object = o;
  return o;
}

Tensor alias_of(const Tensor& tensor) { return Tensor(tensor.impl()->alias(nullptr)); }

PyTypeObject tensor_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

TensorPart object_part() {
  PyTypeObject& t = tensor_type;
  t.tp_name = "tenon.Tensor";
  t.tp_basicsize = sizeof(TensorObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_dealloc = &tensor_dealloc;
  t.tp_setattro = &tensor_setattr;
  t.tp_free = &PyObject_GC_Del;
  t.tp_dictoffset = offsetof(TensorObject, dict);
  t.tp_weaklistoffset = offsetof(TensorObject, weak_references);
  return {g_tensor_object_methods, g_tensor_object_attributes};
}

}  // namespace tenon::python
