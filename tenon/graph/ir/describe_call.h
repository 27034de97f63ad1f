// describe_call: from the arguments of a call to a Call, whose results the operator itself says on meta
// tensors. Used by the recorder for calls that it has not seen before, and by written graphs.
#pragma once

#include <exception>
#include <utility>

#include "tenon/core/tensor.h"
#include "tenon/graph/ir/call.h"

namespace tenon::graph {

/// Where the tensors of a call are.
class CallStorages {
 public:
  /// The number of a tensor's storage, and where offsets count from, in elements of the tensor.
  virtual std::pair<StorageId, int64_t> place_of(const Tensor& t) const = 0;
  /// The number of the next new storage.
  virtual StorageId next() const = 0;

 protected:
  ~CallStorages() = default;
};

/// What became of the description of a call.
struct CallKind {
  /// Why the call has to run at once; null for others.
  const char* now = nullptr;
  /// A result is an argument or a view of one: the operator's body runs at once, on tensors without bytes
  /// too.
  bool passes = false;
};

/// Fills in the call of an operator on the arguments from `first` on. Bit i of `numbers`: argument i is a
/// number that each run brings. Arguments that are a device become `device`. `error`, if it is given, gets
/// what the operator throws on meta tensors: the call then runs at once.
CallKind describe_call(Call& made, const OperatorInfo& info, const Stack& stack, size_t first,
                       uint64_t numbers, const CallStorages& storages, Device device,
                       std::exception_ptr* error = nullptr);

}  // namespace tenon::graph
