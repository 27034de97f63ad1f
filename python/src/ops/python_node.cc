#include "python/src/ops/python_node.h"

#include <fmt/format.h>

#include "python/src/interpreter/sequences.h"
#include "tenon/autograd/autograd.h"
#include "tenon/autograd/autograd_meta.h"
#include "tenon/generated/arithmetic/functions.h"
#include "tenon/generated/factory/functions.h"

namespace tenon::python {
namespace {

using autograd::NodeCall;
using schema::BaseType;

bool contains(PyObject* tuple, const Tensor& t) noexcept {
  if (!tuple) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    PyObject* o = PyTuple_GET_ITEM(tuple, i);
    if (is_tensor(o) && tensor_of(o).is_same(t)) return true;
  }
  return false;
}

/// All tensors of a call's result in order, undefined where one is missing, and the lengths of lists.
std::vector<Tensor> tensors_of(const OpSchema& schema, PyObject* result, std::vector<uint32_t>& lists) {
  const auto& returns = schema.source->returns;
  std::vector<Tensor> out;
  for (size_t i = 0; i < returns.size(); ++i) {
    PyObject* o = returns.size() == 1 ? result : PyTuple_GET_ITEM(result, static_cast<Py_ssize_t>(i));
    if (returns[i].type.is_tensor()) {
      out.push_back(is_tensor(o) ? tensor_of(o) : Tensor());
    } else if (returns[i].type.is_tensor_list()) {
      lists.push_back(static_cast<uint32_t>(PyList_GET_SIZE(o)));
      for (Py_ssize_t j = 0; j < PyList_GET_SIZE(o); ++j) {
        PyObject* item = PyList_GET_ITEM(o, j);
        out.push_back(is_tensor(item) ? tensor_of(item) : Tensor());
      }
    }
  }
  return out;
}

}  // namespace

PythonNode::~PythonNode() {
  if_interpreter_lives([this] {
    if (context_) context_of(context_.get()).node = nullptr;
    context_ = Ref();
  });
  context_.release();
}

std::string PythonNode::who() const {
  return fmt::format("{}: backward ({}:{})", schema_.name(), autograd_->where.file, autograd_->where.line);
}

void PythonNode::begin(OpCall& call) {
  g_graph_has_python = true;
  set_source(note_source(__builtin_frame_address(0)));
  const auto add = [&](PyObject* o) {
    add_edge(is_tensor(o) ? autograd::gradient_edge(tensor_of(o)) : Edge());
  };
  for (size_t i = 0; i < schema_.num_positional; ++i) {
    const OpArgument& a = schema_.arguments[i];
    if (a.base != BaseType::Tensor) continue;
    PyObject* o = call.slots()[i];
    if (!a.list) {
      add(o);
      continue;
    }
    const Py_ssize_t n = o == Py_None ? 0 : PyList_GET_SIZE(o);
    argument_lists_.push_back(static_cast<uint32_t>(n));
    for (Py_ssize_t j = 0; j < n; ++j) add(PyList_GET_ITEM(o, j));
  }
}

void PythonNode::run_setup(OpCall& call, PyObject* result) {
  context_ = make_context(*this);
  if (!autograd_->setup_context) return;
  const Ref inputs = tuple_of(std::span(call.slots(), schema_.num_positional), Py_NewRef);
  PyObject* arguments[] = {nullptr, context_.get(), inputs.get(), result, nullptr};
  Ref names, values;
  if (schema_.keywords) {
    values = Ref(checked(PyDict_New()));
    for (size_t i = schema_.num_positional; i < schema_.arguments.size(); ++i) {
      if (PyDict_SetItem(values.get(), schema_.arguments[i].name, call.slots()[i]) < 0) throw PythonError();
    }
    arguments[4] = values.get();
    names = Ref(checked(Py_BuildValue("(s)", "keyword_only_inputs")));
  }
  const NoGradGuard no_grad;
  const Ref done(PyObject_Vectorcall(autograd_->setup_context, arguments + 1,
                                     3 | PY_VECTORCALL_ARGUMENTS_OFFSET, names.get()));
  if (!done) throw PythonError();
}

void PythonNode::save(PyObject* tensors, const std::vector<Tensor>& results) {
  const Py_ssize_t n = PyTuple_GET_SIZE(tensors);
  saved_.resize(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* o = PyTuple_GET_ITEM(tensors, i);
    if (!is_tensor(o)) continue;
    const Tensor& t = tensor_of(o);
    uint32_t nr = 0;
    while (nr < results.size() && !(results[nr].defined() && results[nr].is_same(t))) ++nr;
    if (nr < results.size())
      saved_[static_cast<size_t>(i)].save_output(t, nr, t._version());
    else
      saved_[static_cast<size_t>(i)].save_input(t);
  }
}

void PythonNode::finish(OpCall& call, PyObject* result) {
  const std::vector<Tensor> results = tensors_of(schema_, result, result_lists_);
  run_setup(call, result);
  ContextObject& ctx = context_of(context_.get());
  if (ctx.to_save) save(ctx.to_save, results);
  const Ref saved(std::exchange(ctx.to_save, nullptr)),
      marked(std::exchange(ctx.non_differentiable, nullptr));
  const auto owner = IntrusivePtr<Node>::share(this);
  for (const Tensor& t : results) {
    if (!t.defined()) {
      add_input(autograd::TensorMeta());
      continue;
    }
    const uint32_t nr = add_input(t);
    if (!autograd::is_differentiable(t.dtype()) || contains(marked.get(), t)) continue;
    TENON_CHECK(!t.grad_fn() && !(t.is_leaf() && t.requires_grad()), Runtime,
                fmt::format("{}: a kernel returned a tensor that has a history of its own", schema_.name()));
    autograd::set_history(t, {owner, nr});
    // What setup_context has kept may lead back to the result.
    if (ctx.dict) track(static_cast<PyObject*>(t.impl()->binding().object));
  }
}

