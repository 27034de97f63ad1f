#include "source.h"

namespace opencl {

namespace abi = tenon::abi;

std::string prelude(abi::Arithmetic has) { return abi::print_prelude(abi::Language::OpenCL, has); }

std::string kernel_source(const std::string& name, const TenonLaunch& launch) {
  return abi::print_kernel(abi::Language::OpenCL, name, launch, abi::Share::OneEach);
}

std::string options(abi::Arithmetic has) {
  std::string text = "-w";  // drivers print warnings, such as of x != x, to stderr
  for (const std::string& option : abi::compiler_options(abi::Language::OpenCL, has)) text += " " + option;
  return text;
}

}  // namespace opencl
