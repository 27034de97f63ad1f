// dtype, device, layout, memory_format, Generator and Size: the types of a tensor's attributes and of
// arguments besides tensors. Used by the argument parser and by the properties of tensors.
#pragma once

#include <optional>

#include "python/src/interpreter/reference.h"
#include "tenon/core/tensor.h"

namespace tenon::python {

// New references; the objects of dtypes, layouts and memory formats exist once each.

PyObject* wrap(DType dtype) noexcept;
PyObject* wrap(Device device) noexcept;
PyObject* wrap(Layout layout) noexcept;
PyObject* wrap(MemoryFormat format) noexcept;
PyObject* wrap(const Generator& generator) noexcept;
PyObject* wrap(const Scalar& scalar) noexcept;
/// A tenon.Size.
PyObject* wrap_size(IntArrayRef sizes) noexcept;
/// A plain tuple.
PyObject* wrap_tuple(IntArrayRef values) noexcept;

/// Converts an object of the type, or one that PyTorch accepts instead: Python's bool, int, float and complex
/// as dtypes; a str as a device, with ValueError if it names none. Returns nothing for any other object,
/// without an exception.
std::optional<DType> as_dtype(PyObject* o) noexcept;
std::optional<Device> as_device(PyObject* o);
std::optional<Layout> as_layout(PyObject* o) noexcept;
std::optional<MemoryFormat> as_memory_format(PyObject* o) noexcept;
/// Null for anything else.
const Generator* as_generator(PyObject* o) noexcept;

/// The argument of manual_seed as PyTorch takes it: from -2^63 to 2^64 - 1, negative ones by their bits.
/// Throws Error{Type} for what is no int.
uint64_t seed_argument(PyObject* o);

/// Null for anything else; methods/properties.cc has the type.
const Storage* as_storage(PyObject* o) noexcept;
PyObject* wrap(Storage storage) noexcept;

/// Adds the types, and an object for each dtype, layout and memory format, to the module.
bool add_types(PyObject* module);

}  // namespace tenon::python
