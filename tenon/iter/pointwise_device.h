// Pointwise calls on devices that run expressions in their own way: a call as plain data, a TenonLaunch,
// checked and with its outputs allocated. Used by devices, which set their function, and by the call path of
// pointwise operators.
#pragma once

#include <span>

#include "tenon/abi/tenon_program.h"
#include "tenon/core/device.h"
#include "tenon/core/dtype.h"
#include "tenon/expr/type.h"

namespace tenon {

class TensorIterator;
struct PointwiseInfo;

/// Runs a launch, or gives it to its stream. False if the device has declined it, and written nothing: its
/// operations, dtypes or sizes are not for this device. The call then runs on host copies, if the device's
/// fallback policy says so.
using PointwiseDeviceFunction = bool (*)(void* data, const TenonLaunch& launch);

/// How pointwise operators run on tensors of a backend; without it they throw Error{NotImplemented}, or take
/// the backend's fallback. A device calls this once, when it loads.
void set_pointwise_device(Backend backend, PointwiseDeviceFunction f, void* data);

namespace detail {

struct Instance;
class DeviceSlots;

/// Whether pointwise operators run on tensors of a backend, whatever `info`, the one in question, is.
bool pointwise_serves(const void* info, Backend backend) noexcept;

/// What runs: an expression, and the call's arguments besides its operands.
struct PointwiseWork {
  const PointwiseInfo& info;
  const Instance* instance;  ///< Null: what `info` is in `type`.
  expr::Type type;
  std::span<const DType> results;  ///< Of each output, before an `out` converts it.
  const uint64_t* scalars;         ///< As the expression takes them.
};

/// Runs it over the iterator's operands, outputs first, on their device, which is neither cpu nor meta. False
/// if nothing ran, because the device has declined or has no function. Throws Error{Type} if the expression
/// cannot be computed in its type.
bool launch_on_device(const PointwiseWork& work, const TensorIterator& iter);
/// Gives a launch that is complete but for its stream and its slot to the current stream of a device, which
/// has an index. False as above. `slots`: where devices keep what they make of its program.
bool give_launch(TenonLaunch& launch, Device device, DeviceSlots& slots);
/// Throws the Error{NotImplemented} of a launch that no function runs.
[[noreturn]] void refuse_launch(const PointwiseInfo& info, Device device);

}  // namespace detail
}  // namespace tenon
