// Overload and Function: operators as Python calls them, made from constant data that opgen prints. Used by
// the tables, and by the code that resolves overloads and makes calls. Independent of C++ signatures.
#pragma once

#include <span>

#include "python/src/interpreter/reference.h"

namespace tenon {
struct OperatorEntry;
}

namespace tenon::python {

/// The value of a parameter that the caller leaves out.
struct Default {
  enum class Kind : uint8_t { Required, None, Int, Float, Bool, Text, Ints };
  Kind kind = Kind::Required;
  int64_t i = 0;  ///< Int, Bool; a DType, Layout or MemoryFormat by its number.
  double d = 0;
  const char* text = nullptr;
  std::span<const int64_t> ints = {};

  static constexpr Default none() { return {.kind = Kind::None}; }
  static constexpr Default integer(int64_t v) { return {.kind = Kind::Int, .i = v}; }
  static constexpr Default number(double v) { return {.kind = Kind::Float, .d = v}; }
  static constexpr Default boolean(bool v) { return {.kind = Kind::Bool, .i = v}; }
  static constexpr Default string(const char* v) { return {.kind = Kind::Text, .text = v}; }
  static constexpr Default list(std::span<const int64_t> v) { return {.kind = Kind::Ints, .ints = v}; }
};

inline constexpr int kMaxParams = 32;
/// Of a name.
inline constexpr size_t kMaxOverloads = 16;

struct Param {
  const char* name = "";
  const char* type = "";  ///< For error messages: "Tensor", "int | Sequence[int]".
  Default fallback = {};
  bool optional = false;   ///< Takes None.
  bool is_out = false;     ///< Reached by the keyword `out`.
  int32_t list_size = -1;  ///< N of int[N]: one int is N of them.
};

struct Overload;
struct Arguments;

/// Parses arguments for one C++ signature and makes the call. Returns kNoMatch when they do not fit, null
/// with an exception set when the call failed.
using Invoke = PyObject* (*)(const Overload&, const Arguments&);
inline PyObject* const kNoMatch = reinterpret_cast<PyObject*>(1);

/// Sets the Python exception for the C++ exception that a call of the overload threw, which names the
/// function as the caller does. To be called in a catch block.
void set_call_error(const Overload& overload) noexcept;

/// One operator of the dispatcher, as Python calls it.
struct Overload {
  Invoke invoke = nullptr;
  OperatorEntry* entry = nullptr;
  const Param* params = nullptr;
  PyObject* const* names = nullptr;  ///< Interned names of the parameters.
  const char* text =
      "";  ///< As error messages show it: "add(Tensor input, Tensor other, *, Number alpha=1)".
  const char* const* result_names = nullptr;  ///< Of a tuple of named results.
  uint8_t num_params = 0;
  uint8_t num_positional = 0;
  uint8_t num_out = 0;
  /// The first parameter after `self` is a list of ints and the last positional one: x.view(2, 3).
  bool variadic = false;
  bool takes_requires_grad = false;  ///< A factory: requires_grad=True marks the result.
  /// A factory with `out`: the last parameters are not the operator's, but options that `out` must have.
  bool options_of_out = false;
  bool is_view = false;       ///< Whatever its size, it keeps the interpreter lock.
  uint8_t self_position = 0;  ///< Where a method's object goes: where(condition, self, other).
  const char* function = "";  ///< The name that it is called by.
};

/// Whether a call that no overload fits is tried again with numbers for tensors: not, if another argument is
/// a tensor, as in bitwise_and(1, x), or always, as in add(1, 2). opgen's python_names.cc decides.
enum class NumbersAsTensors : uint8_t { None, Mixed, All };

/// All overloads of a name, in the order in which they are tried. They are made at the first call.
struct Function {
  const char* name = nullptr;
  mutable std::span<const Overload> overloads = {};
  NumbersAsTensors numbers_as_tensors = NumbersAsTensors::None;
  uint16_t first_row = 0, num_rows = 0;  ///< What they are made from; see function_tables.cc.
};
/// Makes the overloads. Throws PythonError.
void prepare(const Function& function);

/// The arguments that a caller passed.
struct Arguments {
  PyObject* self = nullptr;  ///< Of a method, or null.
  PyObject* const* args = nullptr;
  Py_ssize_t count = 0;  ///< Positional ones.
  PyObject* keywords = nullptr;
  bool numbers_as_tensors = false;
  /// The parameter whose value did not fit, set with kNoMatch where names and counts did.
  mutable uint8_t failed = 0;
  /// `failed` of each overload, once all have been tried.
  uint8_t misfits[kMaxOverloads];
};

/// Tries the overloads in turn. Does not throw; returns null with an exception set if none fits or the call
/// failed.
PyObject* call(const Function& function, Arguments arguments) noexcept;
/// As `call`, but returns NotImplemented if none fits: for operators such as `+`.
PyObject* call_operator(const Function& function, Arguments arguments) noexcept;

/// The function or method of a name; null when there is none.
const Function* find_function(const char* name) noexcept;
const Function* find_method(const char* name) noexcept;

/// Adds the functions of all operators to the module.
bool add_functions(PyObject* module);

}  // namespace tenon::python
