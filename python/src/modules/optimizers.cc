// The updates of tenon.optim: one call for all parameters of a group, which calls the functions of the C++
// optimizers.
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

/// Puts what a step has made into a list of Tensors and Nones.
void store(PyObject* list, Py_ssize_t i, const Tensor& value) {
  PyObject* old = PyList_GET_ITEM(list, i);
  if (value.defined() && !(is_tensor(old) && tensor_of(old).is_same(value))) {
    if (PyList_SetItem(list, i, checked(wrap(value))) < 0) throw PythonError();
  }
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

void check_lengths(const char* function, size_t count, std::initializer_list<PyObject*> lists) {
  for (PyObject* list : lists) {
    if (!PyList_CheckExact(list) || static_cast<size_t>(PyList_GET_SIZE(list)) != count) {
      throw_error(ErrorKind::Value, std::string(function) + ": the state does not fit the parameters");
    }
  }
}

/// (params, momentum_buffers, lr, momentum, dampening, weight_decay, nesterov, maximize)
PyObject* sgd(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 8, Type, "_sgd_step takes 8 arguments");
    const std::vector<Tensor> params = tensors_of("SGD", args[0]);
    check_lengths("SGD", params.size(), {args[1]});
    std::vector<Tensor> momentum = tensors_of("SGD", args[1]);
    const optim::SGDOptions options{.lr = number("SGD", args[2]),
                                    .momentum = number("SGD", args[3]),
                                    .dampening = number("SGD", args[4]),
                                    .weight_decay = number("SGD", args[5]),
                                    .nesterov = flag(args[6]),
                                    .maximize = flag(args[7])};
    {
      const ReleaseGil gil(total_elements(params) >= kReleaseGilElements);
      optim::sgd_step(params, momentum, options);
    }
    for (size_t i = 0; i < momentum.size(); ++i) store(args[1], static_cast<Py_ssize_t>(i), momentum[i]);
    return Py_NewRef(Py_None);
  });
}

/// (params, steps, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, lr, beta1, beta2, eps, weight_decay, decoupled,
/// amsgrad,
///  maximize)
PyObject* adam(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 13, Type, "_adam_step takes 13 arguments");
    const std::vector<Tensor> params = tensors_of("Adam", args[0]);
    check_lengths("Adam", params.size(), {args[1], args[2], args[3], args[4]});
    const std::vector<Tensor> first = tensors_of("Adam", args[2]), second = tensors_of("Adam", args[3]),
                              largest = tensors_of("Adam", args[4]);
    std::vector<optim::AdamState> states(params.size());
    for (size_t i = 0; i < states.size(); ++i) {
      int64_t step = 0;
      PyObject* o = PyList_GET_ITEM(args[1], static_cast<Py_ssize_t>(i));
      if (!parse_int(o, step)) wrong_type("Adam", "step", "int", o);
      states[i] = {step, first[i], second[i], largest[i]};
    }
    const optim::AdamOptions options{.lr = number("Adam", args[5]),
                                     .beta1 = number("Adam", args[6]),
                                     .beta2 = number("Adam", args[7]),
                                     .eps = number("Adam", args[8]),
                                     .weight_decay = number("Adam", args[9]),
                                     .decoupled_weight_decay = flag(args[10]),
                                     .amsgrad = flag(args[11]),
                                     .maximize = flag(args[12])};
    {
      const ReleaseGil gil(total_elements(params) >= kReleaseGilElements);
      optim::adam_step(params, states, options);
    }
    for (size_t i = 0; i < states.size(); ++i) {
      const auto at = static_cast<Py_ssize_t>(i);
      if (PyList_SetItem(args[1], at, checked(PyLong_FromLongLong(states[i].step))) < 0) throw PythonError();
      store(args[2], at, states[i].exp_avg);
      store(args[3], at, states[i].exp_avg_sq);
      store(args[4], at, states[i].max_exp_avg_sq);
    }
    return Py_NewRef(Py_None);
  });
}

/// (params, set_to_none)
PyObject* zero(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject*) {
  return guarded([&] {
    TENON_CHECK(n == 2, Type, "_zero_grad takes 2 arguments");
    optim::zero_grad(tensors_of("zero_grad", args[0]), flag(args[1]));
    return Py_NewRef(Py_None);
  });
}

PyMethodDef g_functions[] = {
    fast_method("_sgd_step", &sgd), fast_method("_adam_step", &adam), fast_method("_zero_grad", &zero), {}};

}  // namespace

bool add_optimizers(PyObject* module) { return PyModule_AddFunctions(module, g_functions) == 0; }

}  // namespace tenon::python
