// The OpenCL driver's objects as C++ has them: errors are exceptions, handles release themselves. Also which
// devices there are and what they can compute. Used by the whole plug-in; independent of tensors.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace opencl {

/// Throws abi::Error, which names the function and the error code, unless `code` is CL_SUCCESS. What says
/// that memory is missing is TENON_ERROR_OUT_OF_MEMORY.
void check(cl_int code, const char* function);

template <auto release>
struct Release {
  template <class T>
  void operator()(T* handle) const noexcept {
    release(handle);
  }
};
template <class Handle, auto release>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Release<release>>;

using Context = Owned<cl_context, clReleaseContext>;
using Buffer = Owned<cl_mem, clReleaseMemObject>;
using Queue = Owned<cl_command_queue, clReleaseCommandQueue>;
using Event = Owned<cl_event, clReleaseEvent>;
using Program = Owned<cl_program, clReleaseProgram>;
using Kernel = Owned<cl_kernel, clReleaseKernel>;

/// A buffer that several keep; null for null.
inline std::shared_ptr<std::remove_pointer_t<cl_mem>> shared(cl_mem buffer) {
  if (buffer) check(clRetainMemObject(buffer), "clRetainMemObject");
  return {buffer, [](cl_mem held) {
            if (held) clReleaseMemObject(held);
          }};
}

/// What of arithmetic a device has.
struct Abilities {
  bool f64 = false;        ///< float64 at all.
  bool division = false;   ///< Quotients and roots of float32 that are correctly rounded.
  bool denormals = false;  ///< float32 below 2^-126.
};

struct DeviceInfo {
  cl_device_id id = nullptr;
  std::string name;
  uint64_t memory = 0, largest_buffer = 0;  ///< In bytes.
  size_t parameters = 0;                    ///< Bytes that the arguments of a kernel may have.
  Abilities abilities;
};

/// The devices of a type ("all", "cpu", "gpu" or "accelerator") of the first platform that has one and whose
/// name contains `platform`. Throws abi::Error{DEVICE} where there is none, naming the platforms.
std::vector<DeviceInfo> find_devices(const std::string& platform, const std::string& type);

/// To be held while something compiles: compilers of drivers are not all safe to use by several threads,
/// though OpenCL says so.
std::mutex& compiling();

/// The program of a source for all devices of the context. Throws abi::Error{INTERNAL} with the compiler's
/// messages.
Program build(cl_context context, const std::vector<DeviceInfo>& devices, const std::string& source,
              const std::string& options);

}  // namespace opencl
