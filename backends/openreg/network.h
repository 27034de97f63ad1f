// The kernels of option kernels=network.
#pragma once

#include "tenon/abi/kernel.h"

namespace openreg {

void register_network(tenon::abi::Library& library);

}  // namespace openreg
