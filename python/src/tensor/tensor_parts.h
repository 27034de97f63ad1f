// The parts of the Python type Tensor: each subject has its slots, methods and attributes in a file of its
// own. Used by methods/tensor_type.cc and those files only.
#pragma once

#include <span>

#include "python/src/interpreter/reference.h"

namespace tenon::python {

struct TensorPart {
  std::span<PyMethodDef> methods = {};
  std::span<PyGetSetDef> attributes = {};
};

// Each fills in its slots of tensor_type, and returns its methods and attributes.

TensorPart object_part();      ///< Life and identity.
TensorPart number_part();      ///< Arithmetic, comparison, conversion to Python numbers.
TensorPart index_part();       ///< self[...], len, iteration.
TensorPart property_part();    ///< shape, dtype, strides, storage, ...
TensorPart conversion_part();  ///< to, item, tolist, numpy.
TensorPart copying_part();     ///< copy, deepcopy, pickle.
TensorPart dlpack_part();
TensorPart buffer_part();    ///< memoryview(self).
TensorPart autograd_part();  ///< grad, backward, requires_grad_, ...
TensorPart operator_part();  ///< The generated methods of operators.

/// Completes tensor_type and adds it to the module. If several parts have a name, the earliest part wins.
bool add_tensor_type(PyObject* module);

}  // namespace tenon::python
