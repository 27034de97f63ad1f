#include "python/src/autograd/function_object.h"

#include <fmt/core.h>
#include <structmember.h>

#include <vector>

#include "python/src/autograd/garbage_collection.h"
#include "python/src/autograd/node_object.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/polymorphic.h"
#include "python/src/interpreter/sequences.h"
#include "python/src/tensor/tensor_object.h"
#include "tenon/autograd/autograd.h"
#include "tenon/autograd/custom_function.h"
#include "tenon/autograd/saved_tensor.h"
#include "tenon/core/thread_state.h"
#include "tenon/generated/factory/functions.h"
#include "tenon/generated/view/functions.h"

namespace tenon::python {
namespace {

class FunctionNode;

struct FunctionObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weak_references;
  FunctionNode* node;  // once the call is recorded, while the node lives
  PyObject* saved;     // what save_for_backward was given, until the call has returned
  PyObject* dirty;
  PyObject* non_differentiable;
  PyObject* needs_input_grad;
  bool materialize;
};
FunctionObject& ctx_of(PyObject* o) noexcept { return *reinterpret_cast<FunctionObject*>(o); }

/// The node of one recorded call. The interpreter lock guards `ctx_`.
class FunctionNode final : public Node {
 public:
  FunctionNode(PyObject* ctx, std::string name) : ctx_(Py_NewRef(ctx)), name_(std::move(name)) {}
  ~FunctionNode() override;

  std::string_view name() const noexcept override { return name_; }
  void apply(autograd::NodeCall& call) override;
  void release_variables() noexcept override {
    for (autograd::SavedTensor& t : saved_) t.release();
  }
  void visit_saved(autograd::SavedVisitor& visitor) const override {
    if (!saved_.empty()) visitor.list("tensors", unpack());
  }

  void visit_kept(autograd::KeptVisitor& visitor) const noexcept override {
    for (const autograd::SavedTensor& t : saved_) t.visit_kept(visitor);
  }

  PyObject* ctx() const noexcept { return ctx_; }
  void begin(PyObject* const* args, Py_ssize_t n);
  /// `results`: what forward returned, by place; undefined where it is no tensor. Null places are no tensors.
  void save(PyObject* tensors, std::span<const Tensor> results);
  void set_results(std::vector<bool> is_tensor) { result_is_tensor_ = std::move(is_tensor); }
  std::vector<Tensor> unpack() const;

 private:
  Ref gradients(autograd::NodeCall& call) const;
  void take(PyObject* returned, autograd::NodeCall& call) const;

  PyObject* ctx_;
  std::string name_;
  std::vector<bool> is_tensor_;         // by argument
  std::vector<bool> result_is_tensor_;  // by result of forward
  std::vector<autograd::SavedTensor> saved_;
};

FunctionNode::~FunctionNode() {
  if_interpreter_lives([this] {
    ctx_of(ctx_).node = nullptr;
    Py_DECREF(ctx_);
  });
}

void FunctionNode::begin(PyObject* const* args, Py_ssize_t n) {
  g_graph_has_python = true;
  set_source(note_source(__builtin_frame_address(0)));
  for (Py_ssize_t i = 0; i < n; ++i) {
    is_tensor_.push_back(is_tensor(args[i]));
    if (is_tensor_.back()) add_edge(autograd::gradient_edge(tensor_of(args[i])));
  }
}

void FunctionNode::save(PyObject* tensors, std::span<const Tensor> results) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tensors);
  saved_.resize(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(tensors, i);
    if (o == Py_None) continue;
    const Tensor& t = tensor_of(o);
    uint32_t nr = 0;
    while (nr < results.size() && !(results[nr].defined() && results[nr].is_same(t))) ++nr;
    autograd::SavedTensor& saved = saved_[static_cast<size_t>(i)];
    if (nr < results.size())
      saved.save_output(t, nr, t._version());
    else
      saved.save_input(t);
  }
}

std::vector<Tensor> FunctionNode::unpack() const {
  std::vector<Tensor> out;
  for (size_t i = 0; i < saved_.size(); ++i) {
    const autograd::SavedTensor& saved = saved_[i];
    out.push_back(saved.saved() || saved.released()
                      ? saved.unpack(*this, name_, fmt::format("tensor {} of save_for_backward", i))
                      : Tensor());
  }
  return out;
}

