// Arrays of other libraries, by whichever protocol they have: buffers, DLPack, NumPy's array interface. Used
// by tenon.tensor, as_tensor, asarray and frombuffer.
#pragma once

#include "python/src/interpreter/reference.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

/// Whether a tensor must look at the array's own memory, or may have a copy of what has no such view: another
/// byte order, strides that are no multiple of an element.
enum class Sharing : uint8_t { Required, Preferred };

/// A tensor over the memory of an array, which it keeps alive; undefined for an object that has none of the
/// protocols. Throws Error{Type} for elements without a dtype here.
Tensor tensor_from_array(PyObject* object, const char* function, Sharing sharing);

/// from_dlpack of an object with `__dlpack__`. In dlpack.cc.
Tensor tensor_from_dlpack(PyObject* object);

}  // namespace tenon::python
