// Pointwise programs on openreg's devices.
#pragma once

#include "tenon/abi/tenon_abi.h"

namespace openreg {

/// TenonDeviceTable.pointwise.
TenonStatus* pointwise(void* self, const TenonLaunch* launch);
/// TenonDeviceProperties.ops_printed.
uint64_t known_operations() noexcept;

}  // namespace openreg
