// Random expressions printed as OpenCL C have the interpreter's bits on the first OpenCL device that there
// is; without one the tests are skipped. The library is loaded at run time.
#include <gtest/gtest.h>

#include "tenon/abi/print_c.h"
#include "tests/abi/launching.h"
#include "tests/leak_check.h"

#if __has_include(<CL/cl.h>)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>

namespace tenon::expr::testing {
namespace {

#define TENON_CL(name) decltype(&::name) name = nullptr
/// The functions of OpenCL's library.
struct OpenCl {
  TENON_CL(clGetPlatformIDs);
  TENON_CL(clGetDeviceIDs);
  TENON_CL(clGetDeviceInfo);
  TENON_CL(clCreateContext);
  TENON_CL(clCreateCommandQueue);
  TENON_CL(clCreateProgramWithSource);
  TENON_CL(clBuildProgram);
  TENON_CL(clGetProgramBuildInfo);
  TENON_CL(clCreateKernel);
  TENON_CL(clCreateBuffer);
  TENON_CL(clSetKernelArg);
  TENON_CL(clEnqueueNDRangeKernel);
  TENON_CL(clEnqueueReadBuffer);
  TENON_CL(clReleaseMemObject);
  TENON_CL(clReleaseKernel);
  TENON_CL(clReleaseProgram);

  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  std::string name;
  bool has_f64 = false;
  std::string missing;  ///< Why there is no device; empty: there is one.
};
#undef TENON_CL

OpenCl make_opencl() {
  OpenCl cl;
  void* const library = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    cl.missing = ::dlerror();
    return cl;
  }
#define TENON_CL(name) cl.name = reinterpret_cast<decltype(cl.name)>(::dlsym(library, #name))
  TENON_CL(clGetPlatformIDs);
  TENON_CL(clGetDeviceIDs);
  TENON_CL(clGetDeviceInfo);
  TENON_CL(clCreateContext);
  TENON_CL(clCreateCommandQueue);
  TENON_CL(clCreateProgramWithSource);
  TENON_CL(clBuildProgram);
  TENON_CL(clGetProgramBuildInfo);
  TENON_CL(clCreateKernel);
  TENON_CL(clCreateBuffer);
  TENON_CL(clSetKernelArg);
  TENON_CL(clEnqueueNDRangeKernel);
  TENON_CL(clEnqueueReadBuffer);
  TENON_CL(clReleaseMemObject);
  TENON_CL(clReleaseKernel);
  TENON_CL(clReleaseProgram);
#undef TENON_CL
  cl_platform_id platform = nullptr;
  if (cl.clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS ||
      cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, nullptr) != CL_SUCCESS) {
    cl.missing = "no OpenCL device";
    return cl;
  }
  char name[256] = {};
  cl.clGetDeviceInfo(cl.device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr);
  cl.name = name;
  cl_device_fp_config doubles = 0;
  cl.clGetDeviceInfo(cl.device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, nullptr);
  cl.has_f64 = doubles != 0;
  cl.context = cl.clCreateContext(nullptr, 1, &cl.device, nullptr, nullptr, nullptr);
  cl.queue = cl.clCreateCommandQueue(cl.context, cl.device, 0, nullptr);
  if (!cl.context || !cl.queue) cl.missing = "no context on " + cl.name;
  return cl;
}

/// One for the process: drivers do not like to be loaded twice.
const OpenCl& opencl() {
  static const OpenCl& cl = *new OpenCl(make_opencl());
  return cl;
}

/// Every other launch has a work-item for each element, the others fewer.
abi::Share share_of(size_t number) { return number % 2 == 0 ? abi::Share::Any : abi::Share::OneEach; }

