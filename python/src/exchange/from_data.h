// Tensors from Python data: numbers, nested sequences, buffers.
// Used by tenon.tensor, by indexing and by assignment.
#pragma once

#include <optional>

#include "python/src/interpreter/reference.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

/// A new tensor with a copy of `data`: a number, a nested list or tuple, a NumPy array or other buffer, a
/// tensor. The dtype is that of the data unless given; Python floats have the default one. Throws
/// Error{Value} for a ragged list or a number that does not fit, Error{Type} for what is no data.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype = {});

/// A tensor over the memory of an object with the buffer protocol, which stays alive and, where it is
/// read-only, is marked so. Throws Error{Type} for a format that no dtype has, Error{Value} for strides that
/// are no multiple of the element's size.
Tensor tensor_from_buffer(PyObject* object, const char* function);

/// One element, as Python sees it and as Python gives it.
PyObject* load_element(DType dtype, const void* element);
void store_element(DType dtype, void* element, const Scalar& value);

}  // namespace tenon::python
