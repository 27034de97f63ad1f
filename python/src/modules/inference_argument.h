// The argument by which the functions of extension modules take an Inference.
#pragma once

#include "python/src/interpreter/errors.h"
#include "tenon/builder/inference.h"

namespace tenon::python {

/// Of a capsule that tenon._C._inference has made. Throws a Python error for any other object.
const Inference& inference_argument(PyObject* capsule);

}  // namespace tenon::python
