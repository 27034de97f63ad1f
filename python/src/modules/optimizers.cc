// The updates of tenon.optim: one call for all parameters of a group, which calls the functions of the C++
// optimizers.
#include "python/src/call/optimizer_updates.h"
#include "python/src/call/parser.h"
#include "python/src/call/spread.h"
#include "python/src/module_parts.h"
#include "tenon/optim/adam.h"
#include "tenon/optim/sgd.h"

namespace tenon::python {
namespace {

PyObject* list_argument(const char* function, PyObject* o) {
  if (!PyList_CheckExact(o)) wrong_type(function, "params", "a list", o);
  return o;
}

std::vector<Tensor> tensors_of(const char* function, PyObject* list) {
  std::vector<Tensor> out;
  out.reserve(static_cast<size_t>(PyList_GET_SIZE(list_argument(function, list))));
  if (!parse_tensors(list, true, out)) wrong_type(function, "params", "a list of Tensors", list);
  return out;
}

/// The dicts of the parameters' state.
std::vector<PyObject*> slots_of(const char* function, PyObject* list, size_t count) {
  std::vector<PyObject*> slots;
  slots.reserve(count);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list_argument(function, list)); ++i) {
    PyObject* slot = PyList_GET_ITEM(list, i);
    if (!PyDict_Check(slot)) wrong_type(function, "state", "a dict for each parameter", slot);
    slots.push_back(slot);
  }
  if (slots.size() != count) {
    throw_error(ErrorKind::Value, std::string(function) + ": the state does not fit the parameters");
  }
  return slots;
}

/// The value of a state, borrowed; null where it is missing or None.
PyObject* value_of(PyObject* slot, PyObject* name) {
  PyObject* value = PyDict_GetItemWithError(slot, name);
  if (!value && PyErr_Occurred()) throw PythonError();
  return value == Py_None ? nullptr : value;
}

Tensor tensor_of_slot(const char* function, PyObject* slot, PyObject* name) {
  PyObject* value = value_of(slot, name);
  if (!value) return {};
  if (!is_tensor(value)) wrong_type(function, "state", "a Tensor", value);
  return tensor_of(value);
}

/// Puts what a step has made into a state.
void store(PyObject* slot, PyObject* name, const Tensor& value) {
  if (!value.defined()) return;
  PyObject* old = PyDict_GetItem(slot, name);
  if (old && is_tensor(old) && tensor_of(old).is_same(value)) return;
  const Ref wrapped(checked(wrap(value)));
  if (PyDict_SetItem(slot, name, wrapped.get()) < 0) throw PythonError();
}

/// Names of state, which outlive the interpreter's modules.
struct Names {
  PyObject* momentum_buffer = PyUnicode_InternFromString("momentum_buffer");
  PyObject* step = PyUnicode_InternFromString("step");
  PyObject* exp_avg = PyUnicode_InternFromString("exp_avg");
  PyObject* exp_avg_sq = PyUnicode_InternFromString("exp_avg_sq");
  PyObject* max_exp_avg_sq = PyUnicode_InternFromString("max_exp_avg_sq");
};
const Names& names() {
  static const Names names;
  return names;
}

double number(const char* function, PyObject* o) {
  double value = 0;
  if (!parse_float(o, value)) wrong_type(function, "option", "a number", o);
  return value;
}

int64_t total_elements(const std::vector<Tensor>& tensors) {
  int64_t n = 0;
  for (const Tensor& t : tensors) n += t.numel();
  return n;
}

/// Tells the capture of this call, if there is one, which parameters a step is about to update.
void note_updates(PyObject* list, const std::vector<Tensor>& params) {
  OptimizerUpdates* const updates = OptimizerUpdates::current;
  if (!updates) return;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].grad().defined()) updates->add(list, i);
  }
}

