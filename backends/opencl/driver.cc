#include "driver.h"

#include "tenon/abi/plugin.h"

namespace opencl {
namespace {

namespace abi = tenon::abi;

const char* name_of(cl_int code) {
  switch (code) {
#define NAME(code) \
  case code:       \
    return #code
    NAME(CL_DEVICE_NOT_AVAILABLE);
    NAME(CL_COMPILER_NOT_AVAILABLE);
    NAME(CL_MEM_OBJECT_ALLOCATION_FAILURE);
    NAME(CL_OUT_OF_RESOURCES);
    NAME(CL_OUT_OF_HOST_MEMORY);
    NAME(CL_MEM_COPY_OVERLAP);
    NAME(CL_BUILD_PROGRAM_FAILURE);
    NAME(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    NAME(CL_INVALID_VALUE);
    NAME(CL_INVALID_CONTEXT);
    NAME(CL_INVALID_COMMAND_QUEUE);
    NAME(CL_INVALID_MEM_OBJECT);
    NAME(CL_INVALID_BUILD_OPTIONS);
    NAME(CL_INVALID_KERNEL_ARGS);
    NAME(CL_INVALID_ARG_SIZE);
    NAME(CL_INVALID_WORK_GROUP_SIZE);
    NAME(CL_INVALID_EVENT);
    NAME(CL_INVALID_OPERATION);
    NAME(CL_INVALID_BUFFER_SIZE);
#undef NAME
    default:
      return nullptr;
  }
}

template <class T>
T info(cl_device_id device, cl_device_info what) {
  T value{};
  check(clGetDeviceInfo(device, what, sizeof value, &value, nullptr), "clGetDeviceInfo");
  return value;
}

std::string text(cl_device_id device, cl_device_info what) {
  size_t size = 0;
  check(clGetDeviceInfo(device, what, 0, nullptr, &size), "clGetDeviceInfo");
  std::string value(size, '\0');
  check(clGetDeviceInfo(device, what, size, value.data(), nullptr), "clGetDeviceInfo");
  return value.c_str();  // without the zeros at its end
}

std::string name_of(cl_platform_id platform) {
  char name[256] = {};
  check(clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, nullptr), "clGetPlatformInfo");
  return name;
}

cl_device_type type_of(const std::string& name) {
  if (name == "all") return CL_DEVICE_TYPE_ALL;
  if (name == "cpu") return CL_DEVICE_TYPE_CPU;
  if (name == "gpu") return CL_DEVICE_TYPE_GPU;
  if (name == "accelerator") return CL_DEVICE_TYPE_ACCELERATOR;
  throw abi::Error(TENON_ERROR_VALUE, "option type=" + name + ": expected all, cpu, gpu or accelerator");
}

DeviceInfo describe(cl_device_id id) {
  const auto singles = info<cl_device_fp_config>(id, CL_DEVICE_SINGLE_FP_CONFIG);
  DeviceInfo d;
  d.id = id;
  d.name = text(id, CL_DEVICE_NAME);
  d.memory = info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
  d.largest_buffer = info<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  d.parameters = info<size_t>(id, CL_DEVICE_MAX_PARAMETER_SIZE);
  d.abilities.f64 = info<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  d.abilities.division = (singles & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  d.abilities.denormals = (singles & CL_FP_DENORM) != 0;
  return d;
}

}  // namespace

void check(cl_int code, const char* function) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
                      code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
  const char* const name = name_of(code);
  throw abi::Error(memory ? TENON_ERROR_OUT_OF_MEMORY : TENON_ERROR_DEVICE,
                   std::string(function) + " failed: " + (name ? name : "code " + std::to_string(code)));
}

std::vector<DeviceInfo> find_devices(const std::string& platform, const std::string& type) {
  const cl_device_type wanted = type_of(type);
  cl_platform_id platforms[16];
  cl_uint num_platforms = 0;
  // Without any driver this is an error of its own, which says no more.
  if (clGetPlatformIDs(16, platforms, &num_platforms) != CL_SUCCESS) num_platforms = 0;
  std::string names;
  for (cl_uint p = 0; p < num_platforms && p < 16; ++p) {
    const std::string name = name_of(platforms[p]);
    names += (names.empty() ? "" : ", ") + name;
    if (name.find(platform) == std::string::npos) continue;
    cl_device_id ids[16];
    cl_uint num_devices = 0;
    if (clGetDeviceIDs(platforms[p], wanted, 16, ids, &num_devices) != CL_SUCCESS) continue;
    std::vector<DeviceInfo> devices;
    for (cl_uint d = 0; d < num_devices && d < 16; ++d) devices.push_back(describe(ids[d]));
    if (!devices.empty()) return devices;
  }
  throw abi::Error(TENON_ERROR_DEVICE,
                   "no platform of OpenCL has such a device (platform=" + platform + ", type=" + type +
                       "); there " +
                       (names.empty() ? "are no platforms: no driver is installed" : "is " + names));
}

std::mutex& compiling() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

Program build(cl_context context, const std::vector<DeviceInfo>& devices, const std::string& source,
              const std::string& options) {
  const char* text = source.c_str();
  cl_int code = CL_SUCCESS;
  Program program(clCreateProgramWithSource(context, 1, &text, nullptr, &code));
  check(code, "clCreateProgramWithSource");
  code = clBuildProgram(program.get(), 0, nullptr, options.c_str(), nullptr, nullptr);
  if (code != CL_BUILD_PROGRAM_FAILURE) {
    check(code, "clBuildProgram");
    return program;
  }
  std::string messages;
  for (const DeviceInfo& d : devices) {
    size_t size = 0;
    clGetProgramBuildInfo(program.get(), d.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
    std::string log(size, '\0');
    clGetProgramBuildInfo(program.get(), d.id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
    messages += log.c_str();
  }
  throw abi::Error(TENON_ERROR_INTERNAL, "the driver does not compile a kernel: " + messages);
}

}  // namespace opencl
