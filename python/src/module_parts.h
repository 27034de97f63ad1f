// The parts of the extension module. Used by module.cc and by the files that define them.
#pragma once

#include <string>

#include "python/src/interpreter/reference.h"

namespace tenon::python {

/// Adds the module `tenon._C.NAME` of these functions; false with an exception set.
inline bool add_submodule(PyObject* module, const char* name, PyMethodDef* functions) {
  PyObject* const added = PyModule_New(("tenon._C." + std::string(name)).c_str());
  return added && PyModule_AddFunctions(added, functions) == 0 &&
         PyModule_AddObject(module, name, added) == 0;
}

// Each adds its functions and types to the module; false with an exception set.

bool add_conversion(PyObject* module);         ///< tensor, as_tensor, from_numpy.
bool add_copying(PyObject* module);            ///< What pickles of tensors call.
bool add_indexing(PyObject* module);           ///< nonzero.
bool add_dlpack(PyObject* module);             ///< from_dlpack.
bool add_storage(PyObject* module);            ///< UntypedStorage.
bool add_autograd(PyObject* module);           ///< grad modes, nodes, backward.
bool add_introspection(PyObject* module);      ///< dispatch, threads, kernel reports, strict.
bool add_memory(PyObject* module);             ///< What tenon.cpu asks of the host's allocator.
bool add_devices(PyObject* module);            ///< Loading devices, their streams and events.
bool add_graphs(PyObject* module);             ///< Work that is captured and replayed.
bool add_builder(PyObject* module);            ///< Graphs that are written down, and their plans.
bool add_cached_plan(PyObject* module);        ///< The type of plans that operators' authors cache.
bool add_compiled_function(PyObject* module);  ///< Part of add_recording: the type of compiled functions.
bool add_recording(PyObject* module);          ///< Programs that are recorded while they run.
bool add_plans(PyObject* module);              ///< The plan cache on disk.
bool add_optimizers(PyObject* module);         ///< The updates of tenon.optim.
bool add_weights(PyObject* module);            ///< Files of weights.
bool add_onnx(PyObject* module);               ///< Networks in ONNX files.
bool add_inference(PyObject* module);          ///< Programs that are planned once.
bool add_dispatch_queries(PyObject* module);   ///< Registrations and tables as data, key sets.
bool add_library(PyObject* module);            ///< Registration from Python, operator objects, ctx.
bool add_op_objects(PyObject* module);         ///< Part of add_library: the objects of tenon.ops.

}  // namespace tenon::python
