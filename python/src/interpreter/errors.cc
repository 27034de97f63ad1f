#include "python/src/interpreter/errors.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "tenon/core/allocator.h"
#include "tenon/core/error.h"
#include "tenon/core/host_memory.h"
#include "tenon/core/interrupt.h"
#include "tenon/io/replace_file.h"
#include "tenon/ops/linalg/linalg_error.h"

namespace tenon::python {
namespace {

// Errors that PyTorch raises as RuntimeError, although the condition is one of values, memory or files: both
// clauses work.
PyObject* g_shape_error = nullptr;
PyObject* g_out_of_memory = nullptr;
PyObject* g_file_error = nullptr;
PyObject* g_linalg_error = nullptr;

PyObject* exception_for(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Shape:
      return g_shape_error;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return g_out_of_memory;
    case ErrorKind::Device:
    case ErrorKind::Runtime:
    case ErrorKind::Internal:
      break;
  }
  return PyExc_RuntimeError;
}

/// A Python exception on its way through C++ code that may keep it, rethrow it on another thread, or drop it.
class CarriedError : public Error {
 public:
  CarriedError(const std::string& message, PyObject* type, PyObject* value, PyObject* traceback)
      : Error(ErrorKind::Runtime, "a Python exception"),
        text_(message),
        state_(std::make_shared<State>(type, value, traceback)) {}

  /// The exception's own text, in which no operator is named.
  const char* what() const noexcept override { return text_.what(); }

  void restore() const noexcept {
    PyErr_Restore(Py_XNewRef(state_->type), Py_XNewRef(state_->value), Py_XNewRef(state_->traceback));
  }

 private:
  struct State {
    State(PyObject* t, PyObject* v, PyObject* b) : type(t), value(v), traceback(b) {}
    ~State() {
      if_interpreter_lives([this] {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
      });
    }
    PyObject *type, *value, *traceback;
  };
  std::runtime_error text_;  // its copies do not throw
  std::shared_ptr<State> state_;
};

/// One that a handler of signals has raised between two steps of a kernel.
struct CarriedInterruption : CarriedError, Interruption {
  using CarriedError::CarriedError;
};

/// Takes the Python exception that is set.
template <class Carried>
[[noreturn]] void throw_carried() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  const Ref text(value ? PyObject_Str(value) : nullptr);
  const char* message = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!message) PyErr_Clear();
  throw Carried(message ? message : "a Python exception", type, value, traceback);
}

}  // namespace

namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// "add: " before a text that does not say what was called: neither in it, nor as "name: " at its start.
std::string with_name(const char* called, std::string_view text) {
  const auto word = static_cast<size_t>(std::find_if_not(text.begin(), text.end(), in_name) - text.begin());
  const bool starts = word > 0 && text.substr(word).starts_with(": ");
  // As a word: "integer" has no name of `ge`.
  const auto names = [&] {
    const size_t length = std::strlen(called);
    for (size_t at = text.find(called); at != std::string_view::npos; at = text.find(called, at + 1))
      if ((at == 0 || !in_name(text[at - 1])) && (at + length == text.size() || !in_name(text[at + length])))
        return true;
    return false;
  };
  const bool named = !*called || starts || names();
  return (named ? std::string() : std::string(called) + ": ").append(text);
}

/// The text with its first word, in each of its places, as programs write it: linalg.inv for linalg_inv.
std::string with_module_name(std::string text) {
  const std::string word(text.begin(), std::find_if_not(text.begin(), text.end(), in_name));
  const size_t dot = word.find('_');
  const std::string module = word.substr(0, dot);
  if (dot == std::string::npos || (module != "fft" && module != "linalg" && module != "special")) return text;
  for (size_t at = 0; at != std::string::npos; at = text.find(word, at + 1))
    if (at == 0 || std::strchr(" \n'`", text[at - 1])) text[at + dot] = '.';
  return text;
}

