// The OpenCL C of launches, and the options that it is compiled with. Apart from kernels.cc because printers
// are what takes long to compile. Used by Kernels.
#pragma once

#include <string>

#include "tenon/abi/print_c.h"

namespace opencl {

/// What comes before the kernels of a source.
std::string prelude(tenon::abi::Arithmetic has);
/// The kernel `name` for launches of this one's variant, with a work-item for each element or more.
std::string kernel_source(const std::string& name, const TenonLaunch& launch);
/// The compiler's.
std::string options(tenon::abi::Arithmetic has);

}  // namespace opencl