Ref FunctionNode::gradients(autograd::NodeCall& call) const {
  const auto count = static_cast<Py_ssize_t>(result_is_tensor_.size());
  Ref arguments(checked(PyTuple_New(count + 1)));
  PyTuple_SET_ITEM(arguments.get(), 0, Py_NewRef(ctx_));
  size_t input = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = Py_None;
    if (result_is_tensor_[static_cast<size_t>(i)]) {
      const size_t nr = input++;
      Tensor& grad = call.grads[nr];
      if (!grad.defined() && ctx_of(ctx_).materialize)
        grad = zeros(input_meta(nr).sizes(), input_meta(nr).options());
      PyTuple_SET_ITEM(arguments.get(), i + 1, checked(wrap(std::move(grad))));
    } else {
      PyTuple_SET_ITEM(arguments.get(), i + 1, Py_NewRef(value));
    }
  }
  return arguments;
}

void FunctionNode::take(PyObject* returned, autograd::NodeCall& call) const {
  PyObject* one[] = {returned};
  PyObject** values = one;
  size_t count = 1;
  if (PyTuple_Check(returned)) {
    values = &PyTuple_GET_ITEM(returned, 0);
    count = static_cast<size_t>(PyTuple_GET_SIZE(returned));
  }
  const size_t expected = is_tensor_.size();
  // More than there are arguments is allowed where nothing is in them.
  while (count > expected && values[count - 1] == Py_None) --count;
  TENON_CHECK(count == expected, Runtime,
              fmt::format("function {} returned an incorrect number of gradients (expected {}, got {})",
                          name_, expected, count));
  size_t edge = 0;
  for (size_t i = 0; i < count; ++i) {
    PyObject* o = values[i];
    TENON_CHECK(o == Py_None || is_tensor_[i], Runtime,
                fmt::format("function {} returned a gradient different from None at position {}, but the "
                            "corresponding forward input was not a Variable",
                            name_, i + 1));
    if (!is_tensor_[i]) continue;
    const size_t place = edge++;
    if (o == Py_None) continue;
    TENON_CHECK(is_tensor(o), Type,
                fmt::format("function {}: expected Variable or None at position {} (got {})", name_, i + 1,
                            Py_TYPE(o)->tp_name));
    call.out[place] = tensor_of(o);
  }
}

void FunctionNode::apply(autograd::NodeCall& call) {
  const HoldGil gil;
  try {
    const Ref arguments = gradients(call);
    const Ref forward_class(checked(PyObject_GetAttrString(ctx_, "_forward_cls")));
    const Ref name(checked(PyObject_GetAttrString(forward_class.get(), "_backward_name")));
    const Ref backward(checked(PyObject_GetAttr(forward_class.get(), name.get())));
    const Ref returned(checked(PyObject_CallObject(backward.get(), arguments.get())));
    take(returned.get(), call);
  } catch (const PythonError&) {
    throw_python_error();
  }
}

// The object

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o) ctx_of(o).materialize = true;
  return o;
}
int function_traverse(PyObject* o, visitproc visit, void* arg) {
  FunctionObject& ctx = ctx_of(o);
  Py_VISIT(ctx.dict);
  Py_VISIT(ctx.saved);
  Py_VISIT(ctx.dirty);
  Py_VISIT(ctx.non_differentiable);
  Py_VISIT(ctx.needs_input_grad);
  return 0;
}
int function_clear(PyObject* o) {
  FunctionObject& ctx = ctx_of(o);
  Py_CLEAR(ctx.dict);
  Py_CLEAR(ctx.saved);
  Py_CLEAR(ctx.dirty);
  Py_CLEAR(ctx.non_differentiable);
  Py_CLEAR(ctx.needs_input_grad);
  return 0;
}
void function_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  if (ctx_of(o).weak_references) PyObject_ClearWeakRefs(o);
  function_clear(o);
  Py_TYPE(o)->tp_free(o);
}

int function_setattr(PyObject* o, PyObject* name, PyObject* value) {
  if (value && is_tensor(value)) track(value);
  return PyObject_GenericSetAttr(o, name, value);
}

/// Keeps the arguments of a method as a tuple.
template <PyObject* FunctionObject::*Member>
PyObject* keep_arguments(PyObject* o, PyObject* args) {
  Py_XSETREF(ctx_of(o).*Member, Py_NewRef(args));
  Py_RETURN_NONE;
}

PyObject* set_materialize(PyObject* o, PyObject* on) {
  const int truth = PyObject_IsTrue(on);
  if (truth < 0) return nullptr;
  ctx_of(o).materialize = truth;
  Py_RETURN_NONE;
}

PyObject* get_saved(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    const FunctionObject& ctx = ctx_of(o);
    if (!ctx.node) return ctx.saved ? Py_NewRef(ctx.saved) : checked(PyTuple_New(0));
    const std::vector<Tensor> tensors = ctx.node->unpack();
    return tuple_of(tensors, [](const Tensor& t) { return wrap(t); }).release();
  });
}
PyObject* get_needs(PyObject* o, void*) {
  PyObject* needs = ctx_of(o).needs_input_grad;
  return needs ? Py_NewRef(needs) : PyTuple_New(0);
}
int set_needs(PyObject* o, PyObject* value, void*) {
  Py_XSETREF(ctx_of(o).needs_input_grad, Py_XNewRef(value));
  return 0;
}

