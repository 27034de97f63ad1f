// Tensors from Python data: numbers, nested sequences, buffers.
// Used by tenon.tensor, by indexing and by assignment.
#pragma once

#include <optional>

#include "python/src/interpreter/reference.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

/// A new tensor with a copy of `data`: a number, a nested list or tuple, a NumPy array or other buffer, or a
/// tensor. Unless `dtype` is given, it is that of the data; Python floats have the default dtype. Throws
/// Error{Value} for a ragged list and for a number that does not fit, and Error{Type} for other objects.
Tensor tensor_from_data(PyObject* data, std::optional<DType> dtype = {});

/// A tensor over the memory of an object with the buffer protocol. It keeps the object alive, and is marked
/// read-only if the buffer is. Throws Error{Type} for a format without a dtype, and Error{Value} for strides
/// that are no multiple of the element's size.
Tensor tensor_from_buffer(PyObject* object, const char* function);

/// The bytes of a contiguous buffer, as a uint8 vector over its memory.
Tensor bytes_of_buffer(PyObject* object);

/// Reads one element as a Python object, and writes one.
PyObject* load_element(DType dtype, const void* element);
void store_element(DType dtype, void* element, const Scalar& value);

}  // namespace tenon::python
