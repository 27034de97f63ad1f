// The extension module tenon._C.
#include "backends/cpu/cpu_target.h"
#include "python/src/call/overload.h"
#include "python/src/interpreter/errors.h"
#include "python/src/interpreter/source_lines.h"
#include "python/src/module_parts.h"
#include "python/src/tensor/attribute_types.h"
#include "python/src/tensor/tensor_parts.h"
#include "tenon/dispatch/dispatcher.h"

namespace {

PyModuleDef g_module = {PyModuleDef_HEAD_INIT,
                        "tenon._C",
                        "The compiled part of tenon.",
                        -1,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr,
                        nullptr};

bool fill(PyObject* module) {
  using namespace tenon::python;
  answer_interrupts();
  return watch_interpreter_end() && add_exceptions(module) && add_source_language(module) &&
         add_types(module) && add_functions(module) && add_tensor_type(module) && add_storage(module) &&
         add_conversion(module) && add_indexing(module) && add_dlpack(module) && add_autograd(module) &&
         add_introspection(module) && add_memory(module) && add_devices(module) && add_graphs(module) &&
         add_builder(module) && add_cached_plan(module) && add_recording(module) && add_plans(module) &&
         add_optimizers(module) && add_weights(module) && add_dispatch_queries(module) && add_library(module);
}

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  // Nothing so far was compiled for more than every x86-64 has; kernels are.
  if (tenon::cpu::supported_cpu_targets().empty()) {
    PyErr_SetString(PyExc_ImportError, ("tenon: " + std::string(tenon::cpu::kBaselineSentence)).c_str());
    return nullptr;
  }
  PyObject* module = PyModule_Create(&g_module);
  if (module && !tenon::python::guarded([&] { return fill(module) ? module : nullptr; })) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
