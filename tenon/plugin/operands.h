// What a plug-in's kernel is called with: the device that a call is for, and tensors of that device. Used by
// calls of kernels alone.
#pragma once

#include <optional>

#include "tenon/core/stream.h"
#include "tenon/dispatch/dispatcher.h"

namespace tenon::plugin {

/// The device of a backend that a call is for: that of its first tensor there; else the one that an argument
/// names; else the thread's current one.
Device device_of_call(const schema::FunctionSchema& schema, Stack& stack, size_t first, Backend backend);

/// Throws Error{Device} for a call of one of Tenon's own operators with tensors of several devices, which a
/// kernel cannot be expected to look for. Of numbers of the host, which operators take, the kernel cannot
/// know either: if there are any, the result is a copy of the arguments with the numbers on `device`.
std::optional<Stack> checked_operands(const OperatorHandle& op, Stack& stack, size_t first, Device device);

/// Makes a device the current one if it is not, so that what a kernel makes without naming one is there.
class CallScope {
 public:
  explicit CallScope(Device device) {
    if (resolved(Device(device.backend)) != device) guard_.emplace(device);
  }

 private:
  std::optional<DeviceGuard> guard_;
};

}  // namespace tenon::plugin