PyMethodDef g_function_object_methods[] = {
    {"save_for_backward", &keep_arguments<&FunctionObject::saved>, METH_VARARGS,
     "Keeps arguments and results of forward (or None) for backward, as ctx.saved_tensors."},
    {"save_for_forward", [](PyObject*, PyObject*) { return Py_NewRef(Py_None); }, METH_VARARGS,
     "Forward mode keeps nothing."},
    {"mark_dirty", &keep_arguments<&FunctionObject::dirty>, METH_VARARGS,
     "Names the arguments that forward has written in place and returns."},
    {"mark_non_differentiable", &keep_arguments<&FunctionObject::non_differentiable>, METH_VARARGS,
     "Names results that have no gradient."},
    {"set_materialize_grads", &set_materialize, METH_O,
     "Whether backward gets zeros (True, as without the call) or None for results that had no gradient."},
    {}};
PyGetSetDef g_function_object_attributes[] = {
    {"saved_tensors", &get_saved, nullptr, "What save_for_backward kept.", nullptr},
    {"needs_input_grad", &get_needs, &set_needs,
     "For each argument of forward, whether its gradient is wanted.", nullptr},
    {"__dict__", &PyObject_GenericGetDict, &PyObject_GenericSetDict, nullptr, nullptr},
    {}};

// Calls

/// The tensors that `tuple` (may be null) holds. Throws Error{Type} where it holds anything else.
std::vector<Tensor> tensors_in(PyObject* tuple, const char* method, bool none_allowed) {
  std::vector<Tensor> out;
  for (Py_ssize_t i = 0; tuple && i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* o = PyTuple_GET_ITEM(tuple, i);
    TENON_CHECK(is_tensor(o) || (none_allowed && o == Py_None), Type,
                fmt::format("{} can only take Tensors{}, but argument {} is of type {}", method,
                            none_allowed ? " and None" : "", i, Py_TYPE(o)->tp_name));
    out.push_back(o == Py_None ? Tensor() : tensor_of(o));
  }
  return out;
}

/// One call of a Function class: `forward`, between what comes before and after.
class Call {
 public:
  Call(PyObject* function, PyObject* const* args, Py_ssize_t count)
      : function_(function), args_(args), count_(count) {}

  PyObject* run() {
    const Ref type(checked(PyObject_GetAttrString(function_, "_backward_cls")));
    ctx_ = Ref(checked(PyObject_CallNoArgs(type.get())));
    if (!PyObject_TypeCheck(ctx_.get(), &function_type))
      throw_error(ErrorKind::Type, "apply: not a Function");
    note_arguments();
    Ref output = forward();
    return finish(output);
  }

 private:
  void note_arguments() {
    Ref needs(checked(PyTuple_New(count_)));
    bool any = false;
    for (Py_ssize_t i = 0; i < count_; ++i) {
      const bool tensor = is_tensor(args_[i]), wanted = tensor && tensor_of(args_[i]).requires_grad();
      if (tensor) inputs_.push_back(tensor_of(args_[i]));
      any |= wanted;
      PyTuple_SET_ITEM(needs.get(), i, PyBool_FromLong(wanted));
    }
    ctx_of(ctx_.get()).needs_input_grad = needs.release();
    if (!any || !thread_state.grad_enabled) return;
    node_ = new FunctionNode(ctx_.get(), Py_TYPE(ctx_.get())->tp_name);
    owner_ = IntrusivePtr<Node>::adopt(node_);
    node_->begin(args_, count_);
  }

