// Formulas: functions that derivative formulas in YAML may name beside the operators.
// Used by generated derivatives only. Most gradients (sum_backward, select_backward, ...) are operators themselves, in
// the YAML next to what they are the gradient of, so that they can be differentiated again; what belongs here has no
// tensor arithmetic of its own.
#pragma once

#include "tenon/core/tensor.h"

namespace tenon::autograd::formulas {

/// No gradient: what an argument gets whose old elements were overwritten.
inline Tensor no_gradient() { return {}; }

}  // namespace tenon::autograd::formulas