Ref PythonNode::saved_tensors() const {
  TENON_CHECK(!released_, Runtime,
              fmt::format("{}: Trying to backward through the graph a second time, or to read "
                          "ctx.saved_tensors after it was freed. Specify retain_graph=True if you need to.",
                          schema_.name()));
  return tuple_by_place(saved_.size(), [&](size_t i) {
    const bool given = saved_[i].saved() || saved_[i].released();
    return wrap(given ? saved_[i].unpack(*this, schema_.name(), fmt::format("saved tensor {}", i))
                      : Tensor());
  });
}

Ref PythonNode::needs_input_grad() const {
  const auto edges = next_edges();
  size_t edge = 0, list = 0;
  const auto wanted = [&] { return PyBool_FromLong(static_cast<bool>(edges[edge++])); };
  return tuple_by_place(schema_.num_positional, [&](size_t i) {
    const OpArgument& a = schema_.arguments[i];
    if (a.base != BaseType::Tensor) return PyBool_FromLong(0);
    if (!a.list) return wanted();
    return list_of(std::views::iota(0u, argument_lists_[list++]), [&](uint32_t) { return wanted(); })
        .release();
  });
}

Ref PythonNode::gradient_object(NodeCall& call, size_t i) const {
  Tensor& grad = call.grads[i];
  if (!grad.defined() && context_of(context_.get()).materialize_grads) {
    const autograd::TensorMeta& meta = input_meta(i);
    grad = zeros(meta.sizes(), meta.options());
  }
  return Ref(checked(wrap(std::move(grad))));
}

void PythonNode::pass_gradients(NodeCall& call, std::vector<Ref>& out) const {
  size_t next = 0, list = 0;
  for (const schema::Return& r : schema_.source->returns) {
    if (r.type.is_tensor()) {
      out.push_back(gradient_object(call, next++));
    } else if (r.type.is_tensor_list()) {
      const auto all = std::views::iota(0u, result_lists_[list++]);
      out.push_back(list_of(all, [&](uint32_t) { return gradient_object(call, next++); }));
    } else {
      out.push_back(Ref::borrow(Py_None));
    }
  }
}

void PythonNode::take_gradients(PyObject* returned, NodeCall& call) const {
  const size_t expected = schema_.num_positional;
  PyObject* one[] = {returned};
  PyObject** values = one;
  size_t count = 1;
  if (PyTuple_Check(returned) || PyList_Check(returned)) {
    values = PySequence_Fast_ITEMS(returned);
    count = static_cast<size_t>(PySequence_Fast_GET_SIZE(returned));
  }
  bool rest_is_none = true;
  for (size_t i = expected; i < count; ++i) rest_is_none &= values[i] == Py_None;
  TENON_CHECK(count >= expected && rest_is_none, Runtime,
              fmt::format("{}: returned {} gradients, expected {}, one for each positional argument", who(),
                          count, expected));
  size_t edge = 0, list = 0;
  const auto take = [&](PyObject* o, const OpArgument& a) {
    const size_t place = edge++;
    if (o == Py_None) return;
    TENON_CHECK(is_tensor(o), Type,
                fmt::format("{}: the gradient of argument `{}` must be a Tensor or None, not {}", who(),
                            a.declared->name, Py_TYPE(o)->tp_name));
    if (call.wanted(place)) call.out[place] = tensor_of(o);
  };
  for (size_t i = 0; i < expected; ++i) {
    const OpArgument& a = schema_.arguments[i];
    PyObject* o = values[i];
    if (a.base != BaseType::Tensor) {
      TENON_CHECK(o == Py_None, Runtime,
                  fmt::format("{}: returned a gradient for argument `{}`, which is no tensor; return None",
                              who(), a.declared->name));
      continue;
    }
    if (!a.list) {
      take(o, a);
      continue;
    }
    const uint32_t n = argument_lists_[list++];
    if (o == Py_None) {
      edge += n;
      continue;
    }
    TENON_CHECK((PyList_Check(o) || PyTuple_Check(o)) && PySequence_Fast_GET_SIZE(o) == n, Runtime,
                fmt::format("{}: the gradient of argument `{}` must be a list of {} values", who(),
                            a.declared->name, n));
    for (uint32_t j = 0; j < n; ++j) take(PySequence_Fast_GET_ITEM(o, j), a);
  }
}

void PythonNode::apply(NodeCall& call) {
  bool any = false;
  for (const Tensor& grad : call.grads) any |= grad.defined();
  if (!any) return;
  const HoldGil gil;
  try {
    std::vector<Ref> gradients;
    pass_gradients(call, gradients);
    std::vector<PyObject*> arguments{nullptr, context_.get()};
    for (const Ref& r : gradients) arguments.push_back(r.get());
    const Ref returned(PyObject_Vectorcall(autograd_->backward, arguments.data() + 1,
                                           (arguments.size() - 1) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
    if (!returned) throw PythonError();
    take_gradients(returned.get(), call);
  } catch (const PythonError&) {
    throw_python_error();
  }
}

void PythonNode::release_variables() noexcept {
  for (autograd::SavedTensor& t : saved_) t.release();
  released_ = !saved_.empty();
}

void PythonNode::visit_saved(autograd::SavedVisitor& visitor) const {
  for (size_t i = 0; i < saved_.size(); ++i) {
    if (!saved_[i].saved() && !saved_[i].released()) continue;
    visitor.tensor(std::to_string(i),
                   saved_[i].unpack(*this, schema_.name(), fmt::format("saved tensor {}", i)));
  }
}

}  // namespace tenon::python