  Ref forward() {
    const Ref method(checked(PyObject_GetAttrString(function_, "forward")));
    const Ref separate(checked(PyObject_GetAttrString(function_, "_separate_setup")));
    const NoGradGuard no_grad;
    if (separate.get() == Py_True) {
      Ref output(checked(PyObject_Vectorcall(method.get(), args_, static_cast<size_t>(count_), nullptr)));
      const Ref setup(checked(PyObject_GetAttrString(function_, "setup_context")));
      const Ref inputs = tuple_of(std::span(args_, static_cast<size_t>(count_)), Py_NewRef);
      const Ref done(checked(
          PyObject_CallFunctionObjArgs(setup.get(), ctx_.get(), inputs.get(), output.get(), nullptr)));
      return output;
    }
    std::vector<PyObject*> all{nullptr, ctx_.get()};
    all.insert(all.end(), args_, args_ + count_);
    return Ref(checked(PyObject_Vectorcall(method.get(), all.data() + 1,
                                           static_cast<size_t>(count_ + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                           nullptr)));
  }

  PyObject* finish(const Ref& output) {
    const bool several = PyTuple_Check(output.get());
    const Py_ssize_t n = several ? PyTuple_GET_SIZE(output.get()) : 1;
    std::vector<Tensor> results;
    std::vector<bool> is_result;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* o = several ? PyTuple_GET_ITEM(output.get(), i) : output.get();
      is_result.push_back(is_tensor(o));
      if (is_result.back()) results.push_back(tensor_of(o));
    }
    FunctionObject& ctx = ctx_of(ctx_.get());
    const Ref saved(std::exchange(ctx.saved, nullptr)), dirty_tuple(std::exchange(ctx.dirty, nullptr)),
        marked(std::exchange(ctx.non_differentiable, nullptr));
    const std::vector<Tensor> dirty = tensors_in(dirty_tuple.get(), "mark_dirty", false),
                              constant = tensors_in(marked.get(), "mark_non_differentiable", false);
    tensors_in(saved.get(), "save_for_backward", true);
    autograd::finish_custom_call({owner_, inputs_, dirty, constant}, results);
    if (node_) {
      ctx.node = node_;
      node_->set_results(is_result);
      if (saved) node_->save(saved.get(), results);
    }
    const auto object_of = [&](const Tensor& result) {
      PyObject* o = checked(wrap(result));
      // What forward has kept may lead back to the result.
      if (node_ && ctx.dict) track(o);
      return o;
    };
    if (!several) return is_result[0] ? object_of(results[0]) : Py_NewRef(output.get());
    Ref tuple(checked(PyTuple_New(n)));
    for (Py_ssize_t i = 0, next = 0; i < n; ++i) {
      PyObject* o = is_result[static_cast<size_t>(i)] ? object_of(results[static_cast<size_t>(next++)])
                                                      : Py_NewRef(PyTuple_GET_ITEM(output.get(), i));
      PyTuple_SET_ITEM(tuple.get(), i, o);
    }
    return tuple.release();
  }

  PyObject* function_;
  PyObject* const* args_;
  Py_ssize_t count_;
  Ref ctx_;
  std::vector<Tensor> inputs_;
  FunctionNode* node_ = nullptr;
  IntrusivePtr<Node> owner_;
};

/// Function.apply(cls, *args), as a class method.
PyObject* apply_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  return guarded([&] {
    TENON_CHECK(n >= 1, Type, "apply() takes a Function class");
    return Call(args[0], args + 1, n - 1).run();
  });
}

/// _delayed_error(message, tensors): what once_differentiable returns.
PyObject* delayed_error(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const char* message = nullptr;
    PyObject* values = nullptr;
    if (!PyArg_ParseTuple(args, "sO!", &message, &PyTuple_Type, &values)) throw PythonError();
    std::vector<Tensor> tensors;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(values); ++i) {
      PyObject* o = PyTuple_GET_ITEM(values, i);
      tensors.push_back(is_tensor(o) ? tensor_of(o) : Tensor());
    }
    const std::vector<Tensor> out = autograd::delayed_error(message, tensors);
    return tuple_of(out, [](const Tensor& t) { return wrap(t); }).release();
  });
}

PyMethodDef g_function_object_functions[] = {
    {"_apply_function", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&apply_function)),
     METH_FASTCALL, nullptr},
    {"_delayed_error", &delayed_error, METH_VARARGS, nullptr},
    {}};

}  // namespace

PyTypeObject function_type = {PyVarObject_HEAD_INIT(nullptr, 0)};

Node& node_of_function(PyObject* o) {
  TENON_CHECK(
      ctx_of(o).node, Runtime,
      "a Function's ctx is a node of the graph only after forward has returned and while its results live");
  return *ctx_of(o).node;
}

PyObject* function_of_node(const Node& node) noexcept {
  const auto* function = as<FunctionNode>(node);
  return function ? function->ctx() : nullptr;
}

bool add_function_type(PyObject* module) {
  PyTypeObject& t = function_type;
  t.tp_name = "tenon._C._FunctionBase";
  t.tp_basicsize = sizeof(FunctionObject);
  t.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  t.tp_base = &node_type;
  t.tp_new = &function_new;
  t.tp_dealloc = &function_dealloc;
  t.tp_traverse = &function_traverse;
  t.tp_clear = &function_clear;
  t.tp_setattro = &function_setattr;
  t.tp_free = &PyObject_GC_Del;
  t.tp_methods = g_function_object_methods;
  t.tp_getset = g_function_object_attributes;
  t.tp_dictoffset = offsetof(FunctionObject, dict);
  t.tp_weaklistoffset = offsetof(FunctionObject, weak_references);
  return add_type(module, "_FunctionBase", t) &&
         PyModule_AddFunctions(module, g_function_object_functions) == 0;
}

}  // namespace tenon::python
