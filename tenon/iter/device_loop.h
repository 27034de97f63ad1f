// DeviceLoop: a flat expression over operands of known geometry, as launches of a device that runs
// expressions (pointwise_device.h). What FusedLoop is on the host. Used by plans of devices. Knows no
// operators.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tenon/abi/tenon_program.h"
#include "tenon/core/tensor.h"
#include "tenon/expr/expression.h"
#include "tenon/iter/loop_geometry.h"

namespace tenon {

namespace detail {
struct DeviceExpression;
}

/// Immutable, and safe to run from many threads at once.
class DeviceLoop : detail::LoopGeometry {
 public:
  /// Throws what FusedLoop throws for operands that do not fit. `device` has an index.
  DeviceLoop(expr::ExpressionPtr expression, std::string name, Device device,
             std::span<const FusedOperand> outputs, std::span<const FusedOperand> inputs);
  DeviceLoop(const DeviceLoop&) = delete;

  /// Whether the device takes such launches: it gets one of a single element, over memory of its own.
  bool is_taken() const;
  /// Gives a launch to the current stream of the device. `addresses` are the device's, of the operands'
  /// elements at index [0, ..., 0]: outputs, then inputs. False if the device has declined it, and nothing
  /// was written.
  bool run(char* const* addresses, const uint64_t* numbers) const;
  /// The same on host copies of the operands, which wait for the stream (dispatch/host_copies.h).
  void run_on_host(char* const* addresses, const uint64_t* numbers) const;

 private:
  struct Operand {
    DType dtype;
    Dims sizes, strides;
  };

  /// `at`: addresses by slot.
  bool launch(const Address* at, const int64_t* sizes, const uint64_t* numbers) const;
  Tensor tensor(size_t operand, char* address) const;

  expr::ExpressionPtr expression_;
  std::string name_;
  Device device_;
  detail::DeviceExpression& made_;
  size_t num_outputs_;
  std::vector<Operand> operands_;
  std::vector<int64_t> slot_strides_;  // [slot][dimension], in bytes
  // A launch as far as it is the same each time.
  SmallVector<TenonOperand, 16> slot_operands_;
  std::vector<TenonDType> results_;
  TenonLaunch launch_;
};

}  // namespace tenon
