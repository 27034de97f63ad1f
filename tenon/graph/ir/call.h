// Call: a call of an operator on storages that are known by number: what it depends on besides their bytes
// and the values of numbers. Made by describe_call; recorded programs keep calls in their tries, written
// graphs in a list, and assemble (program.h) makes graphs of them. Does not depend on the calls around it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tenon/dispatch/stack.h"
#include "tenon/graph/ir/graph.h"
#include "tenon/graph/ir/operator_info.h"

namespace tenon::graph {

/// A tensor argument.
struct Operand {
  StorageId storage = kNone;  ///< kNone if it is undefined.
  bool written = false;
  Geometry geometry =
      {};  ///< The offset counts from where the storage begins for its calls; may be negative.
};

/// An argument, in the schema's order.
struct ArgumentSource {
  enum class Kind : uint8_t {
    Attribute,   ///< The value in `attributes`.
    Tensor,      ///< Operand `first`.
    TensorList,  ///< `count` operands from `first` on.
    Number,      ///< The next number that a run brings: a Scalar, double or int64 by `tag`.
  };
  Kind kind = Kind::Attribute;
  CellTag tag = CellTag::None;
  uint16_t first = 0, count = 0;
};

/// A new tensor that the call makes.
struct Output {
  StorageId storage;
  size_t nbytes;       ///< Of the storage.
  bool makes_storage;  ///< False for a further tensor over the storage of an earlier one.
  uint64_t version;    ///< Of the storage: how often the operator has written its own result.
  Geometry geometry;
};

/// A result: the next output, a written argument, or an undefined tensor.
struct Result {
  enum class Kind : uint8_t { Output, Argument, Undefined } kind;
  uint16_t argument = 0;
};

struct Call {
  const OperatorInfo* info = nullptr;
  std::vector<ArgumentSource> arguments;
  std::vector<Operand> operands;
  Stack attributes;  ///< The arguments, without tensors and numbers.
  std::vector<Output> outputs;
  std::vector<Result> results;
  /// Of a fill, whose value the dtype has to hold.
  std::optional<DType> filled;
};

}  // namespace tenon::graph
