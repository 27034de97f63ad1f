#include "python/src/call/overload.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "python/src/call/bind.h"
#include "python/src/call/parser.h"
#include "tenon/dispatch/operator.h"

namespace tenon::python {
namespace {

std::string type_names(const Arguments& a) {
  std::string out;
  const Py_ssize_t keywords = a.keywords ? PyTuple_GET_SIZE(a.keywords) : 0;
  for (Py_ssize_t i = 0; i < a.count + keywords; ++i) {
    if (!out.empty()) out += ", ";
    if (i >= a.count) {
      const char* name = PyUnicode_AsUTF8(PyTuple_GET_ITEM(a.keywords, i - a.count));
      out.append(name ? name : "?").append("=");
    }
    out += type_name(a.args[i]);
  }
  return out;
}

/// What the caller of a function calls the parameter: a method's self is a function's input.
const char* shown_name(const Param& param, const Arguments& a) noexcept {
  return !a.self && std::strcmp(param.name, "self") == 0 ? "input" : param.name;
}

/// The type of an object that does not fit, and why a tensor of one element is no number.
std::string shown_misfit(PyObject* o) {
  std::string out = type_name(o);
  if (!is_tensor(o) || tensor_of(o).dim() != 0) return out;
  if (tensor_of(o).device().is_meta()) return out + " on meta, which has no data";
  if (tensor_of(o).requires_grad()) return out + " that requires grad; pass its item()";
  return out;
}

/// Why an overload does not take the arguments; where names and counts fit, parameter `misfit` does not.
std::string reason(const Overload& o, const Arguments& a, uint8_t misfit) {
  const Py_ssize_t first = a.self ? 1 : 0;
  if (a.count > o.num_positional - first && !(o.variadic && looks_like_int(a.args[0]))) {
    return "takes " + std::to_string(o.num_positional - first) + " positional arguments, got " +
           std::to_string(a.count);
  }
  PyObject* slots[kMaxParams + 1] = {};
  if (!bind(o, a, slots)) {
    for (int i = 0; i < o.num_params; ++i) {
      if (!slots[i] && o.params[i].fallback.kind == Default::Kind::Required) {
        return std::string("misses argument '") + shown_name(o.params[i], a) + "'";
      }
    }
    return "does not take these keywords";
  }
  const Param& param = o.params[misfit];
  std::string out = std::string("argument '") + shown_name(param, a) + "' must be " + param.type;
  PyObject* given = slots[misfit];
  if (!given) return out;
  std::span<PyObject* const> items;
  if (given == kRest) {
    items = {a.args, static_cast<size_t>(a.count)};
    given = items[0];
  } else if (std::strncmp(param.type, "Sequence", 8) == 0 && is_sequence(given)) {
    items = {PySequence_Fast_ITEMS(given), static_cast<size_t>(PySequence_Fast_GET_SIZE(given))};
  }
  const bool tensors = std::strstr(param.type, "Tensor"), ints = std::strstr(param.type, "[int");
  for (size_t i = 0; i < items.size(); ++i) {
    PyObject* const item = items[i];
    const bool number = looks_like_int(item) ? !(ints && PyBool_Check(item)) : !ints && PyFloat_Check(item);
    const bool has_data = !is_tensor(item) || !tensor_of(item).device().is_meta();
    const bool fits = tensors ? is_tensor(item) : number && has_data;
    if (!fits) return out + ", but element " + std::to_string(i) + " is " + shown_misfit(item);
  }
  return out + ", not " + shown_misfit(given);
}

bool has_keyword(const Arguments& a, const char* name) noexcept {
  const Py_ssize_t n = a.keywords ? PyTuple_GET_SIZE(a.keywords) : 0;
  for (Py_ssize_t k = 0; k < n; ++k) {
    if (is_named(PyTuple_GET_ITEM(a.keywords, k), name)) return true;
  }
  return false;
}

/// A keyword that no overload knows, or null.
PyObject* unknown_keyword(const Function& f, const Arguments& a) noexcept {
  const Py_ssize_t n = a.keywords ? PyTuple_GET_SIZE(a.keywords) : 0;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyObject* keyword = PyTuple_GET_ITEM(a.keywords, k);
    bool known = false;
    for (const Overload& o : f.overloads) {
      known |= find_param(o, keyword) >= 0 || (o.takes_requires_grad && is_named(keyword, "requires_grad")) ||
               (o.num_out > 0 && is_named(keyword, "out"));
    }
    if (!known) return keyword;
  }
  return nullptr;
}

PyObject* refuse(const Function& f, const Arguments& a) {
  std::string message = std::string(f.name) + "()";
  if (PyObject* keyword = unknown_keyword(f, a)) {
    const char* name = PyUnicode_AsUTF8(keyword);
    throw_error(ErrorKind::Type,
                message + " got an unexpected keyword argument '" + (name ? name : "?") + "'");
  }
  const auto explain = [&](const Overload& o) { return reason(o, a, a.misfits[&o - f.overloads.data()]); };
  std::vector<const Overload*> candidates;
  for (const Overload& o : f.overloads) {
    if (o.num_out == 0 || has_keyword(a, "out")) candidates.push_back(&o);
  }
  if (candidates.size() == 1) {
    message += ": " + explain(*candidates[0]) + "; the signature is " + candidates[0]->text;
  } else {
    message += ": no signature takes (" + type_names(a) + "); there are:";
    for (const Overload* o : candidates) message += std::string("\n  ") + o->text + ": " + explain(*o);
  }
  throw_error(ErrorKind::Type, message);
}

bool has_tensor(const Arguments& a) noexcept {
  const Py_ssize_t count = a.count + (a.keywords ? PyTuple_GET_SIZE(a.keywords) : 0);
  return a.self || std::any_of(a.args, a.args + count, [](PyObject* o) { return is_tensor(o); });
}

PyObject* try_overloads(const Function& f, Arguments& a) {
  uint8_t* misfit = a.misfits;
  for (const Overload& o : f.overloads) {
    if (PyObject* result = o.invoke(o, a); result != kNoMatch) [[likely]]
      return result;
    *misfit++ = a.failed;
  }
  const bool numbers = f.numbers_as_tensors == NumbersAsTensors::All ||
                       (f.numbers_as_tensors == NumbersAsTensors::Mixed && has_tensor(a));
  if (numbers) {
    a.numbers_as_tensors = true;
    for (const Overload& o : f.overloads) {
      if (PyObject* result = o.invoke(o, a); result != kNoMatch) return result;
    }
    a.numbers_as_tensors = false;
  }
  return kNoMatch;
}

PyObject* first_fit(const Function& f, Arguments& a) {
  if (!f.overloads.empty()) [[likely]]
    return try_overloads(f, a);
  return guarded([&] {
    prepare(f);
    return try_overloads(f, a);
  });
}

}  // namespace

void set_call_error(const Overload& overload) noexcept {
  set_python_error(overload.function, OperatorHandle(*overload.entry).schema().name);
}

PyObject* call(const Function& function, Arguments arguments) noexcept {
  PyObject* result = first_fit(function, arguments);
  if (result != kNoMatch) [[likely]]
    return result;
  return guarded([&] { return refuse(function, arguments); });
}

PyObject* call_operator(const Function& function, Arguments arguments) noexcept {
  PyObject* result = first_fit(function, arguments);
  return result != kNoMatch ? result : Py_NewRef(Py_NotImplemented);
}

void mark_requires_grad(PyObject* value, Tensor& result) {
  const int on = PyObject_IsTrue(value);
  if (on < 0) throw PythonError();
  if (on) result.requires_grad_();
}

}  // namespace tenon::python
