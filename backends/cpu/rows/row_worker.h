// The work of one thread on a row call. Used by run_rows.cc.
#pragma once

#include <atomic>

#include "backends/cpu/rows/row_call.h"
#include "backends/cpu/rows/row_plan.h"

namespace tenon::cpu {

/// What differs from one run of a call to the next.
struct RowAddresses {
  char* const* data;        ///< By operand: inputs, then outputs.
  const uint64_t* numbers;  ///< By slot.
};

/// Runs units [begin, end) of the call: groups of rows, or panels.
void run_row_units(const RowCall& call, const RowPlan& plan, const RowAddresses& at, int64_t begin,
                   int64_t end);

class RowWorker;
/// The same for a call that is made again and again: what a thread needs for it is kept, where that is
/// little. Safe to use from many threads at once.
class SpareRowWorker {
 public:
  SpareRowWorker() = default;
  SpareRowWorker(const SpareRowWorker&) = delete;
  ~SpareRowWorker();
  /// Always with the same call and plan.
  void run(const RowCall& call, const RowPlan& plan, const RowAddresses& at, int64_t begin, int64_t end);

 private:
  std::atomic<RowWorker*> spare_{nullptr};
};

}  // namespace tenon::cpu