void run(const OpenCl& cl, cl_program program, const std::string& name, Launched& random, abi::Share share) {
  const cl_kernel kernel = cl.clCreateKernel(program, name.c_str(), nullptr);
  ASSERT_NE(kernel, nullptr) << name;
  std::vector<cl_mem> buffers;
  for (Elements& e : random.elements())
    buffers.push_back(cl.clCreateBuffer(cl.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                        e.memory().size(), e.memory().data(), nullptr));
  size_t next = 0;
  const std::vector<uint64_t> words = abi::kernel_words(
      random.launch(), [&](const TenonOperand&) { return random.elements()[next++].start(); });
  ASSERT_EQ(cl.clSetKernelArg(kernel, 0, words.size() * sizeof(uint64_t), words.data()), CL_SUCCESS);
  for (cl_uint i = 0; i < buffers.size(); ++i)
    ASSERT_EQ(cl.clSetKernelArg(kernel, i + 1, sizeof(cl_mem), &buffers[i]), CL_SUCCESS);
  const size_t local = 16, global = share == abi::Share::Any ? 32 : (words[0] + local - 1) / local * local;
  ASSERT_EQ(cl.clEnqueueNDRangeKernel(cl.queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr),
            CL_SUCCESS);
  for (size_t i = 0; i < buffers.size(); ++i) {
    Bytes& memory = random.elements()[i].memory();
    ASSERT_EQ(cl.clEnqueueReadBuffer(cl.queue, buffers[i], CL_TRUE, 0, memory.size(), memory.data(), 0,
                                     nullptr, nullptr),
              CL_SUCCESS);
    cl.clReleaseMemObject(buffers[i]);
  }
  cl.clReleaseKernel(kernel);
}

using Launches = std::vector<std::unique_ptr<Launched>>;

void compare(Launches launches) {
  const OpenCl& cl = opencl();
  if (!cl.missing.empty()) GTEST_SKIP() << cl.missing;
  tenon::testing::skip_leak_check();
  // What a device without float64 declines is not tried.
  if (!cl.has_f64)
    std::erase_if(launches, [](const auto& l) { return !abi::prints(l->launch(), {.f64 = false}); });
  std::string source = abi::print_prelude(abi::Language::OpenCL, {.f64 = cl.has_f64});
  for (size_t i = 0; i < launches.size(); ++i)
    source += abi::print_kernel(abi::Language::OpenCL, "kernel_" + std::to_string(i), launches[i]->launch(),
                                share_of(i));
  const char* text = source.c_str();
  const cl_program program = cl.clCreateProgramWithSource(cl.context, 1, &text, nullptr, nullptr);
  std::string options;
  for (const std::string& option : abi::compiler_options(abi::Language::OpenCL)) options += option + " ";
  if (cl.clBuildProgram(program, 1, &cl.device, options.c_str(), nullptr, nullptr) != CL_SUCCESS) {
    std::string messages(1 << 16, '\0');
    cl.clGetProgramBuildInfo(program, cl.device, CL_PROGRAM_BUILD_LOG, messages.size(), messages.data(),
                             nullptr);
    FAIL() << messages.c_str();
  }
  for (size_t i = 0; i < launches.size(); ++i) {
    run(cl, program, "kernel_" + std::to_string(i), *launches[i], share_of(i));
    ASSERT_EQ(launches[i]->differing(), 0) << "number " << i << " on " << cl.name << "\n"
                                           << launches[i]->text();
  }
  cl.clReleaseProgram(program);
}

void compare(Type type) {
  Launches launches;
  for (uint64_t i = 0; i < 25; ++i) launches.push_back(std::make_unique<RandomLaunch>(i, type, 6));
  compare(std::move(launches));
}

TEST(PrintOpenCl, HasTheBitsOfTheInterpreterFloat32) { compare(Type::F32); }
TEST(PrintOpenCl, HasTheBitsOfTheInterpreterFloat64) { compare(Type::F64); }
TEST(PrintOpenCl, HasTheBitsOfTheInterpreterInt32) { compare(Type::I32); }
TEST(PrintOpenCl, HasTheBitsOfTheInterpreterInt64) { compare(Type::I64); }

TEST(PrintOpenCl, HasTheBitsOfTheInterpreterForEveryOperationOnSpecialValues) { compare(special_launches()); }

}  // namespace
}  // namespace tenon::expr::testing

#else
TEST(PrintOpenCl, HasTheBitsOfTheInterpreter) { GTEST_SKIP() << "built without the headers of OpenCL"; }
#endif
