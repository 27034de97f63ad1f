// OperatorInfo: what recording has to know of an operator, from its schema and its registrations: whether
// calls can wait, which arguments are written, and which are numbers that a plan takes again each time it
// runs. Used by the recorder. Independent of any particular call.
#pragma once

#include <cstdint>
#include <vector>

#include "tenon/dispatch/operator.h"
#include "tenon/schema/schema.h"

namespace tenon::graph {

struct OperatorInfo {
  enum class Kind : uint8_t {
    Recorded,     ///< Calls wait.
    Transparent,  ///< Its body runs at once; the operators that it calls are recorded.
    Now,          ///< Calls run at once, for `reason`.
  };

  OperatorHandle op;
  const schema::FunctionSchema* schema;
  Kind kind = Kind::Recorded;
  const char* reason = "";
  uint64_t written = 0;  ///< Bit i: argument i is written.
  /// Bit i: argument i is a number whose value no shape and no dtype depends on: only its kind is part of
  /// what a plan is found by.
  uint64_t numbers = 0;
  bool has_tensors = false;
  /// Values of numbers for which a call costs much less (exponents 2, 0.5): part of what a plan is found by.
  std::vector<double> special;
  /// How many times a scope's threshold of elements its calls may have to run at once. Calls that become
  /// loops with others get back what recording them costs; others gain nothing but what is next to them.
  uint8_t scale = 1;
  /// By result: the written argument that it is; -1: a new tensor.
  std::vector<int16_t> results;
};

/// Made at the operator's first recorded call, and again when its registrations have changed. Lives as long
/// as the process.
const OperatorInfo& operator_info(const OperatorHandle& op);

}  // namespace tenon::graph