/// (params, state or None, lr, momentum, dampening, weight_decay, nesterov, maximize)
PyObject* sgd(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 8, Type, "_sgd_step takes 8 arguments");
    const std::vector<Tensor> params = tensors_of("SGD", args[0]);
    std::vector<PyObject*> slots;
    if (args[1] != Py_None) slots = slots_of("SGD", args[1], params.size());
    std::vector<Tensor> momentum(params.size());
    for (size_t i = 0; i < slots.size(); ++i) {
      momentum[i] = tensor_of_slot("SGD", slots[i], names().momentum_buffer);
    }
    const optim::SGDOptions options{.lr = number("SGD", args[2]),
                                    .momentum = number("SGD", args[3]),
                                    .dampening = number("SGD", args[4]),
                                    .weight_decay = number("SGD", args[5]),
                                    .nesterov = flag("SGD", "nesterov", args[6]),
                                    .maximize = flag("SGD", "maximize", args[7])};
    note_updates(args[0], params);
    without_gil(total_elements(params) >= kReleaseGilElements,
                [&] { optim::sgd_step(params, momentum, options); });
    for (size_t i = 0; i < slots.size(); ++i) store(slots[i], names().momentum_buffer, momentum[i]);
  });
}

int64_t step_of(PyObject* slot) {
  PyObject* value = value_of(slot, names().step);
  if (!value) return 0;
  int64_t step = 0;
  if (parse_int(value, step)) return step;
  double number = 0;  // what PyTorch's own state dicts have: a tensor of one float
  if (!parse_float(value, number)) wrong_type("Adam", "step", "a number", value);
  return static_cast<int64_t>(number);
}

/// (params, state, lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize)
PyObject* adam(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 10, Type, "_adam_step takes 10 arguments");
    const std::vector<Tensor> params = tensors_of("Adam", args[0]);
    const std::vector<PyObject*> slots = slots_of("Adam", args[1], params.size());
    std::vector<optim::AdamState> states(params.size());
    std::vector<int64_t> steps(params.size());
    for (size_t i = 0; i < states.size(); ++i) {
      steps[i] = step_of(slots[i]);
      states[i] = {steps[i], tensor_of_slot("Adam", slots[i], names().exp_avg),
                   tensor_of_slot("Adam", slots[i], names().exp_avg_sq),
                   tensor_of_slot("Adam", slots[i], names().max_exp_avg_sq)};
    }
    const optim::AdamOptions options{
        .lr = number("Adam", args[2]),
        .beta1 = number("Adam", args[3]),
        .beta2 = number("Adam", args[4]),
        .eps = number("Adam", args[5]),
        .weight_decay = number("Adam", args[6]),
        .decoupled_weight_decay = flag("Adam", "decoupled_weight_decay", args[7]),
        .amsgrad = flag("Adam", "amsgrad", args[8]),
        .maximize = flag("Adam", "maximize", args[9])};
    note_updates(args[0], params);
    without_gil(total_elements(params) >= kReleaseGilElements,
                [&] { optim::adam_step(params, states, options); });
    for (size_t i = 0; i < states.size(); ++i) {
      if (states[i].step == steps[i]) continue;  // a parameter without a gradient
      const Ref step(checked(PyLong_FromLongLong(states[i].step)));
      if (PyDict_SetItem(slots[i], names().step, step.get()) < 0) throw PythonError();
      store(slots[i], names().exp_avg, states[i].exp_avg);
      store(slots[i], names().exp_avg_sq, states[i].exp_avg_sq);
      store(slots[i], names().max_exp_avg_sq, states[i].max_exp_avg_sq);
    }
  });
}

/// (params, set_to_none)
PyObject* zero(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 2, Type, "_zero_grad takes 2 arguments");
    optim::zero_grad(tensors_of("zero_grad", args[0]), flag("zero_grad", "set_to_none", args[1]));
  });
}

PyMethodDef g_optimizers_functions[] = {
    fast_method("_sgd_step", &sgd), fast_method("_adam_step", &adam), fast_method("_zero_grad", &zero), {}};

}  // namespace

bool add_optimizers(PyObject* module) { return PyModule_AddFunctions(module, g_optimizers_functions) == 0; }

}  // namespace tenon::python
