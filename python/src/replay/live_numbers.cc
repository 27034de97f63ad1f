#include "python/src/replay/live_numbers.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "python/src/interpreter/errors.h"
#include "tenon/core/error.h"
#include "tenon/generated/arithmetic/operators.h"
#include "tenon/generated/optimizer/operators.h"

namespace tenon::python::replay {
namespace {

struct Names {
  PyObject* lr = PyUnicode_InternFromString("lr");
  PyObject* step = PyUnicode_InternFromString("step");
};
const Names& names() {
  static const Names names;
  return names;
}

/// The number of the one call of `op` that writes a slot. Throws Error{Runtime} if there is none, or several,
/// or if it is another number.
uint32_t number_of(record::Replay& replay, OperatorHandle op, uint32_t slot, std::string_view argument,
                   double value) {
  const auto found = replay.number_of(op.schema().name, slot, argument);
  const double recorded = found ? replay.number(*found).to_double() : 0;
  TENON_CHECK(found && (recorded == value || (std::isnan(recorded) && std::isnan(value))), Runtime,
              "it updates a parameter of an optimizer beside the optimizer's step");
  return *found;
}

/// Whether a rate is one that an optimizer's step takes: it refuses an int beyond 64 bits.
bool is_rate(PyObject* o) noexcept {
  if (!o || PyFloat_CheckExact(o)) return o != nullptr;
  int overflow = 0;
  if (PyLong_CheckExact(o)) PyLong_AsLongLongAndOverflow(o, &overflow);
  return PyLong_CheckExact(o) && overflow == 0;
}
/// Whether a count of steps can be counted on.
bool is_count(PyObject* o) noexcept {
  if (!o || !PyLong_CheckExact(o)) return false;
  int overflow = 0;
  const int64_t count = PyLong_AsLongLongAndOverflow(o, &overflow);
  return overflow == 0 && count < std::numeric_limits<int64_t>::max();
}

}  // namespace

LiveNumbers::LiveNumbers(PyObject* list, record::Replay& replay) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    const char* algorithm = nullptr;
    PyObject *group, *state;
    unsigned slot = 0;
    int decoupled = 0;
    double lr = 0;
    long long step = 0;
    Source source;
    optim::AdamOptions& o = source.options;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "sOOIdLdddp", &algorithm, &group, &state, &slot, &lr,
                          &step, &o.beta1, &o.beta2, &o.weight_decay, &decoupled))
      throw PythonError();
    source.group = Ref::borrow(group);
    o.lr = lr;
    o.decoupled_weight_decay = decoupled != 0;
    const std::string_view name = algorithm;
    if (name == "Adam") {
      source.state = Ref::borrow(state);
      const optim::AdamNumbers now = optim::numbers_of(o, step + 1);
      source.step = number_of(replay, operators::_adam_step_, slot, "step", now.step);
      source.root = number_of(replay, operators::_adam_step_, slot, "root", now.root);
      if (o.decoupled_weight_decay && o.weight_decay != 0)
        source.shrink = number_of(replay, operators::mul__Scalar, slot, "other", now.shrink);
    } else if (replay.number_of(operators::_sgd_step_.schema().name, slot, "step")) {
      source.step = number_of(replay, operators::_sgd_step_, slot, "step", -lr);
    } else {
      source.step = number_of(replay, operators::add__Tensor, slot, "alpha", -lr);
    }
    sources_.push_back(std::move(source));
  }
}

bool LiveNumbers::readable() const noexcept {
  for (const Source& source : sources_) {
    if (!is_rate(PyDict_GetItemWithError(source.group.get(), names().lr))) return false;
    if (source.state && !is_count(PyDict_GetItemWithError(source.state.get(), names().step))) return false;
  }
  return true;
}

void LiveNumbers::update(record::Replay& replay) const {
  for (const Source& source : sources_) {
    const double lr = PyFloat_AsDouble(PyDict_GetItemWithError(source.group.get(), names().lr));
    if (lr == -1 && PyErr_Occurred()) throw PythonError();
    if (!source.state) {
      replay.set_number(source.step, -lr);
      continue;
    }
    const int64_t step = PyLong_AsLongLong(PyDict_GetItemWithError(source.state.get(), names().step));
    if (step == -1 && PyErr_Occurred()) throw PythonError();
    optim::AdamOptions options = source.options;
    options.lr = lr;
    const optim::AdamNumbers now = optim::numbers_of(options, step + 1);
    replay.set_number(source.step, now.step);
    replay.set_number(source.root, now.root);
    if (source.shrink != record::kNoSlot) replay.set_number(source.shrink, now.shrink);
  }
}

std::vector<uint32_t> LiveNumbers::numbers() const {
  std::vector<uint32_t> all;
  for (const Source& source : sources_) {
    for (const uint32_t number : {source.step, source.root, source.shrink}) {
      if (number != record::kNoSlot) all.push_back(number);
    }
  }
  return all;
}

void LiveNumbers::count() const {
  for (const Source& source : sources_) {
    if (!source.state) continue;
    const Ref one(checked(PyLong_FromLong(1)));
    const Ref step(
        checked(PyNumber_Add(PyDict_GetItemWithError(source.state.get(), names().step), one.get())));
    if (PyDict_SetItem(source.state.get(), names().step, step.get()) < 0) throw PythonError();
  }
}

int LiveNumbers::traverse(visitproc visit, void* arg) const {
  for (const Source& source : sources_) {
    Py_VISIT(source.group.get());
    Py_VISIT(source.state.get());
  }
  return 0;
}

}  // namespace tenon::python::replay