/// For an allocation of the C++ library's, which says nothing of its size.
void set_out_of_memory(const char* called) noexcept {
  const size_t emptied = empty_cpu_cache();
  try {
    const std::string text = with_name(called, "out of memory: ") + detail::describe_cpu_memory() +
                             "and its cache held " + format_bytes(emptied) + ", which it has given back now";
    PyErr_SetString(g_out_of_memory, text.c_str());
  } catch (...) {
    PyErr_SetString(g_out_of_memory, "out of memory");
  }
}

}  // namespace

/// Text from outside, of a plug-in say, may be no UTF-8.
static void set_error(PyObject* type, std::string text) noexcept {
  text = with_module_name(std::move(text));
  PyObject* message = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (!message) return;
  PyErr_SetObject(type, message);
  Py_DECREF(message);
}

/// FileNotFoundError and its kin, with the path and the system's number.
static void set_system_error(const io::SystemError& e) noexcept {
  const Ref path(PyUnicode_DecodeFSDefault(e.path().c_str()));
  const Ref error(path ? PyObject_CallFunction(PyExc_OSError, "isO", e.code(), e.reason().c_str(), path.get())
                       : nullptr);
  if (error) PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.get())), error.get());
}

void set_python_error(const char* called, std::string_view original) noexcept {
  try {
    throw;
  } catch (const PythonError&) {
  } catch (const CarriedError& e) {
    e.restore();
  } catch (const io::SystemError& e) {
    set_system_error(e);
  } catch (const FileError& e) {
    set_error(g_file_error, e.what());
  } catch (Error& e) {
    const bool named = !e.operator_name().empty();
    // A check that the forms of an operator share names the functional one.
    const std::string_view form =
        original.ends_with('_') ? original.substr(0, original.size() - 1) : original;
    if (named && (e.operator_name() == original || e.operator_name() == form)) e.set_operator(called);
    PyObject* type = dynamic_cast<LinAlgError*>(&e) ? g_linalg_error : exception_for(e.kind());
    set_error(type, named ? e.what() : with_name(called, e.what()));
  } catch (const std::bad_alloc&) {
    set_out_of_memory(called);
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, with_name(called, e.what()));
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an exception that is not a std::exception");
  }
}

std::string take_error_text() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref owned_type(type), owned_value(value), owned_traceback(traceback);
  const Ref text(value ? PyObject_Str(value) : nullptr);
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "a Python exception";
}

void throw_python_error() { throw_carried<CarriedError>(); }
void throw_python_interruption() { throw_carried<CarriedInterruption>(); }

bool add_exceptions(PyObject* module) {
  const auto add = [&](const char* name, const char* full_name, const char* doc, PyObject* a) -> PyObject* {
    const Ref bases(PyTuple_Pack(2, a, PyExc_RuntimeError));
    PyObject* type = bases ? PyErr_NewExceptionWithDoc(full_name, doc, bases.get(), nullptr) : nullptr;
    if (type && PyModule_AddObjectRef(module, name, type) < 0) return nullptr;
    return type;
  };
  g_shape_error =
      add("ShapeError", "tenon.ShapeError", "Sizes or strides that do not fit.", PyExc_ValueError);
  g_out_of_memory = add("OutOfMemoryError", "tenon.OutOfMemoryError", "Memory ran out; nothing was changed.",
                        PyExc_MemoryError);
  g_file_error = add("FileError", "tenon.FileError", "A file that cannot be read or loaded.", PyExc_OSError);
  g_linalg_error = PyErr_NewExceptionWithDoc(
      "tenon.linalg.LinAlgError",
      "A matrix is singular or not positive definite, or an iteration did not converge.", PyExc_RuntimeError,
      nullptr);
  if (!g_linalg_error || PyModule_AddObjectRef(module, "_LinAlgError", g_linalg_error) < 0) return false;
  return g_shape_error && g_out_of_memory && g_file_error;
}

}  // namespace tenon::python
