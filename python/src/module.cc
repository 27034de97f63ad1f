// The extension module tenon._C.
#include "backends/cpu/cpu_target.h"
#include "python/src/call/overload.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/source_lines.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_parts.h"

namespace {

bool fill(PyObject* module) {
  using namespace tenon::python;
  answer_interrupts();
  return watch_interpreter_end() && add_exceptions(module) && add_source_language(module) &&
         add_types(module) && add_functions(module) && add_tensor_type(module) && add_storage(module) &&
         add_conversion(module) && add_copying(module) && add_indexing(module) && add_dlpack(module) &&
         add_autograd(module) && add_introspection(module) && add_memory(module) && add_devices(module) &&
         add_graphs(module) && add_builder(module) && add_cached_plan(module) && add_recording(module) &&
         add_plans(module) && add_optimizers(module) && add_weights(module) && add_onnx(module) &&
         add_inference(module) && add_dispatch_queries(module) && add_library(module);
}

/// The one module of the process, also where it is imported again. Types, interned names and the interpreter
/// lock are those of the main interpreter: another one, which ends before it, is refused.
PyObject* create(PyObject*, PyModuleDef*) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(
        PyExc_ImportError,
        "tenon: can be imported in Python's main interpreter only, not in a subinterpreter; use a "
        "thread or a process");
    return nullptr;
  }
  static PyObject* const module = PyModule_New("tenon._C");
  return Py_XNewRef(module);
}

int execute(PyObject* module) {
  static bool filled = false;
  if (!filled) filled = tenon::python::guarded([&] { return fill(module) ? module : nullptr; }) != nullptr;
  return filled ? 0 : -1;
}

PyModuleDef_Slot g_slots[] = {{Py_mod_create, reinterpret_cast<void*>(&create)},
                              {Py_mod_exec, reinterpret_cast<void*>(&execute)},
#if PY_VERSION_HEX >= 0x030C0000
                              // CPython would refuse other interpreters itself, without saying what to do.
                              {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
                              {0, nullptr}};

PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                        "tenon._C",
                        "The compiled part of tenon.",
                        0,
                        nullptr,
                        g_slots,
                        nullptr,
                        nullptr,
                        nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  // Nothing so far was compiled for more than every x86-64 has; kernels are.
  if (tenon::cpu::supported_cpu_targets().empty()) {
    PyErr_SetString(PyExc_ImportError, ("tenon: " + std::string(tenon::cpu::kBaselineSentence)).c_str());
    return nullptr;
  }
  return PyModuleDef_Init(&g_module);
}
