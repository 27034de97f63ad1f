// PointwiseLaunch: a pointwise call as plain data, checked and with its output allocated, for devices that
// run the expression in their own way. Used by devices; the plug-in ABI passes it unchanged. Holds no C++
// types but enums and an atomic pointer, whose layout is that of a plain pointer.
#pragma once

#include <atomic>
#include <cstdint>

#include "tenon/core/allocator.h"
#include "tenon/core/dtype.h"
#include "tenon/expr/expr.h"

namespace tenon {

class TensorIterator;
struct PointwiseInfo;

/// One operand of a launch.
struct PointwiseOperand {
  Address address;         ///< Of the element at which the loop starts.
  const int64_t* strides;  ///< In bytes, over the launch's sizes; zero where it broadcasts, or negative.
  DType dtype;             ///< Converts to the compute type and back.
  bool on_host;            ///< A 0-dim host tensor beside tensors of the device: `address` is a host pointer.
};

/// `operands[0]` = expression(`operands[1]`, ...). Everything that it points to lives until the call returns;
/// the operands' memory lives until the stream has run the work.
struct PointwiseLaunch {
  const char* name;                 ///< "add"
  const char* expression;           ///< In the language of tenon/expr, over the names below.
  const char* const* tensor_names;  ///< Of operands 1, 2, ...
  const char* const* scalar_names;
  uint32_t num_tensors;
  uint32_t num_scalars;
  uint32_t mask_tensors;  ///< Bit i: tensor i is a truth value.
  expr::Type type;        ///< What the expression computes in.
  DType result;           ///< What its result rounds to before it converts to operand 0's dtype.
  Stream stream;          ///< Of the device that computes; the launch is its work.
  uint32_t ndim;
  const int64_t* sizes;              ///< Of the loop, innermost first; one of 0 elements is not launched.
  const PointwiseOperand* operands;  ///< 1 + num_tensors
  const void* scalars;               ///< num_scalars values of `type`, 8 bytes each
  /// The device's own place for what it makes of this expression in this type, whatever the operands' dtypes
  /// and shapes: null at the first launch, and from then on what the device put there. It outlives every
  /// launch, and nobody else reads it. Launches of many threads may find it null at once.
  std::atomic<void*>* made;
};

static_assert(sizeof(std::atomic<void*>) == sizeof(void*));

/// Runs a launch, or gives it to its stream. False: the device declines it (a dtype that it lacks) and has
/// written nothing; the call then runs on host copies, if the device's fallback policy says so.
using PointwiseDeviceFunction = bool (*)(void* data, const PointwiseLaunch& launch);

/// How pointwise operators run on tensors of a backend; without it they throw Error{NotImplemented}, or take
/// the backend's fallback. A device calls this once, when it loads.
void set_pointwise_device(Backend backend, PointwiseDeviceFunction f, void* data);

namespace detail {

/// Whether pointwise operators run on tensors of a backend; `info`, where it is given, is the one in
/// question: devices run those with one new result.
bool pointwise_serves(const void* info, Backend backend) noexcept;
/// Runs `info` over the iterator's operands on its device, which is neither cpu nor meta. False if the device
/// runs no launches, runs none with several results, or declines this one. Throws Error{Type} if the
/// expression cannot be computed in `type`.
bool launch_on_device(const PointwiseInfo& info, const TensorIterator& iter, expr::Type type, DType result,
                      const void* scalars);
/// Throws the Error{NotImplemented} of a launch that nobody runs.
[[noreturn]] void refuse_launch(const PointwiseInfo& info, Device device);

}  // namespace detail
}  // namespace tenon
