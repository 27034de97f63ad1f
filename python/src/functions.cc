// The operators' tables, printed by opgen: functions of the module and methods of Tensor.
#include <cstring>

#include "python/src/call.h"
#include "python/src/tensor_parts.h"
#include "tenon/generated/operators.h"

namespace tenon::python {

#include "python/functions.inc"

namespace {

const Function* find(std::span<const Function* const> table, const char* name) noexcept {
  for (const Function* f : table) {
    if (std::strcmp(f->name, name) == 0) return f;
  }
  return nullptr;
}

/// Interns the names of parameters, so that keywords are compared by identity.
bool intern_names(std::span<const Function* const> table) {
  for (const Function* f : table) {
    for (const Overload& o : f->overloads) {
      for (int i = 0; i < o.num_params; ++i) {
        if (!o.names[i] && !(o.names[i] = PyUnicode_InternFromString(o.params[i].name))) return false;
      }
    }
  }
  return true;
}

}  // namespace

const Function* find_function(const char* name) noexcept { return find(g_function_table, name); }
const Function* find_method(const char* name) noexcept { return find(g_method_table, name); }

bool add_functions(PyObject* module) {
  if (!intern_names(g_function_table) || !intern_names(g_method_table)) return false;
  const Ref owner(PyUnicode_FromString("tenon"));
  for (PyMethodDef& def : g_functions) {
    const Ref f(PyCFunction_NewEx(&def, nullptr, owner.get()));
    if (!f || PyModule_AddObjectRef(module, def.ml_name, f.get()) < 0) return false;
  }
  return true;
}

TensorPart operator_part() { return {g_methods, {}}; }

}  // namespace tenon::python
